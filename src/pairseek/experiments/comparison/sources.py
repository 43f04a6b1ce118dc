"""Data sets by name or by record: recorded people of a folder, files of one's own, simulated people, public sets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from pairseek.core.csv import table_rows
from pairseek.core.types import FloatArray
from pairseek.core.validation import check_known_fields, one_of
from pairseek.datasets.food10k import DATA_VARIABLE
from pairseek.errors import InvalidChoices, InvalidParameter
from pairseek.experiments.comparison.datasets import Dataset, with_noise
from pairseek.experiments.comparison.public_sets import fetch_verified, read_jester
from pairseek.experiments.comparison.simulated import SimulatedPeople
from pairseek.experiments.runs.plan import answer_counts
from pairseek.model.items import Items
from pairseek.people.choices import Choices

DataRecord: TypeAlias = str | Mapping[str, Any] | Dataset
"""A name such as ``"music"`` or ``"music at .75"``, a record with such a name and settings, or a data set itself."""

RATING_FILES = {"music": "data/people/gss_music/ratings.csv", "food": "data/people/food_world_cup/ratings.csv"}
PAIR_SETS = {"first names": "firstnames", "parties": "germanparties2009", "sound": "soundquality"}
PAIR_COUNTS = (0, 4, 8, 12)
PAIR_FOLDS = 5
PAIR_DIMENSION = 2
SIMULATED_SETS = {
    "simulated points": SimulatedPeople("point"),
    "simulated groups": SimulatedPeople("groups"),
    "simulated own": SimulatedPeople("own"),
}
DATASET_NAMES = (
    *RATING_FILES,
    *(f"{name} at {agreement}" for name in RATING_FILES for agreement in (".75", ".85")),
    *PAIR_SETS,
    *SIMULATED_SETS,
)
"""Names of data sets that need no further setting."""
_IMPLIED_ANSWERS_NOTE = (
    "Answers are implied by ratings, which never contradict themselves: accuracies are upper bounds."
)
_NOISY_ANSWERS_NOTE = (
    "Answers have logistic noise on the difference of two ratings, under which people answer {share:g} of repeated "
    "pairs of unequal ratings the same way; a coin decides between equal ratings."
)


def dataset_of(record: DataRecord, folder: Path) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    record
        See `DataRecord`.
    folder
        Folder to which the paths of files are relative.
    """
    if isinstance(record, Dataset):
        return record
    settings: dict[str, Any] = {"name": record} if isinstance(record, str) else dict(record)
    name = settings.pop("name", None)
    label = settings.pop("label", name)
    counts = settings.pop("answers", None)
    readers: dict[str, Callable[..., Dataset]] = {
        **dict.fromkeys(RATING_FILES, _ratings),
        **{f"{name} at {agreement}": _ratings for name in RATING_FILES for agreement in (".75", ".85")},
        **dict.fromkeys(PAIR_SETS, _pairs),
        **dict.fromkeys(SIMULATED_SETS, _simulated),
        "simulated": _simulated,
        "file": _file,
        "colours": _colours,
        "jester": _jester,
    }
    reader = readers[one_of(name, "data", readers)]
    check_known_fields(settings, f"the data set {label!r}", _SETTINGS[reader.__name__])
    try:
        dataset = replace(reader(str(name), folder, **settings), label=str(label))
    except InvalidParameter as error:
        raise InvalidParameter(f"data set {label!r}: {error}", field=error.field) from None
    return dataset if counts is None else replace(dataset, counts=answer_counts(counts))


