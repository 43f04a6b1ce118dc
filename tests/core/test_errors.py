"""Errors carry the path of the setting that they concern."""

import pickle

import pytest

import pairseek as ps
from pairseek.errors import InvalidItems, InvalidParameter, StoreUnavailable
from pairseek.search import serialization

INVALID = [
    ("strategy", {"name": "epmv", "penalty": -1.0}, "strategy.penalty"),
    ("strategy", {"name": "mcmv", "penalty": 0.0}, "strategy.penalty"),
    ("strategy", {"name": "infogain", "checks": 1}, "strategy.checks"),
    ("strategy", {"name": "actrank", "votes": 0}, "strategy.votes"),
    ("strategy", {"name": "actrank", "box": [1.0, 0.0]}, "strategy.box"),
    ("strategy", {"name": "gausscloud", "stages": 0, "answers": 8}, "strategy.stages"),
    ("strategy", {"name": "gausscloud", "stages": 9, "answers": 8}, "strategy.answers"),
    ("strategy", {"name": "gausssearch", "noise": -1.0}, "strategy.noise"),
    ("strategy", {"name": "guess"}, "strategy.name"),
    ("response", {"name": "logistic", "k": -1.0}, "response.k"),
    ("response", {"name": "logistic", "noise": "loud"}, "response.noise"),
    ("response", {"name": "logistic", "lapse": 2.0}, "response.lapse"),
    (
        "response",
        {"name": "logistic", "k": {"name": "unknown", "prior": {"name": "log_normal", "spread": -1.0}}},
        "response.k.prior.spread",
    ),
    ("prior", {"name": "uniform_box", "low": float("inf")}, "prior.low"),
    ("prior", {"name": "uniform_box", "low": 2.0}, "prior.low"),
    ("prior", {"name": "gaussian", "mean": float("nan")}, "prior.mean"),
    ("prior", {"name": "gaussian", "covariance": -1.0}, "prior.covariance"),
    ("posterior", {"name": "ep", "points": 2}, "posterior.points"),
    ("posterior", {"name": "particles", "sweeps": 0}, "posterior.sweeps"),
    ("posterior", {"name": "grid", "points": 1}, "posterior.points"),
    ("posterior", {"name": "grid", "cells": 1}, "posterior.cells"),
    ("candidates", {"name": "all_pairs", "gap": 2.0}, "candidates.gap"),
    ("candidates", {"name": "sampled_pairs", "rate": 2.0}, "candidates.rate"),
    ("rest", {"name": "rest", "item": -1}, "rest.item"),
    ("stop", {"name": "answers", "count": 0}, "stop.count"),
    ("stop", {"name": "radius", "radius": -1.0}, "stop.radius"),
    ("stop", {"name": "radius", "radius": 1.0, "level": 2.0}, "stop.level"),
    ("stop", {"name": "information", "bits": 2.0}, "stop.bits"),
    ("stop", {"name": "best_item", "probability": 2.0}, "stop.probability"),
]


@pytest.mark.parametrize(("kind", "record", "field"), INVALID, ids=[field for _, _, field in INVALID])
def test_an_invalid_setting_of_a_part_is_named_by_its_path(kind, record, field):
    with pytest.raises(InvalidParameter) as raised:
        serialization.decode(kind, record)
    assert raised.value.field == field


def test_a_part_that_is_built_directly_names_its_own_setting():
    with pytest.raises(InvalidParameter) as raised:
        ps.EPMV(penalty=-1.0)
    assert raised.value.field == "penalty"


def test_an_error_keeps_its_field_between_processes():
    error = InvalidParameter("penalty is -1", field="penalty")
    error.within("strategy")
    assert pickle.loads(pickle.dumps(error)).field == "strategy.penalty"
    assert InvalidItems("none").field == "items"
    assert InvalidParameter("several settings").field == ""


def test_the_summary_of_an_unavailable_store_has_no_addresses():
    error = StoreUnavailable("the database cannot be reached", "connection to 10.0.0.7 refused")
    assert str(error).startswith("the database cannot be reached (connection to 10.0.0.7 refused): ")
    assert error.summary == "the database cannot be reached"
