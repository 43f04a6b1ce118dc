"""Item pictures: validation, rotation to upright, removal of metadata, and resizing."""

from __future__ import annotations

import hashlib
import io
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeAlias

import sqlalchemy as sa

from pairseek.core.archives import UNREADABLE
from pairseek.core.media import PICTURE_FILE
from pairseek.core.text import quoted
from pairseek.errors import MissingExtra
from pairseek.model.items import Items
from pairseek.store import media
from pairseek.store.media import StoredPicture
from pairseek.web.errors import InvalidPictures
from pairseek.web.studies.names import readable_name

if TYPE_CHECKING:
    from PIL import Image

Files: TypeAlias = Mapping[str, Callable[[], bytes]]
"""Functions that read a file, by the file's name."""

WIDTHS = (320, 640, 1280)
"""Widths in pixels of the stored copies of a picture."""
MAX_PICTURES = 10_000
MAX_PICTURE_BYTES = 20_000_000
MAX_PICTURE_PIXELS = 50_000_000
MAX_PICTURE_SIDE = 16_383
"""Largest width and height of a picture, which is the largest of a WebP."""
MAX_PIXELS = 20_000_000_000
"""Largest number of pixels of all pictures together, which take some ten minutes to convert."""
MAX_UNPACKED_BYTES = 2_000_000_000
"""Largest number of bytes to which a zip of pictures may unpack."""
KINDS = ("JPEG", "PNG", "WEBP", "GIF")
"""Accepted picture formats."""
_WEBP_QUALITY = 82
# Entries of a zip besides pictures: folders, and files of operating systems.
_FURTHER_ENTRIES = 2 * MAX_PICTURES
# Bit in the flags of an entry of a zip.
_ENCRYPTED = 1
_CHUNK_BYTES = 1_000_000
# Rows of a picture that are converted at once.
_STRIP_ROWS = 256
# What Pillow raises for damaged pictures.
_DAMAGED = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    struct.error,
    zlib.error,
    MemoryError,
)
# Bytes of converted pictures kept in memory before they spill to a file.
_MAX_BUFFER_BYTES = 16_000_000


def from_folder(items: Items, folder: Path) -> Files:
    """Return the pictures of items, which name them by their path in a folder."""
    files: dict[str, Callable[[], bytes]] = {}
    root = folder.resolve()
    for name in dict.fromkeys(map(str, items.data.get("image", ()))):
        if not name:
            continue
        path = (root / name).resolve()
        if root not in path.parents:
            raise InvalidPictures(f"the image {name!r} is outside the folder of the items: move it there")
        if path.is_file():
            files[name] = path.read_bytes
    return files


def from_picture_folder(folder: Path) -> Files:
    """Return the files of a folder of pictures by name."""
    return {path.name: path.read_bytes for path in folder.iterdir() if path.is_file()}


def items_of_pictures(files: Files) -> Items | None:
    """Return one item per picture; None without pictures.

    An item is named after its file: `red-oak.jpg` becomes the item `red-oak` with the label Red oak.
    """
    # A zip lists each file by path and by name with the same reader.
    names = {read: name for name, read in files.items() if not _is_system_file(name)}
    pictures = sorted(names.values(), key=str.casefold)
    if not pictures:
        return None
    stems = [PurePosixPath(name).stem for name in pictures]
    are_distinct = len(set(stems)) == len(stems)
    labels = [readable_name(stem) for stem in stems]
    return Items._unwarned(None, stems if are_distinct else pictures, labels, None, {"image": pictures}, least=1)


def _is_system_file(name: str) -> bool:
    """Return whether an operating system created the file, such as thumbnails or folder settings."""
    last = PurePosixPath(name).name
    return last.startswith(".") or last.casefold() in ("thumbs.db", "desktop.ini")