def data_folder() -> Path:
    """Return the folder that the environment names."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        raise InvalidParameter(
            f"recorded people are read from the folder that {DATA_VARIABLE} names: set it to the parent of data/people "
            f"and data/pairs, or use simulated people, such as 'simulated points'",
            field="data",
        )
    return Path(folder)


def _read(path: Path) -> Choices:
    if not path.is_file():
        raise InvalidParameter(f"there is no file {path}: check {DATA_VARIABLE}, or the path", field="data")
    return Choices.read(path)


def _ratings(name: str, _: Path, *, agreement: float | None = None, dimension: int = 4, seed: int = 0) -> Dataset:
    base, share = [*name.split(" at "), ""][:2]
    choices = _read(data_folder() / RATING_FILES[base])
    return _rated(choices, float(share) if share else agreement, dimension, seed)


def _rated(choices: Choices, agreement: float | None, dimension: int, seed: int) -> Dataset:
    if agreement is None:
        return Dataset(
            "",
            choices,
            choices,
            dimension=dimension,
            bound=choices.derived,
            note=_IMPLIED_ANSWERS_NOTE * choices.derived,
        )
    noisy = with_noise(choices, agreement, seed=seed)
    return Dataset("", choices, noisy, dimension=dimension, note=_NOISY_ANSWERS_NOTE.format(share=agreement))


def _file(
    _: str,
    folder: Path,
    *,
    path: str,
    items: str | None = None,
    agreement: float | None = None,
    dimension: int = 4,
    seed: int = 0,
    folds: int | None = None,
) -> Dataset:
    choices, vectors = _with_vectors(folder / path, None if items is None else folder / items)
    return replace(_rated(choices, agreement, dimension, seed), vectors=vectors, folds=folds)


def _with_vectors(path: Path, items: Path | None) -> tuple[Choices, FloatArray | None]:
    choices = _read(path)
    if items is None:
        return choices, None
    table = Items.from_file(items)
    return choices.of_items(table.ids), table.coordinates


def _pairs(name: str, _: Path, *, folds: int = PAIR_FOLDS, dimension: int = PAIR_DIMENSION) -> Dataset:
    path = data_folder() / "data" / "pairs" / f"{PAIR_SETS[name]}.csv"
    if not path.is_file():
        raise InvalidParameter(f"there is no file {path}: check {DATA_VARIABLE}", field="data")
    rows, owners = [], {}
    header, *lines = (cells for _, cells in table_rows(path, InvalidChoices, "recorded pairs").lines)
    for cells in lines:
        row = dict(zip(header, cells, strict=True))
        # Each sitting of a listener is a complete comparison, so sittings are not mixed.
        sitting = [row[column] for column in ("material", "time", "repetition") if column in row]
        sitting_id = "/".join([row["person"], *sitting])
        owners[sitting_id] = row["person"]
        loser = row["right"] if row["winner"] == row["left"] else row["left"]
        rows.append((sitting_id, row["winner"], loser))
    choices = Choices.from_pairs(rows)
    persons = tuple(owners[sitting_id] for sitting_id in choices.people)
    note = f"Recorded choices. Each {folds}th of the pairs is withheld in turn, and a person's measures are averaged."
    return Dataset("", choices, choices, persons, PAIR_COUNTS, dimension=dimension, folds=folds, note=note)


def _simulated(name: str, _: Path, **settings: Any) -> Dataset:
    base = SIMULATED_SETS.get(name, SimulatedPeople())
    return replace(base, **settings).dataset("")


def _colours(_: str, folder: Path, *, pairs: Mapping[str, str], colours: Mapping[str, str]) -> Dataset:
    choices, vectors = _with_vectors(_fetched(folder, "pairs", pairs), _fetched(folder, "colours", colours))
    return Dataset("", choices, choices, vectors=vectors, note="Recorded choices between colours.")


def _jester(
    _: str, folder: Path, *, source: str, sha256: str | None = None, most_people: int | None = None, **rated: Any
) -> Dataset:
    choices = read_jester(_fetched(folder, "jester", {"source": source, "sha256": sha256}), most_people=most_people)
    return _rated(choices, rated.get("agreement"), rated.get("dimension", 4), rated.get("seed", 0))


def _fetched(folder: Path, what: str, settings: Mapping[str, str | None]) -> Path:
    check_known_fields(settings, what, ("source", "sha256"))
    source = settings.get("source")
    if not isinstance(source, str):
        raise InvalidParameter(f"{what} has no source: give a path or an address, and its sha256", field=what)
    remote = source.startswith(("https://", "http://"))
    return fetch_verified(source if remote else str(folder / source), settings.get("sha256"))


_NOISE_SETTINGS = ("agreement", "dimension", "seed")
_SETTINGS: dict[str, tuple[str, ...]] = {
    "_ratings": _NOISE_SETTINGS,
    "_file": ("path", "items", "folds", *_NOISE_SETTINGS),
    "_pairs": ("folds", "dimension"),
    "_simulated": tuple(field.name for field in fields(SimulatedPeople)),
    "_colours": ("pairs", "colours"),
    "_jester": ("source", "sha256", "most_people", *_NOISE_SETTINGS),
}
