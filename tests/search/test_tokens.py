"""Sessions that weigh nothing: `to_dict`, light files, signed tokens, and catalogues that change."""

from __future__ import annotations

import base64
import json
import pickle
import time
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek._version import MODEL_VERSION
from pairseek.errors import InvalidParameter
from pairseek.search import configuration, saving, tokens

KEY = b"0123456789abcdef0123456789abcdef"
LINEAR = ps.Logistic(1.0, "constant", residual=1.0)


def catalogue(n=300, d=3, seed=0, first=0):
    points = np.random.default_rng(seed).standard_normal((n + first, d))[first:]
    return ps.Items(points, ids=[f"p{i}" for i in range(first, first + n)])


def answered(search, answers=6):
    for number in range(answers):
        query = search.ask()
        if number == 2:
            search.skip(query)
        elif number == 3:
            search.tell(query, tie=True)
        else:
            search.tell(query, winner=min(query.left, query.right))
    return search


def same(one, other):
    assert [(e.left, e.right, e.outcome, e.winner) for e in one.history] == [
        (e.left, e.right, e.outcome, e.winner) for e in other.history
    ]
    assert one.pending == other.pending
    assert np.array_equal(one.belief.mean, other.belief.mean)
    assert one.ask() == other.ask()
    assert [r.id for r in one.recommend(3)] == [r.id for r in other.recommend(3)]