def from_zip(file: BinaryIO) -> Files:
    """Return the pictures of a zip by file name and by path."""
    if _entries(file) > MAX_PICTURES + _FURTHER_ENTRIES:
        raise InvalidPictures(f"the zip contains too many files: send at most {MAX_PICTURES:,} images")
    try:
        archive = zipfile.ZipFile(file)
        members = [entry for entry in archive.infolist() if not entry.is_dir() and "__MACOSX" not in entry.filename]
    except UNREADABLE as error:
        raise InvalidPictures(f"the file of images is not a readable zip ({error}): pack it again") from None
    if len(members) > MAX_PICTURES:
        raise InvalidPictures(f"the zip contains {len(members):,} files: send at most {MAX_PICTURES:,} images")
    if sum(member.file_size for member in members) > MAX_UNPACKED_BYTES:
        raise InvalidPictures(f"the zip unpacks to more than {MAX_UNPACKED_BYTES:,} bytes: send smaller images")
    files: dict[str, Callable[[], bytes]] = {}
    for member in members:
        path = PurePosixPath(member.filename)
        _check_member(member, path)

        def read(member: zipfile.ZipInfo = member, name: str = path.name) -> bytes:
            # The declared size may be wrong, so reading is limited as well.
            try:
                with archive.open(member) as file:
                    return file.read(MAX_PICTURE_BYTES + 1)
            except UNREADABLE as error:
                raise InvalidPictures(
                    f"the image {name[:100]!r} cannot be unpacked from the zip ({error}): pack it again"
                ) from None

        files[member.filename] = read
        files.setdefault(path.name, read)
    return files


def _entries(file: BinaryIO) -> int:
    """Return about how many entries the directory of a zip has, before `zipfile` makes an object of each."""
    file.seek(0)
    count = sum(chunk.count(b"PK\x01\x02") for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""))
    file.seek(0)
    return count


def _check_member(member: zipfile.ZipInfo, path: PurePosixPath) -> None:
    name = path.name[:100]
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
        raise InvalidPictures(f"the zip contains the path {member.filename[:100]!r}: use plain names")
    if member.flag_bits & _ENCRYPTED:
        raise InvalidPictures(f"the image {name!r} in the zip is encrypted: pack it again without a password")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidPictures(
            f"the image {name!r} in the zip is compressed by method {member.compress_type}: pack it again with the "
            f"usual method, deflate"
        )
    if member.file_size > MAX_PICTURE_BYTES:
        raise InvalidPictures(
            f"the image {name!r} has {member.file_size:,} bytes: send one of at most {MAX_PICTURE_BYTES:,}"
        )


def with_pictures(items: Items, files: Files) -> tuple[Items, dict[str, Callable[[], bytes]]]:
    """Return the items with the stored names of their pictures, and a reader for each picture."""
    names = [str(name) for name in items.data.get("image", ())]
    distinct = {name for name in names if name}
    if len(distinct) > MAX_PICTURES:
        raise InvalidPictures(f"the items name {len(distinct):,} images: use at most {MAX_PICTURES:,}")
    missing = sorted(distinct - set(files))
    if missing:
        raise InvalidPictures(f"the items name the image {quoted(missing, 1)}, but it was not sent: send it with them")
    if not distinct:
        return items, {}
    hashes, readers, pixels = {}, {}, 0
    for name in sorted(distinct):
        content = files[name]()
        with _open_picture(name, content) as picture:
            pixels += picture.width * picture.height
        if pixels > MAX_PIXELS:
            raise InvalidPictures(f"the images have more than {MAX_PIXELS:,} pixels in total: send smaller ones")
        hashes[name] = hashlib.sha256(content).hexdigest()[:32]
        readers[hashes[name]] = files[name]
    # The file name is kept for exports.
    data = dict(items.data) | {"image": [hashes.get(name, "") for name in names], PICTURE_FILE: names}
    coordinates = items.coordinates if items.d else None
    return Items._unwarned(coordinates, items.ids, items.labels, items.appeal, data, items.columns, least=1), readers


