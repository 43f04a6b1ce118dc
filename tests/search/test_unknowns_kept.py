"""Searches with unknown k and lapse: kept, described, and refused where they make no sense."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import pairseek as ps
from pairseek.errors import InvalidFile, InvalidParameter, Unsupported
from pairseek.search import serialization

BOTH = ps.Logistic(ps.Unknown(), lapse=ps.Unknown())


@pytest.fixture(scope="module")
def items():
    return ps.Items(np.random.default_rng(8).uniform(-1, 1, size=(80, 2)))


class TestKeeping:
    def told(self, items, **more):
        search = ps.Search(items, response=BOTH, posterior=ps.EP(), rng=3, **more)
        user = ps.SimulatedUser([0.4, 0.1], ps.Logistic(4.0, lapse=0.1), rng=2)
        for number in range(9):
            query = search.ask()
            if number == 4:
                search.tell(query, tie=True)
            else:
                search.tell(query, winner=user.answer(items, query))
        return search

    def arrays(self, belief):
        r = belief.reliability
        return (
            belief.samples,
            belief.weights,
            belief.mean,
            belief.covariance,
            r.k,
            r.lapse,
            r.rows,
            r.nodes,
            r.chances,
        )

    def same(self, one, two):
        assert all(np.array_equal(a, b) for a, b in zip(self.arrays(one), self.arrays(two), strict=True))

    def test_undo_load_copy_and_the_number_of_threads_change_no_bit(self, items, tmp_path, on_threads):
        search = self.told(items)
        before, asks = search.belief, search.ask()
        search.tell(asks, winner=asks.left)
        _ = search.belief
        search.undo()
        self.same(search.belief, before)
        search.save(tmp_path / "me.json")
        loaded = ps.Search.load(tmp_path / "me.json")
        assert loaded.response == search.response
        assert loaded.ask() == asks
        self.same(loaded.belief, before)
        for other in (copy.deepcopy(search), search.continued(search.history)):
            self.same(other.belief, before)
            assert all(not array.flags.writeable for array in self.arrays(other.belief))
        for threads in (1, 2):
            self.same(on_threads(threads, lambda: self.told(items).belief), before)

    def test_a_response_is_described_by_plain_data(self, items):
        record = serialization.encode(ps.Search(items, response=BOTH, prior=ps.UniformBox(), rng=1).response)
        assert record == {
            "name": "logistic",
            "k": {
                "name": "unknown",
                "prior": {"name": "log_normal", "median": pytest.approx(2 * math.sqrt(3)), "spread": 1.5},
            },
            "noise": "normalized",
            "lapse": {"name": "unknown", "prior": {"name": "beta", "a": 1.0, "b": 9.0, "random": 0.1}},
            "reliability": 1.0,
            "tie_width": 0.0,
            "residual": None,
            "curvature": 1.0,
        }
        assert serialization.encode(serialization.decode("response", record)) == record
        assert serialization.decode("response", {"name": "probit", "k": {"name": "unknown"}}) == ps.Probit(ps.Unknown())

    def test_a_file_with_a_prior_that_is_none_is_refused(self, items, tmp_path):
        from pairseek.core import files

        search = ps.Search(items, response=BOTH, rng=1)
        search.save(tmp_path / "me.json")
        record = files.read(tmp_path / "me.json")
        record["configuration"]["response"]["k"]["prior"]["spread"] = -1.0
        files.write(tmp_path / "bad.json", {k: v for k, v in record.items() if not k.startswith("format")})
        with pytest.raises(InvalidFile):
            ps.Search.load(tmp_path / "bad.json")

    def test_known_k_and_no_lapse_are_the_paper_to_the_bit(self, items):
        searches = [
            ps.Search(items, response=response, rng=1) for response in (ps.Logistic(3.0), ps.Logistic(3.0, lapse=0.0))
        ]
        for search in searches:
            for _ in range(5):
                query = search.ask()
                search.tell(query, winner=query.left)
        one, two = (search.belief for search in searches)
        assert one.reliability is None
        assert np.array_equal(one.mean, two.mean)
        assert np.array_equal(one.covariance, two.covariance)


ERRORS = {
    "a negative median": (lambda: ps.LogNormal(-1.0), r"LogNormal\(median=-1.0\): give a number above 0"),
    "no median": (lambda: ps.LogNormal(0), r"LogNormal\(median=0\): give a number above 0"),
    "a negative spread": (
        lambda: ps.LogNormal(1.0, -0.5),
        r"LogNormal\(spread=-0.5\): give the standard deviation of log k, above 0",
    ),
    "a negative guess": (lambda: ps.LogNormal.around(-1.0), r"LogNormal\(median=-1.0\): give a number above 0"),
    "no guess": (lambda: ps.LogNormal.around(None), r"LogNormal.around\(None\): give a guess above 0"),
    "no spread": (lambda: ps.LogNormal(1.0, 0.0), "if k is known, give k itself"),
    "a text for a spread": (lambda: ps.LogNormal(1.0, "wide"), r"LogNormal\(spread='wide'\)"),
    "a negative count": (lambda: ps.Beta(-1.0, 2.0), r"Beta\(a=-1.0\): give a number above 0"),
    "nothing for b": (lambda: ps.Beta(1.0, float("nan")), r"Beta\(b=nan\): give a number above 0"),
    "all people at random": (
        lambda: ps.Beta(random=1.0),
        r"Beta\(random=1.0\): give the fraction of people who answer at random, from 0 to below 1",
    ),
    "a lapse of one": (
        lambda: ps.Logistic(lapse=1.0),
        "lapse is 1.0: give the fraction of random answers, from 0 to below 1",
    ),
    "a negative lapse": (lambda: ps.Logistic(lapse=-0.1), "lapse is -0.1: give the fraction"),
    "a lapse that is no number": (lambda: ps.Logistic(lapse=True), "lapse is True: give the fraction"),
    "the wrong prior for k": (
        lambda: ps.Logistic(ps.Unknown(ps.Beta())),
        r"k is unknown with the prior Beta\(a=1.0, b=9.0, random=0.1\): give a LogNormal",
    ),
    "the wrong prior for a lapse": (
        lambda: ps.Logistic(lapse=ps.Unknown(ps.LogNormal(1.0))),
        "lapse is unknown with the prior LogNormal.*: give a Beta",
    ),
    "no prior": (lambda: ps.Unknown(3.0), "the prior of an Unknown is 3.0: give LogNormal"),
    "the class": (
        lambda: ps.Logistic(ps.Unknown),
        "k is <class .*Unknown'>: give a number of at least 0, or Unknown()",
    ),
    "a simulated person": (
        lambda: ps.SimulatedUser([0.0], ps.Logistic(ps.Unknown())),
        "k of Logistic is unknown: give a number",
    ),
    "a simulated lapse": (
        lambda: ps.SimulatedUser([0.0], ps.Logistic(1.0, lapse=ps.Unknown())),
        "the lapse rate of Logistic is unknown: give a number",
    ),
    "a median that nobody set": (
        lambda: ps.Logistic(ps.Unknown()).planes(np.ones((1, 2)), np.zeros((1, 2))),
        "the median of an unknown k is not set: give it, or let a Search choose it",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_bad_input_is_named_with_what_to_do(what):
    call, words = ERRORS[what]
    with pytest.raises(InvalidParameter, match=words):
        call()


class LogConcaveOnly:
    """A posterior of one's own that says nothing of lapses."""

    name = "log_concave_only"

    def infer(self, evidence, prior, response):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("posterior", "response", "words"),
    [
        (ps.Grid(), ps.Logistic(2.0, lapse=ps.Unknown()), "Grid cannot infer k or a lapse"),
        (
            LogConcaveOnly(),
            ps.Logistic(2.0, lapse=0.1),
            r"LogConcaveOnly needs a log-concave posterior, but lapse=0.1 rules that out",
        ),
    ],
)
def test_a_posterior_that_cannot_is_refused(posterior, response, words):
    with pytest.raises(Unsupported, match=words):
        ps.Search(ps.Items([[0.0], [1.0]]), response=response, posterior=posterior)
