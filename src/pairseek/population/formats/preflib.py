"""PrefLib's ordinal files: ``.soc`` and ``.soi`` (strict orders, complete or not), ``.toc`` and ``.toi`` (with ties).

A data line is ``count: 3,1,{2,4}``: so many people ranked the alternative 3 first, then 1, then 2 and 4 alike. What a
person did not rank is not compared. Alternatives are called by their names in the header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pairseek.core.types import ItemId
from pairseek.errors import InvalidChoices
from pairseek.population.choices import Choices

ENDINGS = (".soc", ".soi", ".toc", ".toi")
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.IGNORECASE)
_GROUP = re.compile(r"\s*(\{[^{}]*\}|[^,{}]+)\s*(,|$)")
_MOST = 10_000_000


def read(path: Path, ids: Sequence[ItemId] | None = None) -> Choices:
    """The pairs that the orders of a file imply."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise InvalidChoices(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidChoices(f"{path} cannot be read as text in UTF-8: {error}") from None
    names: dict[int, str] = {}
    rankings: list[tuple[str, list[list[ItemId]]]] = []
    for number, line in enumerate(lines, 1):
        heading = _NAME.match(line)
        if heading:
            names[int(heading[1])] = heading[2].strip()
        elif line.strip() and not line.startswith("#"):
            count, groups = _order(path, number, line, names, ties=path.suffix.lower() in (".toc", ".toi"))
            if len(rankings) + count > _MOST:
                raise InvalidChoices(f"{path}, line {number}: more than {_MOST:,} people; take a sample of them")
            # The people of one line are told apart by a number.
            rankings += [(f"{number}.{one}" if count > 1 else str(number), groups) for one in range(1, count + 1)]
    if not rankings:
        raise InvalidChoices(f"{path} holds no orders: give lines such as '12: 3,1,2'")
    twice = next((name for name in names.values() if list(names.values()).count(name) > 1), None)
    if twice is not None:
        raise InvalidChoices(f"{path}: two alternatives have the name {twice!r}; give each its own")
    return Choices.from_rankings(rankings, ids=ids if ids is not None else [*names.values()])


def _order(path: Path, number: int, line: str, names: dict[int, str], *, ties: bool) -> tuple[int, list[list[ItemId]]]:
    head, colon, body = line.partition(":")
    if not colon or not head.strip().isdigit() or int(head) < 1:
        raise InvalidChoices(
            f"{path}, line {number}, column 1: {head.strip()[:30]!r} is no number of people; a line is '12: 3,1,2'"
        )
    offset = len(head) + 1
    groups: list[list[ItemId]] = []
    seen: set[str] = set()
    place = 0
    while place < len(body):
        found = _GROUP.match(body, place)
        if found is None:
            raise InvalidChoices(
                f"{path}, line {number}, column {offset + place + 1}: {body[place:].strip()[:30]!r} is no alternative; "
                f"separate them by commas, and put equal ones into braces"
            )
        text = found[1].strip()
        where = f"{path}, line {number}, column {offset + found.start(1) + 1}"
        if text.startswith("{") and not ties:
            raise InvalidChoices(f"{where}: {text!r} are equal, and a {path.suffix} file has no ties; call it .toc")
        group: list[ItemId] = []
        for cell in text.strip("{}").split(","):
            if not cell.strip().isdigit() or int(cell) not in names:
                raise InvalidChoices(
                    f"{where}: {cell.strip()!r} is none of the {len(names)} alternatives that the header names"
                )
            name = names[int(cell)]
            if name in seen:
                raise InvalidChoices(f"{where}: {name!r} is ranked twice; rank each once")
            seen.add(name)
            group.append(name)
        groups.append(group)
        place = found.end()
    return int(head), groups
