"""Saved searches: lossless round trips, and refusal of anything damaged or foreign."""

import json
import os
import re
import stat
from dataclasses import dataclass

import numpy as np
import pytest

import pairseek as ps
from pairseek._version import MODEL_VERSION
from pairseek.errors import InvalidFile, InvalidParameter
from pairseek.search import serialization

FEW = ps.Particles(200)

CONFIGURATIONS = {
    "for the best item": {"strategy": ps.EUBO()},
    "for a list": {"strategy": ps.Shortlist(4), "stop": [ps.GainBelow(0.001)], "goal": "list"},
    "defaults": {},
    "epmv": {"strategy": ps.EPMV(), "response": ps.Probit(2.0, "constant"), "candidates": ps.SampledPairs(rate=0.5)},
    "mcmv": {"strategy": ps.MCMV(0.5), "prior": ps.GaussianPrior([0.1, 0.0], [[1.0, 0.2], [0.2, 2.0]])},
    "greedy_mse": {"strategy": ps.GreedyMSE(), "posterior": ps.EP(64), "rest": ps.Rest(pair=3, item=1)},
    "greedy_volume": {
        "strategy": ps.GreedyVolume(),
        "response": ps.Logistic(),
        "posterior": ps.Grid(21),
        "candidates": ps.AllPairs(),
    },
    "random": {"strategy": ps.Random(), "stop": [ps.AfterAnswers(9), ps.RadiusBelow(0.01, level=0.8)]},
    "actrank": {"strategy": ps.ActRank(3)},
    "gausscloud": {"strategy": ps.GaussCloud(2, 10)},
    "gausssearch": {"strategy": ps.GaussSearch(), "response": ps.Logistic(3.0, "decaying")},
}


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(3)
    return ps.Items(
        rng.normal(size=(25, 2)),
        ids=[f"ä{n}" for n in range(25)],
        labels=[f"Nr. {n}, “x”" for n in range(25)],
        appeal=rng.normal(size=25),
        data={"hex": ["#fff"] * 25},
    )


def started(items, **settings):
    search = ps.Search(items, **{"posterior": FEW, "rng": 12, **settings})
    search.tell(search.ask(), winner=search.ask().left)
    search.skip(search.ask())
    search.observe(items.ids[0], items.ids[1], winner=items.ids[1])
    search.tell(search.ask(), tie=True)
    return search


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_loaded_search_believes_and_asks_the_same(items, tmp_path, name):
    search = started(items, **CONFIGURATIONS[name])
    path = tmp_path / "me.json"
    search.save(path)
    again = ps.Search.load(path)
    assert again.configuration == search.configuration
    assert again.items == items
    assert again.items.labels == items.labels
    assert dict(again.items.data) == dict(items.data)
    assert again.history == search.history
    assert np.array_equal(again.belief.samples, search.belief.samples)
    assert np.array_equal(again.belief.weights, search.belief.weights)
    assert np.array_equal(again.estimate().point, search.estimate().point)
    assert again.ask() == search.ask()
    again.save(tmp_path / "twice.json")
    search.save(path)
    assert (tmp_path / "twice.json").read_bytes() == path.read_bytes()


def test_every_registered_part_has_a_configuration_here():
    strategies = {settings.get("strategy", ps.InfoGain()).name for settings in CONFIGURATIONS.values()}
    assert strategies == set(serialization.parts_by_name("strategy"))


def test_an_open_query_is_kept_and_never_recomputed(items, tmp_path):
    search = started(items)
    query = search.ask()
    search.observe(items.ids[3], items.ids[4], winner=items.ids[3])
    search.save(tmp_path / "me.json")
    assert ps.Search.load(tmp_path / "me.json").ask() == query


def test_a_space_is_kept_too(tmp_path):
    search = ps.Search(ps.Space([0, 0], [1, 2], min_separation=0.1), posterior=FEW, rng=1)
    search.tell(search.ask(), winner=search.ask().left)
    search.save(tmp_path / "me.json")
    again = ps.Search.load(tmp_path / "me.json")
    assert again.items == search.items
    assert again.history == search.history
    assert again.ask() == search.ask()


def test_the_file_is_json_with_versions_configuration_seed_and_answers(items, tmp_path):
    started(items).save(tmp_path / "me.json")
    record = json.loads((tmp_path / "me.json").read_text())
    assert record["format"] == "pairseek search"
    assert record["format_version"] == 2
    assert record["pairseek_version"] == ps.__version__
    assert record["seed"] == 12
    assert record["configuration"]["strategy"] == {"name": "infogain", "checks": None}
    assert [event["outcome"] for event in record["events"]] == ["answer", "skip", "answer", "tie"]


@pytest.fixture
def saved(items, tmp_path):
    path = tmp_path / "me.json"
    started(items).save(path)
    return path


def refused(path, match):
    before = path.read_bytes()
    with pytest.raises(InvalidFile, match=match):
        ps.Search.load(path)
    assert path.read_bytes() == before


