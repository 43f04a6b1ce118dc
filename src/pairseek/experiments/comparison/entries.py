"""Methods of a comparison: a label, a class and its settings."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pairseek.core.types import JSON
from pairseek.core.validation import one_of
from pairseek.errors import InvalidParameter
from pairseek.experiments.comparison.protocol import KNOWLEDGE, Knowledge, Method

_METHODS_PACKAGE = "pairseek.experiments.comparison.methods"
_CLASSES = {
    "pairseek": f"{_METHODS_PACKAGE}.search:PairseekSearch",
    "gaussian": f"{_METHODS_PACKAGE}.gaussian:GaussianItems",
    "factor analysis": f"{_METHODS_PACKAGE}.factors:FactorAnalysis",
    "components": f"{_METHODS_PACKAGE}.factors:ComponentLogistic",
    "logistic": f"{_METHODS_PACKAGE}.logistic:VectorLogistic",
    "liked average": f"{_METHODS_PACKAGE}.popularity:LikedAverage",
    "choix": f"{_METHODS_PACKAGE}.bradley_terry:Choix",
    "item neighbours": f"{_METHODS_PACKAGE}.neighbours:ItemNeighbours",
    "ease": f"{_METHODS_PACKAGE}.neighbours:Ease",
    "question tree": f"{_METHODS_PACKAGE}.neighbours:QuestionTree",
    "qdrant": f"{_METHODS_PACKAGE}.qdrant:Qdrant",
    "botorch": f"{_METHODS_PACKAGE}.gaussian_process:PairwiseProcess",
    "als": f"{_METHODS_PACKAGE}.least_squares:AlternatingLeastSquares",
    "glis": f"{_METHODS_PACKAGE}.glis:PreferenceGlis",
}
"""Classes by name, as a specification names them; others are named ``module:Class``."""
_GOALS = ("taste", "best", "list")
FIRST_METHODS: dict[str, dict[str, Any]] = {
    **{
        f"pairseek {goal}, {knows}": {"method": "pairseek", "goal": goal, "knows": knows}
        for knows in KNOWLEDGE
        for goal in _GOALS
    },
    "pairseek random, others": {"method": "pairseek", "strategy": "random"},
    "Gaussian, information": {"method": "gaussian"},
    "Gaussian, EUBO": {"method": "gaussian", "questions": "eubo"},
    "factor analysis": {"method": "factor analysis"},
    "components, BALD": {"method": "components"},
    "popularity": {"method": "liked average", "scale": 0.0, "popularity": 1.0},
    "popularity and liked": {"method": "liked average", "popularity": 1.0},
    "logistic, random": {"method": "logistic"},
    "logistic, BALD": {"method": "logistic", "questions": "information"},
    "average of liked": {"method": "liked average"},
    "choix I-LSR": {"method": "choix", "inference": "ilsr", "strength": 0.03},
    "choix EP": {"method": "choix"},
}
"""The first rivals by label, with their settings. Those were chosen on the choosing half by log loss and accuracy."""
EXTRA_METHODS: dict[str, dict[str, Any]] = {
    "item neighbours": {"method": "item neighbours", "scale": 0.6, "popularity": 0.5},
    "EASE": {"method": "ease", "ridge": 1000.0, "scale": 0.6, "popularity": 0.5},
    "question tree": {"method": "question tree", "error": 0.1},
    "GLIS": {"method": "glis"},
    "ALS": {"method": "als", "factors": 2, "scale": 0.6},
    "Qdrant average": {"method": "qdrant"},
    "Qdrant best score": {"method": "qdrant", "query": "best"},
    "Qdrant context": {"method": "qdrant", "query": "context"},
    "Qdrant feedback": {"method": "qdrant", "query": "feedback"},
    "BoTorch": {"method": "botorch"},
    "BoTorch, EUBO": {"method": "botorch", "questions": "eubo", "refit": False},
    "BoTorch, BALD": {"method": "botorch", "questions": "information", "refit": False},
    "BoTorch, logit": {"method": "botorch", "likelihood": "logit"},
    "BoTorch, linear and RBF": {"method": "botorch", "kernel": "linear and rbf"},
    "BoTorch, others": {"method": "botorch", "kernel": "others"},
}
"""Further methods by label; some need the extra ``rivals``."""


@dataclass(frozen=True)
class Entry:
    """A method in a comparison.

    Parameters
    ----------
    label
        Name in tables.
    method
        Class of the method, which workers must be able to import.
    settings
        Keyword arguments of the class.

    Examples
    --------
    >>> import pairseek as ps
    >>> plan = ps.experiments.Comparison(["popularity"], ["simulated points"])
    >>> entry = plan.entries[0]
    >>> entry.knows, entry.settings
    ('others', {'scale': 0.0, 'popularity': 1.0})
    """

    label: str
    method: type[Any]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [name for name in ("begin", "ask", "tell", "predict", "recommend") if not hasattr(self.method, name)]
        if missing:
            raise InvalidParameter(
                f"the method {self.label!r} has no {missing[0]}: define it, or derive from "
                f"pairseek.experiments.BaseMethod",
                field="methods",
            )
        one_of(self.knows, f"knows of the method {self.label!r}", KNOWLEDGE)

    def make(self) -> Method:
        """Return a new instance."""
        try:
            method: Method = self.method(**self.settings)
        except TypeError as error:
            raise InvalidParameter(f"the method {self.label!r}: {error}", field="methods") from None
        return method

    @property
    def knows(self) -> Knowledge:
        """The knowledge that the method may use."""
        return self.make().knows

    @property
    def record(self) -> JSON:
        """Return the entry as plain data."""
        name = f"{self.method.__module__}:{self.method.__qualname__}"
        record: JSON = {"label": self.label, "method": name, "knows": self.knows, "settings": dict(self.settings)}
        source = getattr(sys.modules.get(self.method.__module__), "__file__", None)
        if source and not name.startswith("pairseek."):
            # An edited method is another method: its earlier results are not its own.
            record["source"] = hashlib.sha256(Path(source).read_bytes()).hexdigest()
        return record


MethodRecord: TypeAlias = str | Mapping[str, Any] | type[Any] | Entry
"""The label of a method of the first rivals, a record with ``method`` and settings, a class, or an `Entry`."""


def entry_of(record: MethodRecord) -> Entry:
    """Build an entry from a label of `FIRST_METHODS`, a record, or a class."""
    if isinstance(record, Entry):
        return record
    if isinstance(record, type):
        return Entry(record.__name__, record)
    if isinstance(record, str):
        known = FIRST_METHODS | EXTRA_METHODS
        return entry_of({**known[one_of(record, "methods", known)], "label": record})
    if not isinstance(record, Mapping) or "method" not in record:
        raise InvalidParameter(
            f"methods has {record!r}: give the label of a method, or a table such as "
            f'{{ label = "mine", method = "module:Class" }}',
            field="methods",
        )
    settings = {key: value for key, value in record.items() if key not in ("label", "method")}
    return Entry(str(record.get("label", record["method"])), _imported(str(record["method"])), settings)


def _imported(name: str) -> type[Any]:
    path = _CLASSES.get(name, name)
    module, _, attribute = path.partition(":")
    try:
        method = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        names = ", ".join(_CLASSES)
        raise InvalidParameter(
            f"the method {name!r} cannot be imported ({error}): use one of {names}, or module:Class of a module that "
            f"is installed or in the folder of the specification",
            field="methods",
        ) from None
    if not isinstance(method, type):
        raise InvalidParameter(f"the method {name!r} is not a class", field="methods")
    return method
