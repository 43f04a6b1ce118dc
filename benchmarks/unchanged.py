"""Recording and comparison of what a refactoring must not change: searches, sessions, exports and the paper's curves.

    python benchmarks/unchanged.py record FOLDER              # before: records this checkout
    python benchmarks/unchanged.py compare FOLDER             # after: lists differences, exits with 1 if any
    python benchmarks/unchanged.py compare FOLDER --only searches -k goal

Everything is observed from the outside: through the Python API, the service's HTTP API and pages, and the command line.
Numbers are compared to the last bit, so record and compare on the same machine with the same packages. Curves are for
Food-10k if PAIRSEEK_DATA names its folder, and for synthetic items otherwise. Each part is a JSON file in the folder,
with an entry for each case.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy

import food
import pairseek as ps
from unchanged_crashes import CRASHED

PARTS = ("searches", "sessions", "exports", "curves")
SHOWN = 5
"""Maximum number of differences printed per case."""
_WIDTH = 160


def cases_of(part: str, wanted: str) -> Iterator[tuple[str, Any]]:
    """Yield name and record of each case of a part whose name contains a text."""
    # Imported here, because importing the service takes longer than running a few searches.
    if part in ("sessions", "exports"):
        from unchanged_service import cases

        return cases(part, wanted)
    if part == "curves":
        from unchanged_curves import cases
    else:
        from unchanged_searches import cases
    return cases(wanted)


def plain(value: Any) -> Any:
    """Return a record as it reads back from its file."""
    return json.loads(json.dumps(value))


def written(value: Any, indent: str = "") -> str:
    """Return JSON with one entry per line; lists of plain values and short entries stay on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, dict) and value and (indent == "" or len(flat) > _WIDTH):
        rows = (f"{inner}{json.dumps(key, ensure_ascii=False)}: {written(one, inner)}" for key, one in value.items())
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and len(flat) > _WIDTH and any(isinstance(one, dict | list | str) for one in value):
        return "[\n" + ",\n".join(f"{inner}{written(one, inner)}" for one in value) + f"\n{indent}]"
    return flat


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the paths where two records differ, with both values; floats differ if any bit does."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from differences(before.get(key, _MISSING), after.get(key, _MISSING), f"{path}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            pair = (some[index] if index < len(some) else _MISSING for some in (before, after))
            yield from differences(*pair, f"{path}/{index}")
    elif repr(before) != repr(after):
        yield f"{path or '/'}: {_short(before)} -> {_short(after)}"


class _Missing:
    def __repr__(self) -> str:
        return "(nothing)"


_MISSING = _Missing()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}..."


def about() -> dict[str, str]:
    """Return what the last bits depend on besides the code."""
    versions = {one.__name__: one.__version__ for one in (np, scipy, numba)}
    return {"pairseek": ps.__version__, "python": platform.python_version(), **versions, "items": food.name()}


def record(folder: Path, chosen: list[str], wanted: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    crashed = 0
    for part in chosen:
        began, found = time.perf_counter(), dict(cases_of(part, wanted))
        for name in (name for name, one in found.items() if list(one) == [CRASHED]):
            print(f"{part}, {name}: {found[name][CRASHED]}")
            crashed = 1
        text = written({"about": about(), "cases": plain(found)})
        (folder / f"{part}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{part}: {len(found)} cases in {time.perf_counter() - began:.0f} s", flush=True)
    return crashed


def compare(folder: Path, chosen: list[str], wanted: str) -> int:
    changed = 0
    for part in chosen:
        path = folder / f"{part}.json"
        if not path.is_file():
            print(f"{part}: {path} is missing: record it first, or select other parts with --only")
            changed += 1
            continue
        known = json.loads(path.read_text(encoding="utf-8"))
        for line in differences(known["about"], about()):
            print(f"{part}: recorded elsewhere, so the last bits may differ: {line[1:]}")
        before = {name: one for name, one in known["cases"].items() if wanted in name}
        began, equal, seen = time.perf_counter(), 0, set()
        for name, after in cases_of(part, wanted):
            seen.add(name)
            lines = list(differences(before.get(name, _MISSING), plain(after)))
            equal += not lines
            _tell(part, name, lines)
        for name in before.keys() - seen:
            _tell(part, name, ["this case was recorded but not run"])
        changed += len(before.keys() | seen) - equal
        print(f"{part}: {equal} of {len(before.keys() | seen)} cases equal ({time.perf_counter() - began:.0f} s)")
    return int(changed > 0)


def _tell(part: str, name: str, lines: list[str]) -> None:
    if lines:
        more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        print(f"\n{part}, {name}:", *lines[:SHOWN], *more, sep="\n   ", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; repeat for several")
    parser.add_argument("-k", dest="wanted", metavar="NAME", default="", help="cases whose name contains this")
    given = parser.parse_args()
    # As in the other benchmarks, items of the paper may also come from the folder next to the checkout.
    if food.folder() is not None:
        os.environ["PAIRSEEK_DATA"] = str(food.folder())
    chosen = [part for part in PARTS if part in (given.only or PARTS)]
    return (record if given.action == "record" else compare)(given.folder, chosen, given.wanted)


if __name__ == "__main__":
    sys.exit(main())
