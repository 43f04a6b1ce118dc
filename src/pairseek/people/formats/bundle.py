"""Study bundles written by ``pairseek export``: their valid answers and their items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pairseek.core.archives import ARCHIVE_ERRORS, ArchiveTooLarge, LimitedArchive
from pairseek.core.types import ItemId
from pairseek.errors import InvalidChoices, PairseekError
from pairseek.model.item_records import items_from
from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.formats.table import Table

ANSWERS_FILE = "answers.csv"
ITEMS_FILE = "items.json"
PARTICIPANTS_FILE = "participants.csv"
_COLUMNS = ("session", "simulated", "left", "right", "winner", "loser", "outcome", "kind", "undone", "void")


def read(path: Path, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read the answers of a bundle.

    Skips, attention checks, undone or voided answers, and answers of simulated people are left out.
    """
    table = Table.read(f"{path}: {ANSWERS_FILE}", content_of(path, ANSWERS_FILE))
    if not table.has(_COLUMNS):
        missing = next(name for name in _COLUMNS if not table.has((name,)))
        raise InvalidChoices(f"{path}: {ANSWERS_FILE} has no column {missing!r}; export the study again")
    if table.has(("anchor",)):
        raise InvalidChoices(
            f"{path} is the bundle of a similarity study, whose answers say which items are alike, not which ones "
            f"people like: read them with pairseek.embed.Triplets.read"
        )
    rows: list[tuple[str, str, str]] = []
    tied: list[tuple[str, str, str]] = []
    simulated_answers = 0
    for _, (session, simulated, left, right, winner, loser, outcome, kind, undone, void) in table.cells(_COLUMNS):
        if simulated == "true":
            simulated_answers += 1
            continue
        if "true" in (undone, void) or kind == "attention" or outcome == "skip":
            continue
        if outcome == "tie":
            tied.append((session, left, right))
            continue
        rows.append((session, winner, loser))
    if simulated_answers and not rows:
        raise InvalidChoices(
            f"{path}: all {simulated_answers} answers are by simulated people; give a bundle with answers by real "
            f"people"
        )
    return Choices.from_pairs(rows, ids=items(path).ids if ids is None else ids, tied=tied)


def flagged_sessions(path: Path) -> set[str]:
    """Return the sessions flagged for how people answered, which the ranking of a study leaves out."""
    table = Table.read(f"{path}: {PARTICIPANTS_FILE}", content_of(path, PARTICIPANTS_FILE))
    if not table.has(("session", "flags")):
        raise InvalidChoices(f"{path}: {PARTICIPANTS_FILE} has no columns session and flags; export the study again")
    return {session for _, (session, flags) in table.cells(("session", "flags")) if flags}


def items(path: Path) -> Items:
    """Read the items of a bundle."""
    try:
        read_items = items_from(json.loads(content_of(path, ITEMS_FILE)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, PairseekError):
            raise
        raise InvalidChoices(f"{path}: {ITEMS_FILE} cannot be read: {error}; export the study again") from None
    if not isinstance(read_items, Items):
        raise InvalidChoices(f"{path} is a study in a continuous space: give the bundle of a study with items")
    return read_items


def content_of(path: Path, name: str) -> bytes:
    """Read a file of a bundle by name."""
    try:
        with LimitedArchive(path) as archive:
            return archive.read(name)
    except ArchiveTooLarge as error:
        raise InvalidChoices(f"{path}: {error}; give a bundle written by pairseek export") from None
    except FileNotFoundError:
        raise InvalidChoices(f"there is no file {path}") from None
    except KeyError:
        raise InvalidChoices(f"{path} does not contain {name}: give a bundle written by pairseek export") from None
    except ARCHIVE_ERRORS as error:
        raise InvalidChoices(f"{path} cannot be read as a bundle: {error}; export it again") from None
