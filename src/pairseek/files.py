"""A search as a file: JSON with a checksum, replaced in one step."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from pairseek._types import JSON
from pairseek.errors import InvalidFile

FORMAT = "pairseek search"
FORMAT_VERSION = 1


def _digest(body: Any) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: str | Path, body: JSON) -> None:
    """Write the record. The old file is whole until the new one is complete and on disk."""
    path = Path(path)
    record = {"format": FORMAT, "format_version": FORMAT_VERSION, **body}
    record["checksum"] = _digest(record)
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, path.stat().st_mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | Path) -> JSON:
    """Read a record; every way in which it can be wrong has its own message. The file is never touched."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidFile(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} cannot be read as text: {error}") from None
    if not text.strip():
        raise InvalidFile(f"{path} is empty: it is not a saved search")
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        begins = FORMAT in text[:200]
        what = "is cut off or damaged" if begins else "is not a saved search (not JSON)"
        raise InvalidFile(f"{path} {what}, at line {error.lineno}: {error.msg}; it was left as it is") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InvalidFile(f"{path} is JSON but not a saved search: it lacks format = {FORMAT!r}")
    version = record.get("format_version")
    if version != FORMAT_VERSION:
        raise InvalidFile(
            f"{path} has format version {version!r} (written by pairseek {record.get('pairseek_version')!r}), "
            f"this pairseek reads version {FORMAT_VERSION}: use a matching pairseek; it was left as it is"
        )
    checksum = record.pop("checksum", None)
    if checksum != _digest(record):
        raise InvalidFile(f"{path} was edited or damaged: its checksum does not fit; it was left as it is")
    return record
