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
from typing import Any, BinaryIO

from pairseek.core.types import JSON
from pairseek.errors import InvalidFile

SEARCH_FORMAT = "pairseek search"
SEARCH_FORMAT_VERSION = 2


@dataclass(frozen=True)
class FileFormat:
    """File format: its name, its version, and a noun for messages."""

    name: str
    version: int
    noun: str


SEARCH_FILE = FileFormat(SEARCH_FORMAT, SEARCH_FORMAT_VERSION, "a saved search")
LIGHT_SEARCH_FILE = FileFormat("pairseek light search", 1, "a light saved search")
VECTOR_MAP_FILE = FileFormat("pairseek vector map", 1, "a vector map")


def _digest(body: object) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: str | Path, body: JSON, file_format: FileFormat = SEARCH_FILE) -> None:
    """Write a record with a checksum, atomically: see `write_atomically`."""
    record = {"format": file_format.name, "format_version": file_format.version, **body}
    record["checksum"] = _digest(record)
    write_atomically(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Replace a file atomically: readers see either the old or the new content, even after a crash.

    Symbolic links are followed. A new file gets its mode from the umask; an existing file keeps its mode.

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
        # Report the caller's path, not the temporary one.
        raise OSError(error.errno, error.strerror, str(path)) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_private(path: Path) -> BinaryIO:
    """Open a file for writing; a new file can be read only by its owner, an existing one keeps its mode."""
    return open(path, "wb", opener=partial(os.open, mode=0o600))


def _target(path: str | Path) -> Path:
    """Resolve symbolic links; reject a path that cannot be written to."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        folder = target.parent if Path(path).is_symlink() else Path(path).parent
        raise InvalidFile(f"cannot save to {path}: the folder {str(folder)!r} does not exist; create it first")
    if target.is_dir():
        raise InvalidFile(f"cannot save to {path}: it is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InvalidFile(f"cannot save to {path}: it is not a regular file; choose another path")
    return target


def read(path: str | Path, file_format: FileFormat = SEARCH_FILE) -> JSON:
    """Read a record and verify its format, version and checksum; the file is never modified."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidFile(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} cannot be read as text: {error}") from None
    record = _parse(path, text, file_format)
    if not isinstance(record, dict) or record.get("format") != file_format.name:
        raise InvalidFile(f"{path} is JSON but not {file_format.noun}: it lacks format = {file_format.name!r}")
    version = record.get("format_version")
    if version != file_format.version:
        raise InvalidFile(
            f"{path} has format version {version!r} (written by pairseek {record.get('pairseek_version')!r}), "
            f"but this pairseek reads version {file_format.version}: use a matching pairseek; the file is unchanged"
        )
    checksum = record.pop("checksum", None)
    try:
        is_valid = checksum == _digest(record)
    except RecursionError:
        is_valid = False
    if not is_valid:
        raise InvalidFile(f"{path} was edited or damaged: its checksum does not match; the file is unchanged")
    return record


def _parse(path: Path, text: str, file_format: FileFormat) -> Any:
    if not text.strip():
        raise InvalidFile(f"{path} is empty: it is not {file_format.noun}")
    try:
        return json.loads(text, parse_constant=_reject_constant, parse_float=_finite)
    except RecursionError:
        raise InvalidFile(f"{path} is nested too deeply for {file_format.noun}; the file is unchanged") from None
    except json.JSONDecodeError as error:
        is_recognized = file_format.name in text[:200]
        problem = "is cut off or damaged" if is_recognized else f"is not {file_format.noun} (not JSON)"
        raise InvalidFile(f"{path} {problem}, at line {error.lineno}: {error.msg}; the file is unchanged") from None
    except ValueError as error:
        raise InvalidFile(f"{path} was edited or damaged: {error}; the file is unchanged") from None


def _reject_constant(text: str) -> float:
    raise ValueError(f"it contains {text}, which is not a finite number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _reject_constant(text)
