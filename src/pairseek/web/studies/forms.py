"""Form for a new study, converted to the settings of a study file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from starlette.datastructures import UploadFile

from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter, PairseekError
from pairseek.web.errors import InvalidPictures
from pairseek.web.studies.configuration import MOST_YAML, read_yaml
from pairseek.web.studies.media import MOST_BYTES, MOST_PICTURES, Files, from_zip

_PLAIN = (
    "kind",
    "title",
    "slug",
    "question",
    "instructions",
    "consent",
    "debrief",
    "language",
    "goal",
    "strategy",
    "learn",
)
_NUMBERS = (
    "answers",
    "dimensions",
    "repeated",
    "random",
    "resume.hours",
    "completion.wait",
    "response.k",
    "prior.low",
    "prior.high",
    "prior.mean",
    "prior.covariance",
    "rest.pair",
    "rest.item",
)
_WHOLE = ("answers", "dimensions", "completion.wait", "rest.pair", "rest.item")
_TICKS = ("standardize", "scaled", "offer.undo", "offer.tie", "offer.skip")
_NESTED = (
    "practice.left",
    "practice.right",
    "practice.anchor",
    "response.name",
    "response.noise",
    "prior.name",
    "resume.policy",
    "completion.address",
    "completion.codes.finished",
    "completion.codes.failed_attention",
    "completion.codes.no_consent",
)
_FIELDS = {
    *_PLAIN,
    *_NUMBERS,
    *_TICKS,
    *_NESTED,
    "attention",
    "stop.name",
    "stop.value",
    "items",
    "images",
    "coordinates",
    "more",
    "yaml",
}
STOPS = {"radius": "radius", "information": "bits", "best_item": "probability"}
"""Stop rules of the form, and the setting that the number of each is."""
NEVER = "never"
"""Choice of the form for no stop rule, also where the goal has one."""


def record_of(sent: object, values: Mapping[str, str]) -> JSON:
    """Return the settings of the YAML file, if one was sent, or of the form fields."""
    if isinstance(sent, UploadFile) and sent.filename:
        return _of_file(sent)
    record: JSON = {}
    for name in (*_PLAIN, *_NESTED):
        if values.get(name, "").strip():
            _put(record, name, values[name].strip())
    for name in _NUMBERS:
        if values.get(name, "").strip():
            _put(record, name, _number(name, values[name].strip()))
    if values.get("coordinates") and values.get("kind") != "similarity":
        record["coordinates"] = json.loads(values["coordinates"])
    for name in _TICKS:
        _put(record, name, values.get(name) == "true")
    parts = _attention(values.get("attention", "")) | _stop(values)
    return _complete(record, values) | parts | _further(values.get("more", ""))


def field_of(error: PairseekError, values: Mapping[str, str]) -> str:
    """Return the form field of an invalid setting, or the one that contains it; empty for the form as a whole."""
    part, _, setting = error.field.partition(".")
    if part == "stop" and setting not in ("", "name"):
        # The form has one number, whatever a rule calls its setting.
        return "stop.value"
    path = error.field
    while path:
        for name in (path, f"{path}.name"):
            if name in _FIELDS:
                return name
        path = path.rpartition(".")[0]
    return "more" if part and values.get("more", "").strip() else ""


def _of_file(sent: UploadFile) -> JSON:
    # Characters have up to four bytes; `read_yaml` refuses what has too many characters.
    content = sent.file.read(4 * MOST_YAML + 4)
    record = read_yaml(content.decode("utf-8", errors="replace"))
    if not isinstance(record, dict):
        raise InvalidParameter(
            "the study's file contains no settings: write title: ... and further settings", field="yaml"
        )
    return record


def _complete(record: JSON, values: Mapping[str, str]) -> JSON:
    """Add the names of parts for which numbers were given."""
    if values.get("response.unknown") == "true":
        response = record.setdefault("response", {})
        median = response.get("k")
        response["k"] = "unknown" if median is None else _unknown("log_normal", median=median, spread=1.5)
        response["lapse"] = _unknown("beta")
    if "response" in record:
        record["response"].setdefault("name", "logistic")
    if "name" not in record.get("prior", {"name": ""}):
        raise InvalidParameter(
            "the setting 'prior.name' is empty, but its numbers are given: choose a prior", field="prior.name"
        )
    return record


def _unknown(prior: str, **settings: float | None) -> JSON:
    given = {name: value for name, value in settings.items() if value is not None}
    return {"name": "unknown", "prior": {"name": prior, **given}}


def _stop(values: Mapping[str, str]) -> JSON:
    name, value = (values.get(field, "").strip() for field in ("stop.name", "stop.value"))
    if not name:
        if value:
            raise InvalidParameter(
                f"the setting 'stop.name' is empty, but its number is {value[:50]!r}: choose a rule", field="stop.name"
            )
        return {}
    if name == NEVER:
        return {"stop": []}
    if name not in STOPS:
        raise InvalidParameter(
            f"the setting 'stop.name' is {name[:50]!r}: give one of {', '.join([NEVER, *STOPS])}", field="stop.name"
        )
    return {"stop": [{"name": name, STOPS[name]: _number("stop.value", value)}]}


def _further(text: str) -> JSON:
    """Parse the settings that have no field of their own, as YAML."""
    if not text.strip():
        return {}
    further = read_yaml(text)
    if not isinstance(further, dict):
        raise InvalidParameter(
            f"the setting 'more' is {text.strip()[:80]!r}: write settings, as in prior: ...", field="more"
        )
    return {str(name): value for name, value in further.items()}


def pictures_of(sent: Sequence[UploadFile]) -> Files:
    """Return the uploaded pictures: the content of one zip, or single files."""
    if len(sent) > MOST_PICTURES:
        raise InvalidPictures(f"{len(sent):,} images were sent: a study takes at most {MOST_PICTURES:,}")
    zips = [file for file in sent if str(file.filename).lower().endswith(".zip")]
    if zips:
        if len(sent) > 1:
            raise InvalidPictures(f"{len(sent)} files of images were sent, a zip among them: send one zip, or images")
        return from_zip(zips[0].file)

    def reader(file: UploadFile) -> Callable[[], bytes]:
        def read() -> bytes:
            file.file.seek(0)
            return file.file.read(MOST_BYTES + 1)

        return read

    return {PurePosixPath(str(file.filename).replace("\\", "/")).name: reader(file) for file in sent}


def _put(record: JSON, name: str, value: object) -> None:
    *path, last = name.split(".")
    for part in path:
        record = record.setdefault(part, {})
    record[last] = value


def _number(name: str, text: str) -> float | int:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        raise InvalidParameter(f"the setting {name!r} is {text[:50]!r}: give a number", field=name) from None
    return int(number) if number.is_integer() and name in _WHOLE else number


def _attention(text: str) -> JSON:
    pairs = []
    for line in text.splitlines():
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(",")]
        if len(parts) not in (3, 4):
            raise InvalidParameter(
                f"the setting 'attention' has the line {line[:80]!r}: write left, right, answer, and in a similarity "
                f"study the anchor after them",
                field="attention",
            )
        pairs.append(dict(zip(("left", "right", "answer", "anchor"), parts, strict=False)))
    return {"attention": {"pairs": pairs}} if pairs else {}
