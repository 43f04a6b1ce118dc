"""PrefLib formats of ordinal preferences.

``.soc`` and ``.soi`` hold strict orders, complete or incomplete; ``.toc`` and ``.toi`` allow ties. A data line is
``count: 3,1,{2,4}``: `count` people ranked alternative 3 first, then 1, then 2 and 4 as a tie. Unranked alternatives
are not compared. The names of the alternatives in the header are the ids of the items.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pairseek.core.types import ItemId
from pairseek.errors import InvalidChoices
from pairseek.people.choices import Choices

EXTENSIONS = (".soc", ".soi", ".toc", ".toi")
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.IGNORECASE)
_GROUP = re.compile(r"\s*(\{[^{}]*\}|[^,{}]+)\s*(,|$)")
_MAX_PEOPLE = 10_000_000


def read(path: Path, ids: Sequence[ItemId] | None = None) -> Choices:
    """Read the rankings of a file as choices."""
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
            count, groups = _parse_order(path, number, line, names, ties=path.suffix.lower() in (".toc", ".toi"))
            if len(rankings) + count > _MAX_PEOPLE:
                raise InvalidChoices(
                    f"{path}, line {number}: the file has more than {_MAX_PEOPLE:,} people; reduce it to a sample"
                )
            # A number distinguishes the people of one line.
            rankings += [(f"{number}.{i}" if count > 1 else str(number), groups) for i in range(1, count + 1)]
    if not rankings:
        raise InvalidChoices(f"{path} contains no rankings: give lines such as '12: 3,1,2'")
    twice = next((name for name in names.values() if list(names.values()).count(name) > 1), None)
    if twice is not None:
        raise InvalidChoices(f"{path}: two alternatives have the name {twice!r}; make the names unique")
    return Choices.from_rankings(rankings, ids=ids if ids is not None else [*names.values()])


def _parse_order(
    path: Path, number: int, line: str, names: dict[int, str], *, ties: bool
) -> tuple[int, list[list[ItemId]]]:
    """Return the number of people on a data line, and their ranking as groups of tied items."""
    head, colon, body = line.partition(":")
    if not colon or not head.strip().isdecimal() or int(head) < 1:
        raise InvalidChoices(
            f"{path}, line {number}, column 1: {head.strip()[:30]!r} is not a number of people; expected a line "
            f"such as '12: 3,1,2'"
        )
    offset = len(head) + 1
    groups: list[list[ItemId]] = []
    seen: set[str] = set()
    position = 0
    while position < len(body):
        match = _GROUP.match(body, position)
        if match is None:
            raise InvalidChoices(
                f"{path}, line {number}, column {offset + position + 1}: {body[position:].strip()[:30]!r} is not an "
                f"alternative; separate alternatives by commas, and put ties into braces"
            )
        text = match[1].strip()
        where = f"{path}, line {number}, column {offset + match.start(1) + 1}"
        if text.startswith("{") and not ties:
            raise InvalidChoices(
                f"{where}: {text!r} is a tie, and {path.suffix} files have no ties; rename the file to .toc"
            )
        group: list[ItemId] = []
        for cell in text.strip("{}").split(","):
            if not cell.strip().isdecimal() or int(cell) not in names:
                raise InvalidChoices(
                    f"{where}: {cell.strip()!r} is not one of the {len(names)} alternatives in the header"
                )
            name = names[int(cell)]
            if name in seen:
                raise InvalidChoices(f"{where}: {name!r} is ranked twice; rank each alternative once")
            seen.add(name)
            group.append(name)
        groups.append(group)
        position = match.end()
    return int(head), groups
