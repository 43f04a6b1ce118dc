"""Conversion of the form for a new study to the settings of a study file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from starlette.datastructures import UploadFile

from pairseek.core.messages import DEFAULT, Message
from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter, PairseekError
from pairseek.web.errors import InvalidMedia
from pairseek.web.studies.configuration import slug_of
from pairseek.web.studies.questions import MAX_QUESTIONS
from pairseek.web.studies.recruitment import closing_time
from pairseek.web.studies.texts import participant_messages
from pairseek.web.studies.uploads import MAX_FILE_BYTES, MAX_FILES, Files, from_zip
from pairseek.web.studies.yaml_reader import MAX_YAML_LENGTH, read_yaml

_TEXT_FIELDS = (
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
_NUMBER_FIELDS = (
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
    "quota",
)
_INTEGER_FIELDS = ("quota", "answers", "dimensions", "completion.wait", "rest.pair", "rest.item")
_CHECKBOXES = ("standardize", "scaled", "offer.undo", "offer.tie", "offer.skip")
_NESTED_FIELDS = (
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
    "completion.codes.quota_full",
)
_FIELDS = {
    *_TEXT_FIELDS,
    *_NUMBER_FIELDS,
    *_CHECKBOXES,
    *_NESTED_FIELDS,
    "attention",
    "closes",
    "stop.name",
    "stop.value",
    "items",
    "images",
    "coordinates",
    "more",
    "yaml",
}
STOPS = {"radius": "radius", "information": "bits", "best_item": "probability"}
"""Stop rules of the form, and the setting of each to which the form's number applies."""
NEVER = "never"
"""Form option that disables all stop rules, including the goal's."""


def record_of(file: object, values: Mapping[str, str]) -> JSON:
    """Return the settings of an uploaded YAML file, or of the form fields if no file was sent."""
    if isinstance(file, UploadFile) and file.filename:
        return _record_of_file(file)
    record: JSON = {}
    for name in (*_TEXT_FIELDS, *_NESTED_FIELDS):
        if values.get(name, "").strip():
            _put(record, name, values[name].strip())
    for name in _NUMBER_FIELDS:
        if values.get(name, "").strip():
            _put(record, name, _number(name, values[name].strip()))
    if values.get("coordinates") and values.get("kind") != "similarity":
        record["coordinates"] = json.loads(values["coordinates"])
    for name in _CHECKBOXES:
        _put(record, name, values.get(name) == "true")
    if values.get("closes", "").strip():
        record["closes"] = closing_time(values["closes"])
    record |= {"texts": _texts(values), "questions": _questions(values)}
    parts = _attention(values.get("attention", ""), apart=values.get("attention.apart") == "true") | _stop(values)
    return _complete(record, values) | parts | _further_settings(values.get("more", ""))


def field_of(error: PairseekError, values: Mapping[str, str]) -> str:
    """Return the form field of an invalid setting, or the field that contains it; empty for the whole form."""
    part, _, setting = error.field.partition(".")
    if part == "questions" and setting[:1].isdecimal():
        # The form's questions are counted with those that are left empty.
        filled = [number for number in range(MAX_QUESTIONS) if values.get(f"questions.{number}.text", "").strip()]
        index = int(setting.partition(".")[0])
        return f"questions.{filled[index]}.text" if index < len(filled) else "more"
    if part == "texts":
        return next((name for name in (error.field, f"{error.field}.one") if name in values), "more")
    if part == "stop" and setting not in ("", "name"):
        # The form has only one number field, whatever the rule calls its setting.
        return "stop.value"
    path = error.field
    while path:
        for name in (path, f"{path}.name"):
            if name in _FIELDS:
                return name
        path = path.rpartition(".")[0]
    return "more" if part and values.get("more", "").strip() else ""


def _texts(values: Mapping[str, str]) -> dict[str, Message]:
    """Return the texts that are filled in; a text with a plural has two fields."""
    texts: dict[str, Message] = {}
    for key, usual in participant_messages(DEFAULT).items():
        if isinstance(usual, str):
            if text := values.get(f"texts.{key}", "").strip():
                texts[key] = text
        else:
            forms = {form: values.get(f"texts.{key}.{form}", "").strip() for form in usual}
            if any(forms.values()):
                texts[key] = {form: text for form, text in forms.items() if text}
    return texts


