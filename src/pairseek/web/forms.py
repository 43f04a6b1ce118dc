"""The form for a new study, as the settings of a study's file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from starlette.datastructures import UploadFile

from pairseek.errors import InvalidItems, InvalidParameter, PairseekError
from pairseek.web.media import MOST_BYTES, MOST_PICTURES, Files, from_zip
from pairseek.web.problems import Problem
from pairseek.web.study import read_yaml

_PLAIN = ("title", "slug", "question", "instructions", "consent", "debrief", "language", "strategy")
_NUMBERS = ("answers", "repeated", "random", "resume.hours")
_TICKS = ("scaled", "offer.undo", "offer.tie", "offer.skip")
_NESTED = (
    "practice.left",
    "practice.right",
    "resume.policy",
    "completion.address",
    "completion.codes.finished",
    "completion.codes.failed_attention",
    "completion.codes.no_consent",
)
_MOST_YAML = 1_000_000


def record_of(sent: object, values: Mapping[str, str]) -> dict[str, Any]:
    """Settings from a YAML file, if one was sent, or else from the fields."""
    if isinstance(sent, UploadFile) and sent.filename:
        content = sent.file.read(_MOST_YAML + 1)
        if len(content) > _MOST_YAML:
            raise InvalidParameter(f"the study's file has more than {_MOST_YAML:,} bytes: it holds settings, not items")
        record = read_yaml(content.decode("utf-8", errors="replace"))
        if not isinstance(record, dict):
            raise InvalidParameter("the study's file holds no settings: write title: ... and so on")
        return record
    record = {}
    for name in (*_PLAIN, *_NESTED):
        if values.get(name, "").strip():
            _put(record, name, values[name].strip())
    for name in _NUMBERS:
        if values.get(name, "").strip():
            _put(record, name, _number(name, values[name].strip()))
    for name in _TICKS:
        _put(record, name, values.get(name) == "true")
    pairs = _pairs(values.get("attention", ""))
    if pairs:
        record["attention"] = {"pairs": pairs}
    return record | _further(values.get("more", ""))


def _further(text: str) -> dict[str, Any]:
    """Settings that have no field of their own, as lines of YAML."""
    if not text.strip():
        return {}
    further = read_yaml(text)
    if not isinstance(further, dict):
        raise InvalidParameter(f"the setting 'more' is {text.strip()[:80]!r}: write settings, as in prior: ...")
    return {str(name): value for name, value in further.items()}


def pictures_of(sent: Sequence[UploadFile]) -> Files:
    """The pictures that came along: one zip, or one by one."""
    if len(sent) > MOST_PICTURES:
        raise InvalidItems(f"{len(sent):,} images were sent: a study takes at most {MOST_PICTURES:,}")
    zips = [file for file in sent if str(file.filename).lower().endswith(".zip")]
    if zips:
        if len(sent) > 1:
            raise InvalidItems(f"{len(sent)} files of images were sent, a zip among them: send one zip, or images")
        return from_zip(zips[0].file)

    def reader(file: UploadFile) -> Any:
        def read() -> bytes:
            file.file.seek(0)
            return file.file.read(MOST_BYTES + 1)

        return read

    return {PurePosixPath(str(file.filename).replace("\\", "/")).name: reader(file) for file in sent}


def place_of(error: PairseekError) -> str:
    """The field that an error is about; empty for the form as a whole."""
    if isinstance(error, Problem):
        return "slug" if error.code == "slug_taken" else ""
    text = str(error)
    if isinstance(error, InvalidItems):
        return "images" if re.search(r"\bimages?\b|\bzip\b", text) else "items"
    found = re.match(r"the setting '([^']+)'", text)
    if found:
        return found[1]
    named = {
        "unknown strategy": "strategy",
        "the slug": "slug",
        "attention names": "attention",
        "the address": "completion.address",
    }
    return next((place for words, place in named.items() if text.startswith(words)), "")


def _put(record: dict[str, Any], name: str, value: Any) -> None:
    *path, last = name.split(".")
    for part in path:
        record = record.setdefault(part, {})
    record[last] = value


def _number(name: str, text: str) -> float | int:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise InvalidParameter(f"the setting {name!r} is {text[:50]!r}: give a number") from None
    return int(number) if number.is_integer() and name == "answers" else number


def _pairs(text: str) -> list[dict[str, str]]:
    pairs = []
    for line in text.splitlines():
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != 3:
            raise InvalidParameter(f"the setting 'attention' has the line {line[:80]!r}: write left, right, answer")
        pairs.append(dict(zip(("left", "right", "answer"), parts, strict=True)))
    return pairs
