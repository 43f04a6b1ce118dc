"""Limits of the settings of studies: each part declares them, the service enforces them, the docs list them."""

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from helpers.serving import configuration, some_items
from pairseek.core.limits import BySize, Limit, Size, check_limits, field_hints, limits_of
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.posteriors import Grid, Particles
from pairseek.search.serialization import PART_KINDS, parts_by_name
from pairseek.web.studies.checks import check
from pairseek.web.studies.items import study_items

PARTS = [(kind, name, part) for kind in PART_KINDS for name, part in parts_by_name(kind).items()]
DOCS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "study-settings.md").read_text()
SMALL = Size(40, 2)
SWEEPS = {"name": "particles", "sweeps": 4}
MEDIAN = {"name": "unknown", "prior": {"name": "log_normal", "median": 1e50}}


def is_numeric(hint):
    """Whether a type hint admits numbers, also inside a union, a tuple or an array."""
    return bool(re.search(r"\b(int|float|float64|int64|ndarray)\b", str(hint)))


@pytest.mark.parametrize(("kind", "name", "part"), PARTS)
def test_every_numeric_setting_of_every_part_declares_its_limit(kind, name, part):
    hints = field_hints(part)
    numeric = {field.name for field in dataclasses.fields(part) if field.init and is_numeric(hints[field.name])}
    undeclared = numeric - set(limits_of(part))
    assert not undeclared, f"declare {undeclared} of {part.__name__} as Annotated[..., Limit(least, most)]"
    for field in dataclasses.fields(part):
        if field.name in limits_of(part) and field.default is not dataclasses.MISSING:
            for size in (SMALL, Size(200_000, 3, unknown=True)):
                limits_of(part)[field.name].check(field.default, field.name, size)


def test_a_part_without_declared_limits_cannot_be_used_in_a_study():
    @dataclass(frozen=True)
    class Bold:
        depth: int = 3
        width: Annotated[int, Limit(1, 10)] = 3
        name: ClassVar[str] = "bold"

    with refused("strategy.depth"):
        check_limits(Bold(), "strategy", SMALL)


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"posterior": {"name": "particles", "sweeps": 100_000}}, "posterior.sweeps"),
        ({"posterior": SWEEPS, "response": {"name": "logistic", "k": "unknown"}}, "posterior.sweeps"),
        ({"posterior": {"name": "grid", "points": 2001}}, "posterior.points"),
        ({"strategy": {"name": "actrank", "votes": 10**9}}, "strategy.votes"),
        ({"strategy": {"name": "mcmv", "penalty": 1e300}}, "strategy.penalty"),
        ({"candidates": {"name": "sampled_pairs", "count": 100, "rescore": 10**6}}, "candidates.rescore"),
        ({"candidates": {"name": "listed_pairs", "pairs": [[0, 1], [2, 40]]}}, "candidates.pairs"),
        ({"candidates": {"name": "all_pairs", "listed": 10**12}}, "candidates.listed"),
        ({"prior": {"name": "uniform_box", "low": [-1, -1e300], "high": [1, 1]}}, "prior.low"),
        ({"prior": {"name": "gaussian", "covariance": [[1, 0], [0, 1e300]]}}, "prior.covariance"),
        ({"response": {"name": "logistic", "k": MEDIAN}}, "response.k.prior.median"),
        ({"stop": [{"name": "answers", "count": 10**6}]}, "stop.count"),
        ({"rest": {"pair": 10**9}}, "rest.pair"),
    ],
)
def test_a_study_with_a_setting_beyond_its_limit_is_refused_by_name(changes, setting):
    with refused(setting):
        check(configuration(**changes), some_items())


def test_a_sample_by_rate_is_limited_by_the_number_of_its_pairs():
    sampled = configuration(candidates={"name": "sampled_pairs", "rate": 1.0})
    check(sampled, some_items())
    with refused("candidates.rate"):
        check(sampled, some_items(n=2001))


def test_lists_are_limited_in_length_and_in_depth():
    pairs = [[0, 1]] * 100_001
    with refused("candidates.pairs"):
        check(configuration(candidates={"name": "listed_pairs", "pairs": pairs}), some_items())
    deep = 0.0
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidParameter, match="do not fit together"):
        check(configuration(prior={"name": "gaussian", "mean": deep}), some_items())


@pytest.mark.filterwarnings("ignore::pairseek.DimensionWarning")
def test_items_of_a_study_have_at_most_a_hundred_dimensions():
    study_items(ps.Items(np.eye(101)[:, :100]), scaled=False)
    with pytest.raises(InvalidItems):
        study_items(ps.Items(np.eye(101)), scaled=False)


def test_items_of_a_study_have_at_most_a_million_coordinates():
    with pytest.raises(InvalidItems):
        study_items(ps.Items(np.random.default_rng(0).normal(size=(20_001, 50))), scaled=False)


def test_the_library_itself_is_not_limited():
    assert Particles(n=10**6, sweeps=10**6).sweeps == 10**6
    assert Grid(points=5000).points == 5000


def test_the_docs_list_every_limit():
    rows = []
    for kind, name, part in PARTS:
        settings = [f"`{setting}` {limit}" for setting, limit in limits_of(part).items()]
        if settings:
            rows.append(f"| `{kind}` | `{name}` | {'; '.join(settings)} |")
    missing = [row for row in rows if row not in DOCS]
    assert not missing, "docs/reference/study-settings.md lacks:\n" + "\n".join(missing)
    assert str(Limit(1, BySize(lambda _: 2, "two"))) == "1 to two"