SETTINGS = [
    {},
    {"askable": 50},
    {"goal": "list"},
    {"stop": 30, "rest": ps.Rest(item=2), "response": ps.Logistic(1.0, "constant", residual=0.5)},
    {
        "response": ps.Logistic(ps.Unknown(), "constant", residual=0.0),
        "prior": ps.GaussianPrior(np.zeros(3), np.eye(3)),
    },
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_search_goes_on_from_plain_data_and_from_a_token(settings, tmp_path):
    items = catalogue()
    search = answered(ps.Search(items, rng=1, **settings), 5)
    search.observe("p250", "p3", winner="p3")
    search.ask()
    record = json.loads(json.dumps(search.to_dict()))
    same(search, ps.Search.from_dict(record, items=items))
    same(search, ps.Search.from_token(search.to_token(key=KEY), items=items, key=KEY, **settings))
    search.save(tmp_path / "me.json", light=True)
    same(search, ps.Search.load(tmp_path / "me.json", items=items))
    search.save(tmp_path / "full.json")
    same(search, ps.Search.load(tmp_path / "full.json"))
    same(search, pickle.loads(pickle.dumps(search)))


def test_sizes_are_those_of_the_docs(tmp_path):
    n = 50_000
    items = ps.Items._without_warnings(
        np.random.default_rng(0).standard_normal((n, 6)), ids=[f"sku-{i}" for i in range(n)]
    )
    search = ps.Search(items, rng=2**62 + 1, askable=100)
    rng = np.random.default_rng(1)
    for a, b in rng.choice(n, size=(20, 2), replace=False):
        search.observe(f"sku-{a}", f"sku-{b}", winner=f"sku-{a}")
    search._pending = [ps.Query("q20", "sku-49999", "sku-7")]
    assert len(search.to_token(key=KEY, lifetime=3600)) < 256
    search.save(tmp_path / "me.json", light=True)
    assert (tmp_path / "me.json").stat().st_size < 3000
    assert len(json.dumps(search.to_dict())) < 2048


def test_queries_out_of_order_survive_a_token():
    items = catalogue()
    search = ps.Search(items, rng=1)
    first, second, third = search.ask_many(3)
    search.tell(second, winner=second.left)
    search.observe("p1", "p2", winner="p1")
    search.tell(third, winner=third.right)
    again = ps.Search.from_token(search.to_token(key=KEY), items=items, key=KEY)
    assert again.pending == search.pending == (first,)
    assert again.history == search.history
    again.tell(second, winner=second.left)
    with pytest.raises(ps.errors.AnswerConflict):
        again.tell(second, winner=second.right)


def test_every_changed_byte_is_noticed():
    items = catalogue(20)
    token = answered(ps.Search(items, rng=1), 4).to_token(key=KEY)
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        with pytest.raises(ps.errors.InvalidToken):
            ps.Search.from_token(base64.urlsafe_b64encode(changed).rstrip(b"=").decode(), items=items, key=KEY)


@pytest.mark.parametrize("token", ["", "a", "x" * 100, "ü" * 40, "A" * 100_000, None, 7, "AAAA AAAA", "=" * 30])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(ps.errors.InvalidToken):
        ps.Search.from_token(token, items=catalogue(20), key=KEY)


def test_tokens_expire_and_keys_rotate(monkeypatch):
    items = catalogue(20)
    search = answered(ps.Search(items, rng=1), 4)
    token = search.to_token(key=KEY, lifetime=60)
    same(search, ps.Search.from_token(token, items=items, key=[b"another key of 32 bytes, the new", KEY]))
    with pytest.raises(ps.errors.InvalidToken):
        ps.Search.from_token(token, items=items, key=b"another key of 32 bytes, the new")
    now = time.time()
    monkeypatch.setattr(tokens.time, "time", lambda: now + 100)
    with pytest.raises(ps.errors.ExpiredToken):
        ps.Search.from_token(token, items=items, key=KEY)
    for key in (b"short", "", 3, [], None):
        with refused("key"):
            search.to_token(key=key)
    for lifetime in (0, -1, float("nan"), 1e12, "60", True):
        with refused("lifetime"):
            search.to_token(key=KEY, lifetime=lifetime)


def content(**changes):
    return tokens.TokenContent(
        **{
            "catalogues": (("ab" * 32, 3),),
            "model": MODEL_VERSION,
            "configuration": "cd" * 32,
            "seed": 1,
            "events": (),
            "pending": (),
            **changes,
        }
    )


def test_a_token_takes_only_what_fits_into_its_fields():
    token = tokens.sign(content(pending=((0, 1, 0, 0),) * 3), KEY)
    assert tokens.verify(token, KEY).pending == ((0, 1, 0, 0),) * 3
    with pytest.raises(InvalidParameter) as caught:
        tokens.sign(content(pending=((0, 1, 0, 0),) * 70_000), KEY)
    assert str(caught.value) == (
        "the search has 0 events and 70000 pending queries, but a token holds at most 65,535 of each: use to_dict()"
    )
    for seed in (-1, 1 << 64):
        with pytest.raises(InvalidParameter) as caught:
            tokens.sign(content(seed=seed), KEY)
        assert (
            str(caught.value) == f"the seed is {seed}, but a token holds a seed from 0 to 2^64 - 1: use another rng=..."
        )
    with pytest.raises(InvalidParameter, match="the model version is None: give a whole number from 0 to 255"):
        tokens.sign(content(model=None), KEY)


def test_another_catalogue_or_configuration_is_named():
    items, other = catalogue(), catalogue(seed=5)
    search = answered(ps.Search(items, rng=1, goal="best"))
    token, record = search.to_token(key=KEY), search.to_dict()
    named = f"{items.hash[:16]}, but the given items are {other.hash[:16]}:"
    with pytest.raises(ps.errors.CatalogueMismatch, match=named):
        ps.Search.from_token(token, items=other, key=KEY, goal="best")
    with pytest.raises(ps.errors.CatalogueMismatch, match=named):
        ps.Search.from_dict(record, items=other)
    with pytest.raises(ps.errors.CatalogueMismatch):
        ps.Search.from_token(token, items=items, key=KEY)
    for wrong in (
        {},
        {**record, "events": [[1]]},
        {**record, "configuration": {}},
        {**record, "seed": "x"},
        [],
        "text",
    ):
        with pytest.raises((ps.errors.InvalidFile, ps.errors.InvalidParameter)):
            ps.Search.from_dict(wrong, items=items)
    named = answered(ps.Search(items, rng=1, askable=items.ids[:9])).to_dict()
    with refused("askable"):
        ps.Search.from_dict(named, items=items)
    assert ps.Search.from_dict(named, items=items, askable=items.ids[:9]).askable.n == 9


ENVELOPES = {
    "file": (lambda search, path: search.save(path), lambda _, path, __: ps.Search.load(path)),
    "light file": (
        lambda search, path: search.save(path, light=True),
        lambda _, path, items: ps.Search.load(path, items=items),
    ),
    "light record": (
        lambda search, _: search.to_dict(),
        lambda record, _, items: ps.Search.from_dict(record, items=items),
    ),
    "token": (
        lambda search, _: search.to_token(key=KEY),
        # With other settings too: the version is named first.
        lambda token, _, items: ps.Search.from_token(token, items=items, key=KEY, goal="best"),
    ),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_every_envelope_of_a_later_model_version_names_both_versions(name, monkeypatch, tmp_path):
    """Earlier versions are in test_earlier_models.py, bundles of studies in test_session_parts.py."""
    items, (write, read), model = catalogue(20), ENVELOPES[name], MODEL_VERSION + 1
    search = answered(ps.Search(items, rng=1))
    with monkeypatch.context() as patch:
        for module in (saving, configuration):
            patch.setattr(module, "MODEL_VERSION", model)
        written = write(search, tmp_path / "me.json")
    error = ps.errors.InvalidToken if name == "token" else ps.errors.InvalidFile
    with pytest.raises(error, match=f"has model version {model}, and this pairseek has {MODEL_VERSION}"):
        read(written, tmp_path / "me.json", items)


def test_a_record_of_another_model_version_is_refused_before_its_parts_are_read():
    items = catalogue(20)
    record = ps.Search(items, rng=1, response=ps.Logistic(1.0)).to_dict()
    record["configuration"] |= {"model": MODEL_VERSION + 1, "response": {"name": "of the future"}}
    with pytest.raises(ps.errors.InvalidFile, match=f"model version {MODEL_VERSION + 1}"):
        ps.Search.from_dict(record, items=items)


def paths(record, path=()):
    """Yield the place of every value in a record."""
    yield path
    if isinstance(record, dict | list):
        for key in record if isinstance(record, dict) else range(len(record)):
            yield from paths(record[key], (*path, key))


def edited(record, path, value):
    """Return a copy with another value, or without any if it is `KeyError`."""
    if not path:
        return value
    copied = json.loads(json.dumps(record))
    *way, last = path
    place = copied
    for key in way:
        place = place[key]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return copied


def test_any_edit_of_a_light_record_is_read_or_refused_with_an_error_of_pairseek():
    items = catalogue(12, 2)
    search = answered(ps.Search(items, stop=9, rng=1), 3)
    search.skip(search.ask())
    search.observe("p1", "p2", winner="p1")
    kept = [row for row in range(12) if items.ids[row] != search.history[0].left]
    search = search.moved_to(items.subset(np.array(kept)))
    search.ask()
    record = search.to_dict()
    assert record["gone"], "every list of the record has an entry"
    assert record["pending"]
    rejected = 0
    for path in paths(record):
        for value in (None, -1, 1.5, True, "abc", "", [], {}, [[None] * 4], float("nan"), 10**30, KeyError):
            if value is KeyError and not path:
                continue
            try:
                ps.Search.from_dict(edited(record, path, value), items=search.items)
            except ps.errors.PairseekError:
                rejected += 1
    assert rejected > 500


class TestTokensOfTheFormatBefore:
    """Tokens of pairseek 0.2.0, which do not hold the version of the model, under versions 6 and 5."""

    SIXTH = "AQG96nTnAQAAAAAAAAAAAAAAAgAAAJCJqtMAtQrrDAAAAFnwCKH2hLeT03Mqp7-K4hjv5c0"
    FIFTH = "AQHuKm-9AQAAAAAAAAAAAAAAAgAAAJCJqtMAtQrrDAAAAFnwCEbvOBC2Cc0fkov8Le3kN8w"

    def read(self, token, **settings):
        items = ps.Items([[float(i), float(i * i % 7)] for i in range(12)], ids=[f"p{i}" for i in range(12)])
        return ps.Search.from_token(token, items=items, key=KEY, **settings)

    @pytest.mark.parametrize(("token", "model"), [(SIXTH, 6), (FIFTH, 5)])
    def test_their_model_version_follows_from_the_hash_of_the_settings(self, token, model):
        search = self.read(token, goal="list", askable=8)
        assert search.migrated_from == model
        assert [(e.left, e.right, e.outcome) for e in search.history] == [("p1", "p2", "answer"), ("p3", "p4", "tie")]
        with pytest.raises(ps.errors.CatalogueMismatch):
            self.read(token)
        with pytest.raises(ps.errors.InvalidToken, match=f"model version {model}"):
            self.read(token, goal="list", askable=8, model="as saved")


class TestEnvelopesOfTheVersionBefore:
    """What pairseek 0.2.0 wrote of a search in which an item was removed."""

    TOKEN = "AgYCQlbDAQcAAAAAAAAAAAAAAAQAAQC5odQJvb39rgQAAADyjC6FzCT9QAUAAADff57ZCBABLWYLHjj_ahSlbdFCju8mVQ"
    LIGHT: ClassVar = {
        "pairseek_version": "0.2.0",
        "items": "b9a1d409bdbdfdae3014cef18c2b767ca0682e1fbae983bfb06858547ad55a3b",
        "configuration": {
            "model": 6,
            "goal": "taste",
            "askable": None,
            "response": {
                "name": "logistic",
                "k": 1.0,
                "noise": "normalized",
                "lapse": 0.0,
                "reliability": 1.0,
                "tie_width": 0.0,
                "residual": None,
                "curvature": 1.0,
            },
            "stop": [{"name": "answers", "count": 9}],
        },
        "seed": 7,
        "gone": [["a", [0.0], 0.0, "f28c2e85cc24fd40a2af9282a5a990f303b2e79e121f3b702a5cb028bd872c9a", 5, 0]],
        "events": [[5, "a", "l", "q0"], ["c", 5, "s", "q1"], ["b", 5, "t", "q2"], ["a", "b", "r", None]],
        "pending": [["q4", "d", "c"]],
    }
    FILE: ClassVar = {
        "pairseek_version": "0.2.0",
        "configuration": {
            "model": 6,
            "goal": "taste",
            "response": {
                "name": "logistic",
                "k": 1.0,
                "noise": "normalized",
                "lapse": 0.0,
                "reliability": 1.0,
                "tie_width": 0.0,
                "residual": None,
                "curvature": 1.0,
            },
            "prior": {"name": "gaussian", "mean": [2.75], "covariance": [[2.0833333333333335]]},
            "posterior": {"name": "ep", "points": 2048},
            "strategy": {"name": "infogain", "checks": None},
            "rest": {"name": "rest", "pair": None, "item": 0},
            "candidates": {"name": "all_pairs", "gap": 0.03, "budget": 100000000, "rescore": 0, "listed": 100000},
            "stop": [{"name": "answers", "count": 9}],
        },
        "seed": 7,
        "items": {
            "kind": "items",
            "hash": "b9a1d409bdbdfdae3014cef18c2b767ca0682e1fbae983bfb06858547ad55a3b",
            "ids": ["b", "c", "d", 5],
            "labels": ["b", "c", "d", "5"],
            "coordinates": [[1.0], [2.5], [3.0], [4.5]],
            "appeal": [0.0, 0.0, 0.0, 0.0],
            "data": {},
        },
        "askable": None,
        "gone": [["a", [0.0], 0.0, "f28c2e85cc24fd40a2af9282a5a990f303b2e79e121f3b702a5cb028bd872c9a", 5, 0]],
        "events": [
            {
                "left": 5,
                "right": "a",
                "outcome": "answer",
                "winner": 5,
                "query": {
                    "id": "q0",
                    "left": 5,
                    "right": "a",
                    "info": {
                        "strategy": "infogain",
                        "candidates": "all 10 pairs, each scored",
                        "considered": 10,
                        "utility": 0.2885911201156465,
                        "information": 0.2885911201156465,
                        "probability_left": 0.4918380636337045,
                        "gap": 0.0,
                        "probability_tie": 0.0,
                    },
                },
            },
            {
                "left": "c",
                "right": 5,
                "outcome": "skip",
                "winner": None,
                "query": {"id": "q1", "left": "c", "right": 5, "info": None},
            },
            {
                "left": "b",
                "right": 5,
                "outcome": "tie",
                "winner": None,
                "query": {"id": "q2", "left": "b", "right": 5, "info": None},
            },
            {"left": "a", "right": "b", "outcome": "answer", "winner": "b", "query": None},
        ],
        "pending": [
            {
                "id": "q4",
                "left": "d",
                "right": "c",
                "info": {
                    "strategy": "infogain",
                    "candidates": "all 10 pairs, each scored",
                    "considered": 10,
                    "utility": 0.13372026791995273,
                    "information": 0.13372026791995273,
                    "probability_left": 0.5701967094633533,
                    "gap": 0.0,
                    "probability_tie": 0.0,
                },
            }
        ],
    }

    @pytest.mark.parametrize("name", ["file", "light record", "token"])
    def test_its_answers_are_kept(self, name):
        before = ps.Items([[0.0], [1.0], [2.5], [3.0], [4.5]], ids=["a", "b", "c", "d", 5])
        items, parts = before.subset(np.arange(1, 5)), {"response": ps.Logistic(1.0), "stop": 9}
        if name == "file":
            search = ps.Search._from_saved(
                saving.from_file(json.loads(json.dumps(self.FILE)), "me.json", {}, "present")
            )
        elif name == "token":
            search = ps.Search.from_token(self.TOKEN, items=items, key=KEY, catalogues=[before], **parts)
        else:
            search = ps.Search.from_dict(self.LIGHT, items=items)
        assert search.seed == 7
        assert search.migrated_from == 6
        events = [(e.left, e.right, e.winner, e.outcome, e.query and e.query.id) for e in search.history]
        assert events == [
            (5, "a", 5, "answer", "q0"),
            ("c", 5, None, "skip", "q1"),
            ("b", 5, None, "tie", "q2"),
            ("a", "b", "b", "answer", None),
        ]
        assert [(query.id, query.left, query.right) for query in search.pending] == [("q4", "d", "c")]
        assert [*search._state.configuration.removed] == ["a"]
        assert search.stop == (ps.AfterAnswers(9),)
        assert (search.history[0].query.info is None) == (name != "file")


def test_a_long_prior_is_named_by_its_hash():
    items = catalogue(d=8)
    prior = ps.GaussianPrior(np.zeros(8), np.cov(items.coordinates.T))
    record = answered(ps.Search(items, rng=1, prior=prior)).to_dict()
    assert len(json.dumps(record)) < 2048
    with pytest.raises(ps.errors.CatalogueMismatch):
        ps.Search.from_dict(record, items=items)
    with pytest.raises(ps.errors.CatalogueMismatch):
        ps.Search.from_dict(record, items=items, prior=ps.GaussianPrior(np.zeros(8), np.eye(8)))
    assert ps.Search.from_dict(record, items=items, prior=prior).answers


class TestCatalogueChanges:
    """Yesterday's items p0 to p299; p0 to p49 are gone today, and p300 to p349 are new."""

    def setup_method(self):
        everything = np.random.default_rng(0).standard_normal((350, 3))
        names = [f"p{i}" for i in range(350)]
        self.before = ps.Items(everything[:300], ids=names[:300])
        self.now = ps.Items(everything[50:], ids=names[50:])
        self.all = ps.Items(everything, ids=names)
        prior = ps.GaussianPrior(np.zeros(3), np.eye(3))
        self.settings = {"response": LINEAR, "prior": prior}

    def search(self):
        search = ps.Search(self.before, rng=1, **self.settings)
        for left, right in (("p1", "p200"), ("p2", "p3"), ("p100", "p101"), ("p1", "p150")):
            search.observe(left, right, winner=left)
        search.ask()
        return search

    def test_answers_about_items_that_are_gone_count(self):
        moved = self.search().moved_to(self.now)
        whole = self.search().moved_to(self.all)
        assert np.allclose(moved.belief.mean, whole.belief.mean)
        assert np.allclose(moved.belief.covariance, whole.belief.covariance)
        assert moved.belief.residuals.rows.max() < self.now.n
        found = {r.id: r.expected_utility for r in moved.recommend(300)}
        expected = {r.id: r.expected_utility for r in whole.recommend(350)}
        assert all(found[name] == pytest.approx(expected[name]) for name in self.now.ids)
        assert set(found) == set(self.now.ids)
        query = moved.ask()
        moved.tell(query, winner=query.left)
        assert {query.left, query.right} <= set(self.now.ids)

    def test_they_carry_over_by_token_record_and_file(self, tmp_path):
        search, moved = self.search(), self.search().moved_to(self.now)
        token = search.to_token(key=KEY)
        by_token = ps.Search.from_token(token, items=self.now, key=KEY, catalogues=[self.before], **self.settings)
        same(moved, by_token)
        same(moved, ps.Search.from_dict(search.to_dict(), items=self.now, catalogues=[self.before], **self.settings))
        # And on to the day after, when yesterday's catalogue is known as an earlier one.
        again = ps.Search.from_token(
            by_token.to_token(key=KEY), items=self.now, key=KEY, catalogues=[self.before], **self.settings
        )
        same(moved, again)
        same(moved, ps.Search.from_dict(json.loads(json.dumps(moved.to_dict())), items=self.now))
        moved.save(tmp_path / "moved.json")
        same(moved, ps.Search.load(tmp_path / "moved.json"))
        with pytest.raises(ps.errors.CatalogueMismatch):
            ps.Search.from_token(token, items=self.now, key=KEY, **self.settings)

    def test_an_item_that_comes_back_is_itself_again(self):
        back = self.search().moved_to(self.now).moved_to(self.before)
        same(back, self.search())

    def test_undo_opens_no_query_about_an_item_that_is_gone(self):
        search = ps.Search(self.before, rng=1, askable=["p1", "p2", "p200", "p201"], **self.settings)
        answered(search, 2)
        moved = search.moved_to(self.now, askable=["p200", "p201"])
        while moved.history:
            moved.undo()
        assert all({query.left, query.right} <= set(self.now.ids) for query in moved.pending)
        moved.ask()

    def test_other_coordinates_are_named(self):
        turned = ps.Items(self.now.coordinates[:, ::-1], ids=self.now.ids)
        with pytest.raises(ps.errors.CatalogueMismatch):
            self.search().moved_to(turned)
        flat = ps.Items(self.now.coordinates[:, :2], ids=self.now.ids)
        with pytest.raises(ps.errors.CatalogueMismatch):
            self.search().moved_to(flat)

    def test_the_ask_set_follows(self):
        asked = ps.Search(self.before, rng=1, askable=["p1", "p200", "p201"]).moved_to(self.now)
        assert asked.askable.ids == ("p200", "p201")
        assert ps.Search(self.before, rng=1, askable=20).moved_to(self.now).askable.n == 20


def test_the_same_ids_in_another_number_of_coordinates_are_another_catalogue():
    items = catalogue()
    flat = ps.Items(np.asarray(items.coordinates)[:, :1], items.ids)
    search = answered(ps.Search(items, rng=1))
    with pytest.raises(ps.errors.CatalogueMismatch):
        ps.Search.from_token(search.to_token(key=KEY), items=flat, key=KEY, catalogues=[items])
    with pytest.raises(ps.errors.CatalogueMismatch):
        ps.Search.from_dict(search.to_dict(), items=flat, catalogues=[items])
