"""JSON files with a checksum and a format version, written atomically."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pairseek.core.types import JSON
from pairseek.errors import InvalidFile

FORMAT = "pairseek search"
FORMAT_VERSION = 2


@dataclass(frozen=True)
class FileFormat:
    """A kind of file: its format name, its format version, and a noun for messages."""

    format: str
    version: int
    noun: str


SEARCH = FileFormat(FORMAT, FORMAT_VERSION, "a saved search")
LIGHT_SEARCH = FileFormat("pairseek light search", 1, "a light saved search")


def _digest(body: object) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: str | Path, body: JSON, kind: FileFormat = SEARCH) -> None:
    """Write the record. The old file is whole until the new one is complete and on disk.

    A link is followed. A new file gets the mode that the umask says, an old one keeps its own.
    """
    record = {"format": kind.format, "format_version": kind.version, **body}
    record["checksum"] = _digest(record)
    write_atomically(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Replace a file in one step: readers see the old content or the new one, also after a crash.

    A symbolic link is followed. A new file gets the mode of the umask, an existing file keeps its mode.

    Raises
    ------
    InvalidFile
        If the path cannot name a regular file.
    OSError
        If writing fails; the existing file is unchanged.
    """
    target = _target(path)
    data = content.encode() if isinstance(content, str) else content
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        # The mode is set at creation, so that a private file is never readable by others.
        opener = partial(os.open, mode=0o666 if mode is None else mode)
        with open(temporary, "xb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        # Report the path that the caller gave, not that of the temporary file.
        raise OSError(error.errno, error.strerror, str(path)) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _target(path: str | Path) -> Path:
    """Return the file behind any symbolic links; reject a path to which no file can be written."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        folder = target.parent if Path(path).is_symlink() else Path(path).parent
        raise InvalidFile(f"cannot save to {path}: there is no folder {str(folder)!r}; make it first")
    if target.is_dir():
        raise InvalidFile(f"cannot save to {path}: that is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InvalidFile(
            f"cannot save to {path}: it is not a regular file, and would be replaced by one; name another"
        )
    return target


def read(path: str | Path, kind: FileFormat = SEARCH) -> JSON:
    """Read a record; every way in which it can be wrong has its own message. The file is never touched."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidFile(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} cannot be read as text: {error}") from None
    record = _parsed(path, text, kind)
    if not isinstance(record, dict) or record.get("format") != kind.format:
        raise InvalidFile(f"{path} is JSON but not {kind.noun}: it lacks format = {kind.format!r}")
    version = record.get("format_version")
    if version != kind.version:
        raise InvalidFile(
            f"{path} has format version {version!r} (written by pairseek {record.get('pairseek_version')!r}), "
            f"this pairseek reads version {kind.version}: use a matching pairseek; it was left as it is"
        )
    checksum = record.pop("checksum", None)
    try:
        fits = checksum == _digest(record)
    except RecursionError:
        fits = False
    if not fits:
        raise InvalidFile(f"{path} was edited or damaged: its checksum does not fit; it was left as it is")
    return record


def _parsed(path: Path, text: str, kind: FileFormat) -> Any:
    if not text.strip():
        raise InvalidFile(f"{path} is empty: it is not {kind.noun}")
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise InvalidFile(f"{path} is nested too deeply for {kind.noun}; it was left as it is") from None
    except json.JSONDecodeError as error:
        begins = kind.format in text[:200]
        what = "is cut off or damaged" if begins else f"is not {kind.noun} (not JSON)"
        raise InvalidFile(f"{path} {what}, at line {error.lineno}: {error.msg}; it was left as it is") from None
    except ValueError as error:
        raise InvalidFile(f"{path} was edited or damaged: {error}; it was left as it is") from None


def _refuse(text: str) -> float:
    raise ValueError(f"it holds {text}, which is not a finite number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)