def test_a_file_that_was_cut_off_is_refused_at_every_length(saved):
    content = saved.read_bytes()
    for fraction in (0.1, 0.5, 0.99):
        saved.write_bytes(content[: int(fraction * len(content))])
        refused(saved, "is cut off or damaged")
    saved.write_bytes(b"")
    refused(saved, "is empty: it is not a saved search")


def test_an_edited_file_is_refused(saved):
    saved.write_text(saved.read_text().replace('"seed": 12', '"seed": 13'))
    refused(saved, "was edited or damaged: its checksum does not match")


def test_another_version_is_refused_and_named(saved):
    saved.write_text(saved.read_text().replace('"format_version": 2', '"format_version": 1'))
    refused(saved, r"has format version 1 \(written by pairseek '.*'\), but this pairseek reads version 2")


def test_a_later_version_of_the_model_is_refused_and_named(saved):
    resealed(saved, lambda record: record["configuration"].update(model=MODEL_VERSION + 1))
    refused(saved, f"it has model version {MODEL_VERSION + 1}, and this pairseek has {MODEL_VERSION}")


@pytest.mark.parametrize("text", ["hello", "[1, 2]", '{"a": 1}', "\x00\x01"])
def test_something_else_is_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    refused(path, "not a saved search|it lacks format")


