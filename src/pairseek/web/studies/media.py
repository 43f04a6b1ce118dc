"""Item pictures: validation, rotation to upright, removal of metadata, and resizing."""

from __future__ import annotations

import hashlib
import io
import struct
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from pairseek.core.media import PICTURE_FILE
from pairseek.core.text import quoted
from pairseek.errors import MissingExtra
from pairseek.model.items import Items
from pairseek.store import media
from pairseek.store.media import StoredPicture
from pairseek.web.errors import InvalidMedia
from pairseek.web.studies.formats.kinds import is_picture, unusable
from pairseek.web.studies.uploads import MAX_FILES, Files, check_size

if TYPE_CHECKING:
    from PIL import Image

WIDTHS = (320, 640, 1280)
"""Widths in pixels of the stored copies of a picture."""
MAX_PICTURE_PIXELS = 50_000_000
MAX_PICTURE_SIDE = 16_383
"""Largest width and height of a picture, which is the largest of a WebP."""
MAX_PIXELS = 20_000_000_000
"""Largest number of pixels of all pictures together, which take some ten minutes to convert."""
PICTURE_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
"""Accepted picture formats."""
_WEBP_QUALITY = 90
# Lossy WebP halves the resolution of colour, which blurs the edges of drawings. A copy without loss may be this much
# larger; one of a photograph is five times as large.
_LOSSLESS_FACTOR = 2
# Drawings have fewer colours than this fraction of their pixels, and photographs more.
_DRAWING_COLOURS = 1 / 8
# Rows of a picture that are converted at once.
_STRIP_ROWS = 256
# What Pillow raises for damaged pictures.
_DAMAGE_ERRORS = (
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


def with_pictures(items: Items, files: Files) -> tuple[Items, dict[str, Callable[[], bytes]]]:
    """Return the items with the stored names of their pictures, and a reader for each picture."""
    names = [str(name) for name in items.data.get("image", ())]
    distinct = {name for name in names if name}
    if len(distinct) > MAX_FILES:
        raise InvalidMedia(f"the items name {len(distinct):,} images: use at most {MAX_FILES:,}")
    missing = sorted(distinct - set(files))
    if missing:
        raise InvalidMedia(f"the items name the image {quoted(missing, 1)}, but it was not sent: send it with them")
    if not distinct:
        return items, {}
    hashes, readers, pixels = {}, {}, 0
    for name in sorted(distinct):
        content = files[name]()
        with _open_picture(name, content) as picture:
            pixels += picture.width * picture.height
        if pixels > MAX_PIXELS:
            raise InvalidMedia(f"the images have more than {MAX_PIXELS:,} pixels in total: send smaller ones")
        hashes[name] = hashlib.sha256(content).hexdigest()[:32]
        readers[hashes[name]] = files[name]
    # The file name is kept for exports.
    data = dict(items.data) | {"image": [hashes.get(name, "") for name in names], PICTURE_FILE: names}
    coordinates = items.coordinates if items.d else None
    return Items._without_warnings(
        coordinates, items.ids, items.labels, items.appeal, data, items.columns, least=1
    ), readers


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
            # Unlike Lanczos, this filter does not overshoot at edges, which would draw halos around them.
            resized = image.resize((width, height), Image.Resampling.HAMMING) if width < image.width else image
            yield StoredPicture(study_id, name, width, height, "image/webp", _encoded(resized))
    except InvalidMedia:
        raise
    except (*_DAMAGE_ERRORS, Image.DecompressionBombError) as error:
        raise InvalidMedia(f"the image {(file or name)!r} is damaged ({error}): save it again") from None


def _encoded(image: Image.Image) -> bytes:
    """Return a picture as WebP: a drawing without loss, unless that is much larger."""

    def webp(**options: object) -> bytes:
        buffer = io.BytesIO()
        image.save(buffer, "WEBP", method=4, **options)
        return buffer.getvalue()

    lossy = webp(quality=_WEBP_QUALITY)
    if image.getcolors(max(256, int(image.width * image.height * _DRAWING_COLOURS))) is None:
        return lossy
    exact = webp(lossless=True, quality=60)
    return exact if len(exact) <= _LOSSLESS_FACTOR * len(lossy) else lossy


def _open_picture(name: str, content: bytes) -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingExtra("a study with images", "web") from None
    check_size(name, len(content))
    if not is_picture(content):
        raise InvalidMedia(f"{name!r} {unusable(content)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content), formats=PICTURE_FORMATS)
    except (*_DAMAGE_ERRORS, Image.DecompressionBombError):
        raise InvalidMedia(f"{name!r} is not a readable image: send {', '.join(PICTURE_FORMATS)}") from None
    size = f"{image.width} x {image.height}"
    if max(image.size) > MAX_PICTURE_SIDE:
        image.close()
        raise InvalidMedia(f"the image {name!r} has {size} pixels: send one with sides of at most {MAX_PICTURE_SIDE:,}")
    if image.width * image.height > MAX_PICTURE_PIXELS:
        image.close()
        raise InvalidMedia(
            f"the image {name!r} has {size} pixels: send one with at most {MAX_PICTURE_PIXELS:,} in total"
        )
    return image


def _converted(picture: Image.Image, mode: str) -> Image.Image:
    """Return a picture in another mode and in sRGB.

    It is converted in strips, because Pillow holds the interpreter lock meanwhile.
    """
    from PIL import Image, ImageCms

    picture.load()
    out = Image.new(mode, picture.size)
    source, transform = _to_srgb(picture, mode)
    for top in range(0, picture.height, _STRIP_ROWS):
        strip = picture.crop((0, top, picture.width, min(top + _STRIP_ROWS, picture.height))).convert(source)
        in_srgb = strip if transform is None else ImageCms.applyTransform(strip, transform)
        out.paste((in_srgb or strip).convert(mode), (0, top))
    return out


def _to_srgb(picture: Image.Image, mode: str) -> tuple[str, Any]:
    """Return the transformation from a picture's colour profile to sRGB, and the mode that it applies to.

    Copies have no profile. Pictures without one, or with one that does not fit them, keep their colours.
    """
    from PIL import ImageCms

    content = picture.info.get("icc_profile")
    if not content:
        return mode, None
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(content))
        space = profile.profile.xcolor_space.strip()
        source = {"RGB": mode, "GRAY": "L", "CMYK": "CMYK"}[space]
        if source not in (mode, picture.mode):
            return mode, None
        target = mode if source == mode else "RGB"
        return source, ImageCms.buildTransform(profile, ImageCms.createProfile("sRGB"), source, target)
    except (ImageCms.PyCMSError, *_DAMAGE_ERRORS):
        return mode, None


def _has_transparency(image: Image.Image) -> bool:
    return "A" in image.getbands() or "transparency" in image.info