def _questions(values: Mapping[str, str]) -> list[JSON]:
    """Return the researcher's own questions; each is named after its text."""
    questions: list[JSON] = []
    for number in range(MAX_QUESTIONS):
        fields = {
            name: values.get(f"questions.{number}.{name}", "").strip() for name in ("text", "kind", "options", "when")
        }
        if not fields["text"]:
            continue
        question: JSON = {name: fields[name] for name in ("text", "kind", "when") if fields[name]}
        plain = slug_of(fields["text"]).replace("-", "_")[:30].strip("_")
        question["name"] = f"q{number + 1}_{plain}"
        if question.get("kind", "choice") == "choice":
            question["options"] = [line.strip() for line in fields["options"].splitlines() if line.strip()]
        question["required"] = values.get(f"questions.{number}.required") == "true"
        questions.append(question)
    return questions


def _record_of_file(file: UploadFile) -> JSON:
    # A character has up to four bytes; `read_yaml` rejects text with too many characters.
    content = file.file.read(4 * MAX_YAML_LENGTH + 4)
    record = read_yaml(content.decode("utf-8", errors="replace"))
    if not isinstance(record, dict):
        raise InvalidParameter(
            "the study file contains no settings: write title: ... and further settings", field="yaml"
        )
    return record


def _complete(record: JSON, values: Mapping[str, str]) -> JSON:
    """Add the names of parts for which the form has only numbers."""
    if values.get("response.unknown") == "true":
        response = record.setdefault("response", {})
        median = response.get("k")
        response["k"] = "unknown" if median is None else _unknown_record("log_normal", median=median, spread=1.5)
        response["lapse"] = _unknown_record("beta")
    if "response" in record:
        record["response"].setdefault("name", "logistic")
    if "name" not in record.get("prior", {"name": ""}):
        raise InvalidParameter(
            "the setting 'prior.name' is empty, but the prior's numbers are given: choose a prior", field="prior.name"
        )
    return record


def _unknown_record(prior: str, **settings: float | None) -> JSON:
    set_values = {name: value for name, value in settings.items() if value is not None}
    return {"name": "unknown", "prior": {"name": prior, **set_values}}


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


def _further_settings(text: str) -> JSON:
    """Parse the field for settings in YAML."""
    if not text.strip():
        return {}
    settings = read_yaml(text)
    if not isinstance(settings, dict):
        raise InvalidParameter(
            f"the setting 'more' is {text.strip()[:80]!r}: write settings, such as prior: ...", field="more"
        )
    return {str(name): value for name, value in settings.items()}


def files_of(uploads: Sequence[UploadFile]) -> Files:
    """Return the uploaded pictures, sounds and videos, from one zip or from single files."""
    if len(uploads) > MAX_FILES:
        raise InvalidMedia(f"{len(uploads):,} files were sent: send at most {MAX_FILES:,}")
    zips = [file for file in uploads if str(file.filename).lower().endswith(".zip")]
    if zips:
        if len(uploads) > 1:
            raise InvalidMedia(f"{len(uploads)} files were sent, including a zip: send either one zip, or single files")
        return from_zip(zips[0].file)
    files: dict[str, Callable[[], bytes]] = {}
    for upload in uploads:
        name = PurePosixPath(str(upload.filename).replace("\\", "/")).name
        if name in files:
            raise InvalidMedia(f"two files are named {name[:100]!r}: rename one of them")
        files[name] = _reader(upload)
    return files


def _reader(file: UploadFile) -> Callable[[], bytes]:
    def read() -> bytes:
        file.file.seek(0)
        return file.file.read(MAX_FILE_BYTES + 1)

    return read


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
    return int(number) if number.is_integer() and name in _INTEGER_FIELDS else number


def _attention(text: str, *, apart: bool) -> JSON:
    pairs = []
    for line in text.splitlines():
        if not line.strip():
            continue
        # A label may contain commas.
        parts = [part.strip() for part in line.split(";" if ";" in line else ",")]
        if len(parts) not in (3, 4):
            raise InvalidParameter(
                f"the setting 'attention' has the line {line[:80]!r}: write left, right, answer, followed in a "
                f"similarity study by the anchor",
                field="attention",
            )
        pairs.append(dict(zip(("left", "right", "answer", "anchor"), parts, strict=False)))
    return {"attention": {"pairs": pairs, "apart": apart}} if pairs else {}
