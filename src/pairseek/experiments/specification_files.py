"""Specifications as TOML files and plain data."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pairseek.core.csv import TEXT_ENDINGS
from pairseek.core.validation import check_known_fields, suggestion, table, whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.runs import toml
from pairseek.experiments.runs.part_records import part_from_record, strategy_from_record
from pairseek.experiments.specification import NAMED_DATA, Contender, ResponseSpec, Setting, Specification
from pairseek.model.responses import Response

_SETTING_FIELDS = tuple(f.name for f in fields(Setting))
_SPECIFICATION_FIELDS = tuple(f.name for f in fields(Specification))
_ITEM_FILE_ENDINGS = (*TEXT_ENDINGS, ".xlsx", ".parquet", ".npy", ".npz", ".mat")


def read_specification(path: str | Path) -> Specification:
    r"""Read a specification from a TOML file; paths and modules in it are relative to its folder.

    Parameters
    ----------
    path
        The file. Its stem names the specification if the file gives no name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pairseek.experiments import read_specification
    >>> text = 'data = "colours"\nqueries = 20\nstrategies = ["infogain", "random"]\n'
    >>> size = Path("mine.toml").write_text(text)
    >>> specification = read_specification("mine.toml")
    >>> specification.name, specification.queries, specification.labels
    ('mine', 20, ('InfoGain', 'Random'))
    """
    path = Path(path)
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidParameter(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidParameter(f"{path} cannot be read as TOML: {error}") from None
    record.setdefault("name", path.stem)
    # Worker processes inherit `sys.path`. The folder goes last, so it hides no installed module.
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    try:
        return read_record(record, folder=path.parent)
    except InvalidParameter as error:
        raise InvalidParameter(f"{path}: {error}") from None


def read_record(record: Mapping[str, Any], *, folder: Path | None = None) -> Specification:
    """Build a specification from plain data.

    Setting fields at the top level are defaults for all settings; without ``settings``, they define a single setting.

    Parameters
    ----------
    record
        The fields of the specification, as in a TOML file.
    folder
        Folder to which paths of data files are relative. None: the working directory.

    Examples
    --------
    >>> from pairseek.experiments import read_record
    >>> strategies = [{"name": "infogain"}, {"name": "actrank", "votes": 3}]
    >>> record = {"name": "mine", "data": "colours", "strategies": strategies}
    >>> specification = read_record(record)
    >>> specification.labels, specification.trials
    (('InfoGain', 'ActRank-3'), 50)
    """
    check_known_fields(record, "the specification", (*_SPECIFICATION_FIELDS, *_SETTING_FIELDS))
    common = {name: record[name] for name in _SETTING_FIELDS if name in record}
    setting_records = _tables("settings", record["settings"]) if "settings" in record else [{}]
    settings = tuple(
        _setting({**common, **setting}, f"settings[{i}]", folder) for i, setting in enumerate(setting_records)
    )
    values = {
        name: record[name]
        for name in _SPECIFICATION_FIELDS
        if name in record and name not in ("settings", "strategies")
    }
    if "posterior" in values:
        values["posterior"] = part_from_record("posterior", table(values["posterior"], "posterior"))
    if "metrics" in values:
        values["metrics"] = tuple(_name_list("metrics", values["metrics"]))
    if "strategies" not in record:
        raise InvalidParameter(
            "strategies is missing: give at least one [[strategies]] with a name", field="strategies"
        )
    queries = whole(record.get("queries", 80), "queries", 1)
    strategies = tuple(
        _contender(entry, f"strategies[{i}]", queries)
        for i, entry in enumerate(_tables("strategies", record["strategies"]))
    )
    return Specification(settings=settings, strategies=strategies, **values)


def _tables(field: str, value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise InvalidParameter(f"{field} is {value!r}: give a list, written [[{field}]] in TOML", field=field)
    return [
        {"name": entry} if field == "strategies" and isinstance(entry, str) else table(entry, f"{field}[{i}]")
        for i, entry in enumerate(value)
    ]


def _name_list(field: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InvalidParameter(f"{field} is {value!r}: give a list of names", field=field)
    return value


def _setting(record: Mapping[str, Any], where: str, folder: Path | None) -> Setting:
    check_known_fields(record, where, _SETTING_FIELDS)
    values = dict(record)
    try:
        if "data" in values:
            values["data"] = _data_path(values["data"], folder)
        if "response" in values:
            values["response"] = _response_spec("response", values["response"])
        if "truth" in values and not isinstance(values["truth"], str):
            values["truth"] = _response_spec("truth", values["truth"])
        if values.get("prior") == "items":
            values["prior"] = None
        elif "prior" in values:
            values["prior"] = part_from_record("prior", table(values["prior"], "prior"))
        return Setting(**values)
    except InvalidParameter as error:
        raise InvalidParameter(f"{where}: {error}") from None


def _data_path(value: object, folder: Path | None) -> str:
    if not isinstance(value, str):
        raise InvalidParameter(f"data is {value!r}: give {', '.join(NAMED_DATA)}, or a file")
    if value in NAMED_DATA or value.partition(":")[0] in ("items", "space"):
        return value
    if Path(value).suffix.lower() not in _ITEM_FILE_ENDINGS:
        raise InvalidParameter(
            f"data is {value!r}: use {', '.join(NAMED_DATA)}, or a file ending in {', '.join(_ITEM_FILE_ENDINGS)}"
            f"{suggestion(value, NAMED_DATA)}"
        )
    return value if folder is None or Path(value).is_absolute() else str(folder / value)


# Fields of a `Response` that a `ResponseSpec` lacks.
_RESPONSE_FIELDS = {"lapse", "reliability", "tie_width", "curvature"}


def _response_spec(field: str, value: object) -> ResponseSpec | Response:
    record = table(value, field)
    other_fields = set(record) - {f.name for f in fields(ResponseSpec)}
    if ":" in str(record.get("name")) or other_fields & _RESPONSE_FIELDS or isinstance(record.get("k"), Mapping):
        return part_from_record("response", {"name": "logistic", **record})  # type: ignore[no-any-return]
    check_known_fields(record, field, [f.name for f in fields(ResponseSpec)])
    try:
        return ResponseSpec(**record)
    except InvalidParameter as error:
        raise InvalidParameter(str(error).replace("response.", f"{field}.", 1)) from None


def _contender(record: Mapping[str, Any], where: str, queries: int) -> Contender:
    options = {name: record[name] for name in ("label", "rate", "posterior") if name in record}
    strategy_record = {name: value for name, value in record.items() if name not in options}
    try:
        if "posterior" in options:
            options["posterior"] = part_from_record("posterior", table(options["posterior"], "posterior"))
        return Contender(strategy_from_record(strategy_record, queries), **options)
    except (InvalidParameter, TypeError) as error:
        raise InvalidParameter(f"{where}: {error}") from None


def to_toml(specification: Specification) -> str:
    """Return the specification as TOML, in the form that `read_specification` reads.

    Examples
    --------
    >>> import pairseek as ps
    >>> from pairseek.experiments import Contender, Setting, Specification, to_toml
    >>> settings, strategies = (Setting(data="colours"),), (Contender(ps.InfoGain()),)
    >>> specification = Specification("mine", settings, strategies)
    >>> print(to_toml(specification))
    name = "mine"
    ...
    """
    return toml.to_toml(specification.record())
