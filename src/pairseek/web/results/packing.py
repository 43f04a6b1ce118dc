"""Findings as bytes, so that one process computes them and every worker reads them from the database.

Reading accepts only the classes of findings, so that whoever can write to the
database still cannot make a server execute anything.
"""

from __future__ import annotations

import io
import pickle
import zlib
from typing import Any

from scipy.sparse import csr_array

from pairseek.errors import InvalidChoices
from pairseek.model.items import Items
from pairseek.people.choices import Choices
from pairseek.people.ranking.ranking import RankedItem, Ranking
from pairseek.people.ranking.segments import Segment, Segmentation
from pairseek.people.ranking.utilities import UtilityPosterior
from pairseek.web.results.findings import GroupAnswers, GroupFindings, Participation, StudyFindings
from pairseek.web.results.own_groups import OptionGroup, QuestionGroups

_CLASSES = {
    (kind.__module__, kind.__qualname__): kind
    for kind in (
        Choices,
        GroupAnswers,
        GroupFindings,
        InvalidChoices,
        OptionGroup,
        Participation,
        QuestionGroups,
        RankedItem,
        Ranking,
        Segment,
        Segmentation,
        StudyFindings,
        UtilityPosterior,
        csr_array,
    )
}
# What arrays and their elements are restored with; the modules differ between versions of numpy.
_NUMPY_NAMES = {"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"}


def pack(findings: StudyFindings) -> bytes:
    """Return findings as bytes, with the hash of their items in place of the items."""
    out = io.BytesIO()
    _Pickler(out, 5).dump(findings)
    return zlib.compress(out.getvalue(), 1)


def unpack(content: bytes, items: Items) -> StudyFindings | None:
    """Return packed findings, with these items; None if the findings are about other items."""
    try:
        findings = _Unpickler(io.BytesIO(zlib.decompress(content)), items).load()
    except _OtherItems:
        return None
    assert isinstance(findings, StudyFindings)
    return findings


class _OtherItems(Exception):
    """The findings are about other items."""


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        return value.hash if isinstance(value, Items) else None

    def reducer_override(self, value: Any) -> Any:
        # Other packages may have registered functions that pickle errors with their tracebacks.
        return value.__reduce__() if isinstance(value, InvalidChoices) else NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: io.BytesIO, items: Items) -> None:
        super().__init__(content)
        self._items = items

    def persistent_load(self, items_hash: str) -> Items:
        if items_hash != self._items.hash:
            raise _OtherItems
        return self._items

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _CLASSES:
            return _CLASSES[module, name]
        if module.partition(".")[0] == "numpy" and name in _NUMPY_NAMES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"findings have no {module}.{name}")