def test_bytes_that_are_not_text_and_a_missing_file_are_refused(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    refused(tmp_path / "x.json", "cannot be read as text")
    with pytest.raises(InvalidFile, match="there is no file"):
        ps.Search.load(tmp_path / "nowhere.json")


def resealed(path, change):
    """Edit a saved search and give it a valid checksum, as a careful forger could."""
    from pairseek.core import files

    record = files.read(path)
    change(record)
    files.write(path, {k: v for k, v in record.items() if k not in ("format", "format_version")})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda r: r["events"][0].update(winner="nobody"), "has the winner 'nobody'"),
        (lambda r: r["events"][0].update(outcome="maybe"), "the outcome 'maybe'"),
        (lambda r: r["events"][2].update(left="nobody", winner=None, outcome="tie"), "no item has the id 'nobody'"),
        (lambda r: r["configuration"]["strategy"].update(name="infogian"), "did you mean 'infogain'"),
        (lambda r: r["configuration"]["response"].update(noise="loud"), "unknown noise 'loud'"),
        (lambda r: r["configuration"]["prior"].update(colour=1), "has no setting 'colour'"),
        (lambda r: r["items"]["coordinates"][0].__setitem__(0, 9.0), "do not match their hash"),
        (lambda r: r.pop("seed"), "is not a valid saved search"),
        (lambda r: r.update(seed=-3), "the seed is -3"),
        (lambda r: r.update(seed=None), "the seed is None"),
        (lambda r: r.pop("events"), "it lacks 'events'"),
        (lambda r: r["configuration"].update(strategy="infogain"), "strategy is 'infogain': give a name and settings"),
        (
            lambda r: r["configuration"].update(stop={"name": "answers", "count": "x"}),
            "the count of AfterAnswers is 'x'",
        ),
        (lambda r: r.update(configuration=[1]), "is not a valid saved search"),
        (lambda r: r.update(items="many"), "is not a valid saved search"),
        (lambda r: r["events"][0]["query"].update(id="abc"), "a query has the id 'abc': expected an id such as q0, q1"),
        (lambda r: r["events"][0]["query"].update(id=7), "a query has the id 7"),
        (lambda r: r["events"][0]["query"].update(id="q3"), "'q3' precedes events that it must follow"),
        (lambda r: r["events"][1]["query"].update(id="q0"), "two queries have the same id"),
        (lambda r: r["events"][0]["query"].update(info=[]), "is not a valid saved search"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused_with_its_reason(saved, change, match):
    resealed(saved, change)
    refused(saved, match)


@pytest.mark.parametrize(
    ("number", "match"),
    [
        ("NaN", "was edited or damaged: it contains NaN, which is not a finite number"),
        ("-Infinity", "it contains -Infinity"),
        ("1e999", "it contains 1e999"),
        ("1" * 5000, "was edited or damaged"),
        ("[" * 100_000 + "]" * 100_000, "is nested too deeply"),
        ("[" * 500 + "]" * 500, "was edited or damaged|nested too deeply"),
    ],
    ids=["nan", "infinity", "overflow", "digits", "deep", "less deep"],
)
def test_non_finite_numbers_and_deep_nesting_are_refused(saved, number, match):
    saved.write_text(saved.read_text().replace('"seed": 12', f'"seed": {number}'))
    refused(saved, match)


def test_a_path_that_cannot_be_written_is_named_as_given(items, tmp_path):
    search = started(items)
    os.mkfifo(tmp_path / "pipe")
    for path, words in (
        (tmp_path / "nowhere" / "me.json", f"the folder '{tmp_path / 'nowhere'}' does not exist; create it first"),
        (tmp_path, "it is a folder; name a file in it"),
        (tmp_path / "pipe", "it is not a regular file"),
    ):
        with pytest.raises(InvalidFile, match=re.escape(f"cannot save to {path}: {words}")):
            search.save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_is_written_through(items, tmp_path):
    (tmp_path / "real").mkdir()
    for name in ("there.json", "new.json"):
        (tmp_path / name).symlink_to(tmp_path / "real" / name)
    (tmp_path / "real" / "there.json").write_text("old")
    for name in ("there.json", "new.json"):
        started(items).save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert len(ps.Search.load(tmp_path / "real" / name).history) == 4


def test_a_new_file_gets_its_mode_from_the_umask(items, tmp_path):
    before = os.umask(0o027)
    try:
        started(items).save(tmp_path / "me.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "me.json").stat().st_mode) == 0o640


def test_saving_replaces_the_file_atomically_and_leaves_no_temporary_file(saved, items, monkeypatch):
    before = saved.read_bytes()
    search = started(items)
    search.tell(search.ask(), tie=True)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as error:
        search.save(saved)
    assert error.value.filename == str(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == ["me.json"]
    monkeypatch.undo()
    for mode in (0o640, 0o666, 0o600):
        os.chmod(saved, mode)
        search.save(saved)
        assert stat.S_IMODE(saved.stat().st_mode) == mode
    assert len(ps.Search.load(saved).history) == 5


def test_a_strategy_of_ones_own_is_given_again_when_loading(items, tmp_path):
    @dataclass(frozen=True)
    class Longest:
        name = "longest"

        def score(self, candidates, belief):
            return candidates.length

    search = started(items, strategy=Longest())
    search.save(tmp_path / "me.json")
    with pytest.raises(InvalidFile):
        ps.Search.load(tmp_path / "me.json")
    assert ps.Search.load(tmp_path / "me.json", strategy=Longest()).ask() == search.ask()


def test_unknown_parts_are_named_with_the_allowed_ones():
    with pytest.raises(InvalidParameter):
        serialization.decode("posterior", {"name": "particle"})


@dataclass(frozen=True)
class Patience:
    """A stop rule of one's own."""

    most: int
    name = "patience"

    def reached(self, progress):
        return "enough" if progress.answers >= self.most else None

    def remaining(self, progress):
        return self.most - progress.answers


@dataclass(frozen=True)
class Wide(ps.UniformBox):
    name = "wide"


@dataclass(frozen=True)
class Coarse(ps.Grid):
    name = "coarse"


@dataclass(frozen=True)
class Thin(ps.SampledPairs):
    name = "thin"


OWN = {
    "stop": [ps.AfterAnswers(30), Patience(9)],
    "prior": Wide(-2.0, 2.0),
    "posterior": Coarse(21),
    "candidates": Thin(count=50),
}


@pytest.mark.parametrize("kind", OWN)
def test_any_part_of_ones_own_is_given_again_when_loading(items, tmp_path, kind):
    response = {"response": ps.Logistic()} if kind == "posterior" else {}
    search = started(items, **response, **{kind: OWN[kind]})
    search.save(tmp_path / "me.json")
    with pytest.raises(InvalidFile, match=rf"unknown {kind} .* again: load\(path, {kind}=...\)"):
        ps.Search.load(tmp_path / "me.json")
    again = ps.Search.load(tmp_path / "me.json", **{kind: OWN[kind]})
    assert again.configuration == search.configuration
    assert again.ask() == search.ask()


class Plain:
    """A strategy that is no dataclass."""

    name = "plain"

    def score(self, candidates, belief):
        return candidates.length


@dataclass(frozen=True)
class Held(Plain):
    value: object
    name = "held"


def test_a_part_that_cannot_be_serialized_is_named_and_no_file_is_made(items, tmp_path):
    class Doubled(ps.InfoGain):
        """A subclass with the name of its parent, as which it would be loaded."""

    for strategy, message in (
        (Plain(), r"Plain is not a dataclass.*decorate it with @dataclass\(frozen=True\)"),
        *((Held(value), r"Held\.value is .*, which cannot be serialized") for value in (len, float("inf"), {1, 2})),
        (Doubled(), "subclass of InfoGain with the same name 'infogain'"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            started(items, strategy=strategy).save(tmp_path / "me.json")
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class Boundless:
    name = "boundless"

    def score(self, candidates, belief):
        return np.full(len(candidates), np.inf)


def test_a_utility_that_is_not_finite_is_stored_as_null(items, tmp_path):
    search = started(items, strategy=Boundless())
    assert search.ask().info.utility == np.inf
    search.save(tmp_path / "me.json")
    again = ps.Search.load(tmp_path / "me.json", strategy=Boundless())
    assert again.ask() == search.ask()
    assert again.ask().info.utility is None
