"""Public data sets that are not shipped: parsers, and a download verified by a checksum."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path

from pairseek.core.csv import check_lengths, number, table_rows
from pairseek.errors import InvalidChoices, InvalidParameter, MissingExtra
from pairseek.people.choices import Choices

JESTER_MISSING = 99.0
JESTER_LARGEST = 10.0
_JESTER_FORM = (
    "a row for each person, without a header: the number of ratings, then a rating from -10 to 10 for each joke, or 99"
)
_CHECKSUM = re.compile(r"[0-9a-f]{64}")
_DOWNLOAD_TIMEOUT = 60


def fetch_verified(source: str, sha256: str | None) -> Path:
    """Verify the checksum of a file, after downloading it once if the source is an address.

    Parameters
    ----------
    source
        Path, or address that begins with ``https://`` or ``http://``.
    sha256
        The checksum, in hexadecimal. It is required, so that results always refer to the same content.
    """
    if sha256 is None or not _CHECKSUM.fullmatch(sha256.lower()):
        raise InvalidParameter(
            f"the checksum of {source} is {sha256!r}: give the 64 hexadecimal digits that `sha256sum FILE` prints",
            field="sha256",
        )
    if not source.startswith(("https://", "http://")):
        return _verify(Path(source), sha256.lower())
    try:
        import pooch
    except ModuleNotFoundError:
        raise MissingExtra(f"fetching {source}", "data", "; or give the path of a copy") from None
    pooch.get_logger().setLevel(logging.ERROR)
    folder = Path(pooch.os_cache("pairseek")) / "compare"
    download = pooch.HTTPDownloader(timeout=_DOWNLOAD_TIMEOUT)
    try:
        return Path(pooch.retrieve(source, known_hash=f"sha256:{sha256.lower()}", path=folder, downloader=download))
    except ValueError as error:
        raise InvalidChoices(f"{source} is not the expected file: {error}") from None
    except Exception as error:  # noqa: BLE001 - pooch passes on any exception of its transport
        raise InvalidChoices(
            f"{source} could not be fetched ({type(error).__name__}): give the path of a copy"
        ) from None


def _verify(path: Path, sha256: str) -> Path:
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be read: {error.strerror or error}", field="source") from None
    if digest != sha256:
        raise InvalidChoices(f"{path} has the checksum {digest}, but {sha256} was expected: give the expected file")
    return path


def read_jester(path: Path, *, most_people: int | None = None) -> Choices:
    """Read ratings of jokes: a row per person, with the number of ratings first, then a rating for each joke.

    A rating is in [-10, 10]; 99 means that the joke was not rated. Export the spreadsheets of the data set to CSV
    without a header.

    Parameters
    ----------
    path
        CSV file.
    most_people
        Number of rows to read. None: all.
    """
    table = table_rows(path, InvalidChoices, _JESTER_FORM)
    check_lengths(path, table, InvalidChoices)
    ratings = []
    for line, cells in table.lines[:most_people]:
        values = [_jester_cell(cell, f"{path}, line {line}", decimal_comma=table.decimal_comma) for cell in cells]
        rated = [(joke, value) for joke, value in enumerate(values) if joke and value != JESTER_MISSING]
        if len(rated) != values[0]:
            raise InvalidChoices(
                f"{path}, line {line}: the first cell announces {values[0]:g} ratings, but there are {len(rated)}: "
                f"give {_JESTER_FORM}"
            )
        if any(not -JESTER_LARGEST <= value <= JESTER_LARGEST for _, value in rated):
            raise InvalidChoices(f"{path}, line {line}: a rating is not from -10 to 10: give {_JESTER_FORM}")
        ratings += [(f"p{line}", f"joke {joke:03d}", value) for joke, value in rated]
    return Choices.from_ratings(ratings)


def _jester_cell(cell: str, where: str, *, decimal_comma: bool) -> float:
    try:
        return number(cell, decimal_comma=decimal_comma)
    except ValueError:
        raise InvalidChoices(f"{where}: {cell!r} is not a number: give {_JESTER_FORM}") from None
