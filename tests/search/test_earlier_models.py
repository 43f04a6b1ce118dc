"""Searches that earlier model versions saved: their answers are kept, and the belief is that of the present model."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest

import pairseek as ps
from helpers.earlier_models import ITEMS, KEY, SETTINGS, path_of
from pairseek._version import MODEL_VERSION
from pairseek.core.files import LIGHT_SEARCH_FILE, write
from pairseek.search import configuration, saving

# The first version whose files have the present format; the third one introduced light records and tokens.
FIRST_MODEL = 2
SAVED = [
    (model, name, form)
    for model in range(FIRST_MODEL, MODEL_VERSION + 1)
    for name, forms in (json.loads(path_of(model).read_text()) if path_of(model).exists() else {}).items()
    for form in forms
]


def restored(version, name, form, folder, **options):
    """Restore what a model version saved."""
    record = json.loads(path_of(version).read_text())[name][form]
    if form == "file":
        path = folder / "search.json"
        path.write_text(json.dumps(record))
        with warnings.catch_warnings():
            # The default of versions 3 to 6 had an unknown residual.
            warnings.simplefilter("ignore", ps.DefaultWarning)
            return ps.Search.load(path, **options)
    if form == "light":
        return ps.Search.from_dict(record, items=ITEMS, **options)
    return ps.Search.from_token(record, items=ITEMS, key=KEY, **SETTINGS[name], **options)


def beginning_with(events, **settings):
    """Return a search of the present model that observed the same answers."""
    search = ps.Search(ITEMS, rng=5, **settings)
    for event in events:
        search.observe(event.left, event.right, winner=event.winner)
    return search


@pytest.mark.parametrize("model", range(FIRST_MODEL, MODEL_VERSION + 1))
def test_searches_of_every_model_version_are_kept(model):
    forms = json.loads(path_of(model).read_text())["default"]
    assert set(forms) == ({"file"} if model == FIRST_MODEL else {"file", "light", "token"}), (
        "write them: python tests/helpers/earlier_models.py"
    )


@pytest.mark.parametrize(("model", "name", "form"), SAVED)
def test_the_answers_are_kept_and_the_present_model_infers_the_belief(model, name, form, tmp_path):
    search = restored(model, name, form, tmp_path)
    assert search.migrated_from == (None if model == MODEL_VERSION else model)
    assert len(search.history) == 5
    assert search.answers == 4
    assert len(search.pending) == 1
    settings = {"response": search.response, "prior": search.prior} if form == "file" else SETTINGS[name]
    expected = beginning_with(search.history, **settings)
    assert search.response == expected.response
    assert np.allclose(search.belief.mean, expected.belief.mean)
    query = search.ask()
    search.tell(query, winner=query.left)
    assert [r.id for r in search.recommend(3)]


@pytest.mark.parametrize(("model", "name", "form"), [s for s in SAVED if s[0] < MODEL_VERSION])
def test_the_migration_is_noted_in_later_copies_and_can_be_refused(model, name, form, tmp_path):
    search = restored(model, name, form, tmp_path)
    search.save(tmp_path / "again.json")
    assert ps.Search.load(tmp_path / "again.json").migrated_from == model
    assert ps.Search.from_dict(search.to_dict(), items=ITEMS).migrated_from == model
    assert search.moved_to(ITEMS).migrated_from == model
    error = ps.errors.InvalidToken if form == "token" else ps.errors.InvalidFile
    with pytest.raises(error, match=f"model version {model}, and this pairseek has {MODEL_VERSION}"):
        restored(model, name, form, tmp_path, model="as saved")


def test_a_file_keeps_the_settings_that_it_recorded(tmp_path):
    """Files of the early versions do not say which parts were given."""
    recorded = json.loads(path_of(6).read_text())["default"]["file"]["configuration"]["response"]
    assert restored(6, "default", "file", tmp_path).response.k == recorded["k"] != ps.Search(ITEMS).response.k


def test_later_defaults_replace_the_parts_that_were_not_given(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        for module in (saving, configuration):
            patch.setattr(module, "MODEL_VERSION", MODEL_VERSION - 1)
        search = ps.Search(ITEMS, rng=1, rest=ps.Rest(pair=3))
        search.save(tmp_path / "search.json")
        record = json.loads((tmp_path / "search.json").read_text())
    assert record["given"] == ["rest"]
    record.pop("checksum")
    record["configuration"]["response"] = {"name": "a response of the past"}
    loaded = ps.Search._from_saved(saving.from_file(record, "search.json", {}, "present"))
    assert loaded.response == search.response
    assert loaded.rest == search.rest
    assert loaded._state.configuration.given_parts == {"rest": search.rest}


@pytest.mark.parametrize("form", ["file", "light", "token"])
def test_a_later_model_version_is_refused(form, tmp_path, monkeypatch):
    for module in (saving, configuration):
        monkeypatch.setattr(module, "MODEL_VERSION", MODEL_VERSION - 1)
    with pytest.raises(ValueError, match=f"model version {MODEL_VERSION}, .* {MODEL_VERSION - 1}: upgrade pairseek"):
        restored(MODEL_VERSION, "default", form, tmp_path)


def test_another_choice_of_the_model_is_refused():
    with pytest.raises(ps.errors.InvalidParameter) as caught:
        ps.Search.from_dict(ps.Search(ITEMS).to_dict(), items=ITEMS, model="past")
    assert caught.value.field == "model"


class TestUnknownResidual:
    """Earlier versions inferred the residual: a saved search continues with a number instead."""

    def record(self, form, residual):
        search = ps.Search(ITEMS, response=ps.Logistic(1.0, "constant", residual=1.0), rng=1)
        search.tell(search.ask(), winner=search.ask().left)
        record = search.to_dict() if form == "light" else saving.to_file(search._state, [])
        record["configuration"]["response"]["residual"] = residual
        return record

    @pytest.mark.parametrize("form", ["file", "light"])
    @pytest.mark.parametrize(
        ("residual", "expected"),
        [
            ("unknown", math.exp(0.49)),
            ({"name": "unknown", "prior": {"name": "log_normal", "median": 2.0, "spread": 0.5}}, 2.0 * math.exp(0.25)),
            ({"name": "unknown", "prior": {"name": "log_normal", "median": 2.0, "spread": 4.0}}, 20.0),
        ],
    )
    def test_it_becomes_the_root_mean_square_of_its_prior(self, form, residual, expected, tmp_path):
        path = tmp_path / "search.json"
        write(path, self.record(form, residual), *([LIGHT_SEARCH_FILE] if form == "light" else []))
        with pytest.warns(ps.DefaultWarning, match="an unknown residual, which pairseek no longer infers"):
            search = ps.Search.load(path, items=ITEMS if form == "light" else None)
        assert search.response.residual == pytest.approx(expected)
        assert search.belief.residuals.deviation == pytest.approx(expected)
        assert search.answers == 1

    @pytest.mark.parametrize("residual", [{"name": "unknown", "prior": {"name": "beta"}}, {"name": "log_normal"}, [1]])
    def test_a_damaged_one_is_refused(self, residual):
        with pytest.raises(ps.errors.PairseekError):
            ps.Search.from_dict(self.record("light", residual), items=ITEMS)
