"""Files that come with items: from a folder, a form or a zip."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeAlias

from pairseek.core.archives import ARCHIVE_ERRORS
from pairseek.core.media import FILE_COLUMNS, is_address
from pairseek.core.text import quoted
from pairseek.model.items import Items
from pairseek.web.errors import InvalidMedia
from pairseek.web.studies.formats.damage import Unplayable
from pairseek.web.studies.formats.kinds import is_picture, recording_of, unusable
from pairseek.web.studies.names import readable_name

Files: TypeAlias = Mapping[str, Callable[[], bytes]]
"""Functions that read a file, by the file's name."""

MAX_FILES = 10_000
MAX_FILE_BYTES = 50_000_000
"""Largest picture, sound or video."""
MAX_UNPACKED_BYTES = 2_000_000_000
"""Largest number of bytes to which a zip may unpack."""
# Entries of a zip besides items: folders, and files of operating systems.
_FURTHER_ENTRIES = 2 * MAX_FILES
# Bit in the flags of an entry of a zip.
_ENCRYPTED = 1
_CHUNK_BYTES = 1_000_000


def from_folder(items: Items, folder: Path) -> Files:
    """Return the files of items, which name them by their path in a folder."""
    files: dict[str, Callable[[], bytes]] = {}
    root = folder.resolve()
    for medium in FILE_COLUMNS:
        for name in dict.fromkeys(map(str, items.data.get(medium, ()))):
            if not name or (medium != "image" and is_address(name)):
                continue
            path = (root / name).resolve()
            if root not in path.parents:
                raise InvalidMedia(f"the {medium} {name!r} is outside the folder of the items: move it there")
            if path.is_file():
                files[name] = path.read_bytes
    return files


def from_media_folder(folder: Path) -> Files:
    """Return the files of a folder by name."""
    return {path.name: path.read_bytes for path in folder.iterdir() if path.is_file()}


def items_of_files(files: Files) -> Items | None:
    """Return one item per picture, sound or video; None without files.

    An item is named after its file: `red-oak.jpg` becomes the item `red-oak` with the label Red oak.
    """
    # A zip lists each file by path and by name with the same reader.
    readers = {read: name for name, read in files.items() if not _is_system_file(name)}
    names = sorted(readers.values(), key=str.casefold)
    if not names:
        return None
    stems = [PurePosixPath(name).stem for name in names]
    are_distinct = len(set(stems)) == len(stems)
    labels = [readable_name(stem) for stem in stems]
    media = [_medium_of(name, files[name]()) for name in names]
    data = {
        medium: [name if medium == shown else "" for name, shown in zip(names, media, strict=True)]
        for medium in FILE_COLUMNS
        if medium in media
    }
    return Items._without_warnings(None, stems if are_distinct else names, labels, None, data, least=1)


def _medium_of(name: str, content: bytes) -> str:
    """Return the medium of a file, by its content."""
    check_size(name, len(content))
    try:
        recording = recording_of(content)
    except Unplayable as error:
        raise InvalidMedia(f"{name!r} {error}") from None
    if recording is None and not is_picture(content):
        raise InvalidMedia(f"{name!r} {unusable(content)}")
    return "image" if recording is None else recording.medium


def check_size(name: str, size: int) -> None:
    """Raise `InvalidMedia` for a file that is too large; readers stop after one byte too many."""
    if size > MAX_FILE_BYTES:
        raise InvalidMedia(f"{name!r} has more than {MAX_FILE_BYTES:,} bytes: send a smaller file")


def _is_system_file(name: str) -> bool:
    """Return whether an operating system created the file, such as thumbnails or folder settings."""
    parts = PurePosixPath(name).parts
    is_hidden = any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in parts)
    return is_hidden or (bool(parts) and parts[-1].casefold() in ("thumbs.db", "desktop.ini"))


def from_zip(file: BinaryIO) -> Files:
    """Return the files of a zip by path, and by name if no other file has it."""
    if _entries(file) > MAX_FILES + _FURTHER_ENTRIES:
        raise InvalidMedia(f"the zip contains too many files: send at most {MAX_FILES:,}")
    try:
        archive = zipfile.ZipFile(file)
        members = [entry for entry in archive.infolist() if not entry.is_dir() and not _is_system_file(entry.filename)]
    except ARCHIVE_ERRORS as error:
        raise InvalidMedia(f"the zip cannot be read ({error}): pack it again") from None
    if len(members) > MAX_FILES:
        raise InvalidMedia(f"the zip contains {len(members):,} files: send at most {MAX_FILES:,}")
    if sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
        raise InvalidMedia(f"the zip unpacks to more than {MAX_UNPACKED_BYTES:,} bytes: send smaller files")
    files: dict[str, Callable[[], bytes]] = {}
    names: dict[str, list[str]] = {}
    for member in members:
        path = PurePosixPath(member.filename)
        _check_member(member, path)
        if member.filename in files:
            raise InvalidMedia(f"the zip contains two files {member.filename[:100]!r}: rename one of them")

        def read(member: zipfile.ZipInfo = member, name: str = path.name) -> bytes:
            # The declared size may be wrong, so reading is limited as well.
            try:
                with archive.open(member) as file:
                    return file.read(MAX_FILE_BYTES + 1)
            except ARCHIVE_ERRORS as error:
                raise InvalidMedia(f"{name[:100]!r} cannot be unpacked from the zip ({error}): pack it again") from None

        files[member.filename] = read
        names.setdefault(path.name, []).append(member.filename)
    for name, paths in names.items():
        files.setdefault(name, files[paths[0]] if len(paths) == 1 else _ambiguous(name, paths))
    return files


def _ambiguous(name: str, paths: Sequence[str]) -> Callable[[], bytes]:
    """Return a reader that refuses a name of several files in a zip; their paths still work."""

    def refuse() -> bytes:
        raise InvalidMedia(
            f"the zip contains {len(paths)} files named {name!r} ({quoted(paths, 2)}): rename them, or send a list of "
            f"items that gives their paths"
        )

    return refuse


def _entries(file: BinaryIO) -> int:
    """Return about how many entries the directory of a zip has, before `zipfile` makes an object of each."""
    file.seek(0)
    count = sum(chunk.count(b"PK\x01\x02") for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""))
    file.seek(0)
    return count


def _check_member(member: zipfile.ZipInfo, path: PurePosixPath) -> None:
    name = path.name[:100]
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
        raise InvalidMedia(
            f"the zip contains the path {member.filename[:100]!r}: pack the files again, with plain names"
        )
    if member.flag_bits & _ENCRYPTED:
        raise InvalidMedia(f"{name!r} in the zip is encrypted: pack it again without a password")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidMedia(
            f"{name!r} in the zip is compressed by method {member.compress_type}: pack it again with the usual "
            f"method, deflate"
        )
    if member.file_size > MAX_FILE_BYTES:
        raise InvalidMedia(f"{name!r} has {member.file_size:,} bytes: send a file of at most {MAX_FILE_BYTES:,}")
