"""Findings as bytes: the same after reading, only with the same items, and nothing but findings."""

import copyreg
import pickle
import zlib

import numpy as np
import pytest

from helpers.serving import some_items
from pairseek.errors import InvalidChoices
from pairseek.people.choices import Choices
from pairseek.web.results.findings import GroupAnswers, GroupFindings, Participation, StudyFindings
from pairseek.web.results.own_groups import OptionGroup, QuestionGroups
from pairseek.web.results.packing import pack, unpack
from pairseek.web.results.quality import NO_ANSWERS


def test_findings_are_read_as_they_were_packed():
    items = some_items(6)
    rng = np.random.default_rng(0)
    rows = [(f"p{k % 8}", *rng.permutation(items.ids)[:2].tolist()) for k in range(60)]
    choices = Choices.from_pairs(rows, ids=items.ids)
    found = GroupFindings.of(choices, items)
    people = (Participation("s", "ann", 3, NO_ANSWERS, void=False),)
    groups = (QuestionGroups("Age?", (OptionGroup("young", 2, found.ranking), OptionGroup("old", 0, None))),)
    points = {"s": (np.zeros(2), np.eye(2))}
    group = GroupAnswers(people, choices, choices, False, "2026", None, points, groups)
    packed = pack(StudyFindings(group, found, found))
    read = unpack(packed, items)
    assert read.careful.items is items
    assert read.careful is read.everyone
    assert read.careful.ranking.items == found.ranking.items
    assert read.careful.segments.membership.tolist() == found.segments.membership.tolist()
    assert read.careful.tastes.calibration == found.tastes.calibration
    for name in ("base", "precision_root", "trust", "person_means"):
        np.testing.assert_array_equal(getattr(read.careful.model, name), getattr(found.model, name))
    assert (read.careful.model.design != found.model.design).nnz == 0
    assert read.group.people == people
    assert [option.option for option in read.group.groups[0].options] == ["young", "old"]
    assert read.group.points["s"][1].tolist() == np.eye(2).tolist()
    assert read.group.choices().hash == choices.hash
    assert unpack(packed, some_items(7)) is None


def test_errors_are_packed_without_what_others_registered_for_their_class(monkeypatch):
    monkeypatch.setitem(copyreg.dispatch_table, InvalidChoices, lambda _: (print, ("executed",)))
    choices = Choices.from_pairs([("ann", 0, 1)])
    group = GroupAnswers((), choices, choices, False, "2026", None, {}, ())
    error = InvalidChoices("nobody has decided a pair", reason="undecided", count=3)
    read = unpack(pack(StudyFindings(group, error, error)), some_items(6))
    assert isinstance(read.careful, InvalidChoices)
    assert (str(read.careful), read.careful.reason, read.careful.count) == (str(error), "undecided", 3)


class Command:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("value", [Command(), some_items, np.save, np.lib.format.open_memmap])
def test_nothing_but_findings_is_read(value, capsys):
    with pytest.raises(pickle.UnpicklingError, match="findings have no"):
        unpack(zlib.compress(pickle.dumps(value)), some_items())
    assert capsys.readouterr().out == ""
