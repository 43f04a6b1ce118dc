"""Specification of a comparison as immutable data, and its TOML form."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pairseek.core.validation import check_known_fields, is_number, one_of, whole
from pairseek.errors import InvalidParameter
from pairseek.experiments.comparison.datasets import Half
from pairseek.experiments.comparison.entries import Entry, MethodRecord, entry_of
from pairseek.experiments.comparison.measures import SCORES
from pairseek.experiments.comparison.sources import DataRecord
from pairseek.experiments.runs.plan import answer_counts

PRESETS = ("first", "quick")
"""Specifications that are part of the package: the first rivals on all data sets, and a form of five minutes."""


@dataclass(frozen=True)
class Comparison:
    """Methods, data sets, and the people who are replayed.

    Parameters
    ----------
    methods
        Labels of methods, classes, or records: see `MethodRecord`.
    data
        Names of data sets, records or data sets.
    people
        Number of people to replay from each data set; fewer if it has fewer.
    half
        Half of the people to replay: ``"choosing"`` to choose settings, ``"reporting"`` for the figures to report.
    answers
        Numbers of answers after which methods are measured. None: the default of each data set.
    limit
        Seconds after which a call of a method counts as hanging; `begin`, which may learn, gets ten times as long.
    seed
        Seed of the choice of people, the withheld pairs and the order of the pairs.
    references
        For each score, the label of the method that the others are compared with. ``{knows}`` in a label stands for
        the knowledge of the method in question. By default, the first method with the same knowledge.
    name, title
        Name of the folder, and heading of the report.

    Examples
    --------
    >>> import pairseek as ps
    >>> plan = ps.experiments.Comparison(["popularity"], ["simulated points"], people=10)
    >>> [entry.label for entry in plan.entries], plan.half
    (['popularity'], 'reporting')
    """

    methods: tuple[MethodRecord, ...]
    data: tuple[DataRecord, ...]
    people: int = 60
    half: Half = "reporting"
    answers: tuple[int, ...] | None = None
    limit: float = 120.0
    seed: int = 0
    references: Mapping[str, str] = field(default_factory=dict)
    name: str = "comparison"
    title: str = ""
    folder: Path = field(default=Path(), compare=False)

    def __post_init__(self) -> None:
        for name in ("methods", "data"):
            value = getattr(self, name)
            if isinstance(value, str) or not value:
                raise InvalidParameter(f"{name} is {value!r}: give a list of one or more", field=name)
            object.__setattr__(self, name, tuple(value))
        whole(self.people, "people", field="people")
        whole(self.seed, "seed", 0, field="seed")
        one_of(self.half, "half", get_args(Half))
        if self.answers is not None:
            object.__setattr__(self, "answers", answer_counts(self.answers))
        if not is_number(self.limit) or not self.limit > 0:
            raise InvalidParameter(f"limit is {self.limit!r}: give seconds above 0", field="limit")
        check_known_fields(self.references, "references", SCORES)
        labels = [entry.label for entry in self.entries]
        if len(set(labels)) < len(labels):
            raise InvalidParameter(f"two methods have the same label: {', '.join(labels)}", field="methods")

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The methods."""
        return tuple(entry_of(record) for record in self.methods)

    def only(self, *, methods: Sequence[str] = (), data: Sequence[str] = ()) -> Comparison:
        """Select methods by the beginnings of their labels, and data sets by name; an empty list selects all.

        Examples
        --------
        >>> import pairseek as ps
        >>> plan = ps.experiments.read_comparison("quick").only(methods=["popularity", "Gaussian"])
        >>> plan.methods
        ('Gaussian, information', 'popularity')
        """
        labels = [entry.label for entry in self.entries]
        pairs = zip(self.methods, labels, strict=True)
        methods_kept = [record for record, label in pairs if not methods or label.startswith(tuple(methods))]
        if not methods_kept:
            raise InvalidParameter(
                f"methods is {'; '.join(methods)!r}: no label begins with that; the labels are {', '.join(labels)}",
                field="methods",
            )
        return replace(self, methods=tuple(methods_kept), data=tuple(data) or self.data)

    def reference(self, score: str, entry: Entry) -> str | None:
        """Return the label of the method that a method is compared with; None if it is the reference itself."""
        labels = [other.label for other in self.entries]
        label = self.references.get(score, "").format(knows=entry.knows)
        if label not in labels:
            label = next(other.label for other in self.entries if other.knows == entry.knows)
        return None if label == entry.label else label


_FIELDS = tuple(field.name for field in fields(Comparison) if field.name != "folder")


def read_comparison(source: str | Path, **changes: Any) -> Comparison:
    r"""Read a comparison from a TOML file, or by the name of a preset.

    Parameters
    ----------
    source
        Path of the file, or ``"first"`` or ``"quick"``. Data files and modules are looked up in the file's folder.
    **changes
        Fields that override the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> import pairseek as ps
    >>> text = 'methods = ["popularity"]\ndata = ["simulated points"]\n'
    >>> written = Path("mine.toml").write_text(text)
    >>> plan = ps.experiments.read_comparison("mine.toml", people=10)
    >>> plan.name, plan.people
    ('mine', 10)
    """
    if str(source) in PRESETS:
        text = (resources.files(__package__) / "presets" / f"{source}.toml").read_text(encoding="utf-8")
        return _comparison({"name": str(source), **tomllib.loads(text), **changes}, Path())
    path = Path(source)
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidParameter(
            f"there is no file {path}: give a specification, or one of {', '.join(PRESETS)}", field="source"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidParameter(f"{path} cannot be read as TOML: {error}") from None
    # Worker processes get the search path for modules too. The folder comes last, so it hides no installed module.
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    try:
        return _comparison({"name": path.stem, **record, **changes}, path.parent)
    except InvalidParameter as error:
        raise InvalidParameter(f"{path}: {error}", field=error.field) from None


def _comparison(record: Mapping[str, Any], folder: Path) -> Comparison:
    check_known_fields(record, "the comparison", _FIELDS)
    missing = [name for name in ("methods", "data") if name not in record]
    if missing:
        raise InvalidParameter(f"{missing[0]} is missing: give a list of one or more", field=missing[0])
    arguments: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    return Comparison(**arguments, folder=folder)