class PictureCopies:
    """Copies of pictures in every size, converted at once and kept in a temporary file until they are stored.

    Conversion takes most of the time, so the transaction that stores pictures and items stays short.

    Parameters
    ----------
    items
        Items that name the pictures.
    readers
        Functions that read a picture, by its stored name.
    """

    def __init__(self, items: Items, readers: Files) -> None:
        files = dict(zip(items.data.get("image", ()), map(str, items.data.get("image_file", ())), strict=True))
        self._file = tempfile.SpooledTemporaryFile(_MAX_BUFFER_BYTES)  # noqa: SIM115 - closed by `__exit__`
        self._copies: list[tuple[StoredPicture, int]] = []
        try:
            for name, read in readers.items():
                for picture in copies(0, name, read(), files[name]):
                    self._file.write(picture.content)
                    self._copies.append((replace(picture, content=b""), len(picture.content)))
        except BaseException:
            self._file.close()
            raise

    def store(self, connection: sa.Connection, study_id: int) -> None:
        """Store the pictures that the study does not have yet; a retried transaction may call this again."""
        present = media.sizes(connection, study_id)
        self._file.seek(0)
        for picture, size in self._copies:
            content = self._file.read(size)
            if picture.name not in present:
                media.add(connection, replace(picture, study_id=study_id, content=content))

    def __enter__(self) -> Self:
        """Return the copies."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the temporary file."""
        self._file.close()


def copies(study_id: int, name: str, content: bytes, file: str | None = None) -> Iterator[StoredPicture]:
    """Yield copies of a picture in every width that is not larger than the picture; ``file`` is its name in errors."""
    from PIL import Image, ImageOps

    try:
        with _open_picture(file or name, content) as opened:
            ImageOps.exif_transpose(opened, in_place=True)
            image = _converted(opened, "RGBA" if _has_transparency(opened) else "RGB")
        widths = [width for width in WIDTHS if width < image.width] + [min(image.width, WIDTHS[-1])]
        for width in sorted(set(widths)):
            height = max(1, round(image.height * width / image.width))
            buffer = io.BytesIO()
            resized = image.resize((width, height), Image.Resampling.LANCZOS) if width < image.width else image
            resized.save(buffer, "WEBP", quality=_WEBP_QUALITY, method=4)
            yield StoredPicture(study_id, name, width, height, "image/webp", buffer.getvalue())
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        raise InvalidPictures(f"the image {(file or name)!r} is damaged ({error}): save it again") from None


def _open_picture(name: str, content: bytes) -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingExtra("a study with images", "web") from None
    if len(content) > MAX_PICTURE_BYTES:
        raise InvalidPictures(f"the image {name!r} has more than {MAX_PICTURE_BYTES:,} bytes: send a smaller one")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content), formats=KINDS)
    except (*_DAMAGED, Image.DecompressionBombError):
        raise InvalidPictures(f"{name!r} is not a readable image: send {', '.join(KINDS)}") from None
    size = f"{image.width} x {image.height}"
    if max(image.size) > MAX_PICTURE_SIDE:
        image.close()
        raise InvalidPictures(
            f"the image {name!r} has {size} pixels: send one with sides of at most {MAX_PICTURE_SIDE:,}"
        )
    if image.width * image.height > MAX_PICTURE_PIXELS:
        image.close()
        raise InvalidPictures(
            f"the image {name!r} has {size} pixels: send one with at most {MAX_PICTURE_PIXELS:,} in total"
        )
    return image


def _converted(picture: Image.Image, mode: str) -> Image.Image:
    """Return a picture in another mode, converted in strips, because Pillow holds the interpreter lock meanwhile."""
    from PIL import Image

    picture.load()
    out = Image.new(mode, picture.size)
    for top in range(0, picture.height, _STRIP_ROWS):
        strip = picture.crop((0, top, picture.width, min(top + _STRIP_ROWS, picture.height)))
        out.paste(strip.convert(mode), (0, top))
    return out


def _has_transparency(image: Image.Image) -> bool:
    return "A" in image.getbands() or "transparency" in image.info
