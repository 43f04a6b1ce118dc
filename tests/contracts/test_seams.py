"""The seams of a search: base classes declare optional members, and one module inspects users' own parts."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import pairseek as ps
from helpers.own_parts import BestOfFew, Closest, InTurn, Thompson, TwoHills, Weighted
from pairseek.core.types import BaseSampleSource, SampleSource, sample_source_of
from pairseek.core.user_parts import Part, PartAdapter
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.priors import BasePrior, Prior, prior_of
from pairseek.pairs.strategies import UTILITIES
from pairseek.pairs.strategies.base import (
    BaseProcedure,
    BaseUtility,
    Procedure,
    Utility,
    procedure_of,
    strategy_of,
    utility_of,
)
from pairseek.pairs.strategies.baselines import PROCEDURES
from pairseek.pairs.strategies.shape import UtilityShape
from pairseek.posteriors import POSTERIORS
from pairseek.posteriors.base import BasePosterior, Posterior, posterior_of

SOURCE = Path(ps.__file__).parent
# Everything a search runs, and the contract suites.
PATHS = (
    *(folder for folder in ("core", "indexes", "model", "pairs", "people", "posteriors", "search", "testing")),
    *(path.name for path in SOURCE.glob("*.py") if path.name != "__init__.py"),
    *("experiments/specification.py", "experiments/trial.py", "experiments/runs/part_records.py"),
)
# Number of places that may test for an attribute, and why.
ALLOWED = {
    "core/user_parts.py": (2, "the one module that looks at parts of users"),
    "core/limits.py": (1, "notes of a type hint, which only some hints have"),
    "core/frames.py": (2, "data frames of libraries that may not be installed"),
    "model/vector_tables.py": (4, "data frames of libraries that may not be installed"),
}
BASES = (BaseUtility, BaseProcedure, BasePosterior, BasePrior, BaseSampleSource)
REQUIRED = {
    BaseUtility: Utility,
    BaseProcedure: Procedure,
    BasePosterior: Posterior,
    BasePrior: Prior,
    BaseSampleSource: SampleSource,
}


def calls(path):
    return (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))


def asks_for_attributes(call):
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return name == "hasattr" or (name == "getattr" and len(call.args) + len(call.keywords) > 2)


def asks_for_a_space(node):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return "Space" in {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
    if isinstance(node, ast.Compare):  # type(items) is Space
        return "Space" in {part.id for part in (node.left, *node.comparators) if isinstance(part, ast.Name)}
    return False


def test_no_module_of_a_search_asks_whether_a_part_has_a_member():
    paths = [
        path for name in PATHS for path in ([SOURCE / name] if name.endswith(".py") else (SOURCE / name).rglob("*.py"))
    ]
    counter = Counter({str(path.relative_to(SOURCE)): sum(map(asks_for_attributes, calls(path))) for path in paths})
    assert +counter == {name: count for name, (count, _) in ALLOWED.items()}


def test_few_places_ask_whether_items_are_a_space():
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if asks_for_a_space(node)
    ]
    assert len(found) <= 6, f"give Items and Space a method instead: {found}"


def declared(base):
    """Return the required members of a base class, and the documentation of those with a default."""
    body = ast.parse(inspect.getsource(base)).body[0].body
    required, documented = set(), {}
    for place, node in enumerate(body):
        if isinstance(node, ast.AnnAssign) and node.value is None:
            required.add(node.target.id)
        elif isinstance(node, ast.AnnAssign):
            after = body[place + 1] if place + 1 < len(body) else None
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
            documented[node.target.id] = text
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            documented[node.name] = ast.get_docstring(node)
    return required, documented


@pytest.mark.parametrize("base", BASES)
def test_every_optional_member_is_documented_in_the_base_of_its_protocol(base):
    required, optional = declared(base)
    assert optional
    for member, text in optional.items():
        assert text, f"{base.__name__}.{member} has no documentation"
        assert hasattr(base, member)
    # Required members are in the protocol, and no optional member is declared as required by the base.
    assert required <= set(dir(REQUIRED[base]))
    assert required.isdisjoint(optional)


def test_all_parts_of_the_package_derive_from_the_bases():
    for base, kinds in (
        (BaseUtility, UTILITIES.values()),
        (BaseProcedure, PROCEDURES.values()),
        (BasePosterior, POSTERIORS.values()),
        (BasePrior, (ps.GaussianPrior, ps.UniformBox)),
    ):
        assert all(issubclass(kind, base) for kind in kinds)


ADAPTERS = {
    utility_of: (BaseUtility, Closest()),
    procedure_of: (BaseProcedure, InTurn()),
    posterior_of: (BasePosterior, Weighted()),
    prior_of: (BasePrior, TwoHills()),
}


@pytest.mark.parametrize("adapted", ADAPTERS, ids=lambda function: function.__name__)
def test_an_adapter_has_the_members_of_the_part_and_the_defaults_of_the_base(adapted):
    base, part = ADAPTERS[adapted]
    one = adapted(part)
    assert isinstance(one, base)
    assert isinstance(one, PartAdapter)
    assert one.original is part
    assert repr(one) == repr(part)
    assert adapted(one) is one
    _, optional = declared(base)
    for member in set(optional) - {"shape", "resolved"}:
        own = getattr(part, member, None)
        default = getattr(base, member)
        if own is not None:
            assert getattr(one, member) == own
        elif not callable(default):
            assert getattr(one, member) == default
    again = pickle.loads(pickle.dumps(one))
    assert again.original == part


def test_a_part_that_derives_from_a_base_needs_no_adapter():
    strategy = ps.InfoGain()
    assert utility_of(strategy) is strategy
    assert strategy.original is strategy
    assert isinstance(strategy_of(InTurn()), BaseProcedure)
    assert isinstance(strategy_of(Closest()), BaseUtility)
    assert sample_source_of(BaseSampleSource()).leading is None


ITEMS = ps.Items(np.random.default_rng(0).normal(size=(12, 2)), ids=[f"item {i}" for i in range(12)])


@dataclass(frozen=True)
class Declaring:
    """A plain class with every optional member of a utility."""

    name: ClassVar[str] = "declaring"
    rescored: ClassVar[bool] = True
    most_pairs: ClassVar[int] = 10
    asked: ClassVar[Counter] = Counter()
    weight: float = 1.0

    def score(self, candidates, belief):
        self.asked["score"] += 1
        return self.weight * candidates.length

    def exact(self, candidates, belief):
        self.asked["exact"] += 1
        return self.weight * candidates.length

    def promising(self, candidates, belief):
        self.asked["promising"] += 1
        return np.arange(6)

    def bound(self, candidates, belief, others):
        self.asked["bound"] += 1
        return 100.0

    def resolved(self, items, prior):
        self.asked["resolved"] += 1
        return Declaring(self.weight + 1.0)

    def turn(self, number, belief):
        self.asked["turn"] += 1
        return self

    def rival(self, belief):
        self.asked["rival"] += 1
        return Closest()


def test_every_optional_member_of_a_plain_class_is_used():
    Declaring.asked.clear()
    source = ps.AllPairs(listed=10)
    search = ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=Declaring(), candidates=source, rng=1)
    info = search.ask().info
    assert {"score", "promising", "bound", "resolved", "turn", "rival"} <= set(Declaring.asked)
    assert info.strategy == "declaring"
    assert info.gap is not None
    ps.Search(
        ITEMS, response=ps.Logistic(1.0), strategy=Declaring(), candidates=ps.SampledPairs(count=9, rescore=3), rng=1
    ).ask()
    assert Declaring.asked["exact"]


@dataclass(frozen=True)
class Weighing(Closest):
    name: ClassVar[str] = "weighing"
    weight: float = 3.0


@dataclass(frozen=True)
class Curious:
    """A source that reads a member of the strategy that no protocol declares."""

    name: ClassVar[str] = "curious"

    def choose(self, context, rng):
        assert context.strategy.weight == 3.0
        return BestOfFew().choose(context, rng)


def test_a_search_gives_ones_own_parts_back_as_they_are(tmp_path):
    parts = {"strategy": Closest(), "posterior": Weighted(), "prior": TwoHills(), "candidates": BestOfFew()}
    search = ps.Search(ITEMS, response=ps.Logistic(1.0), **parts, rng=1)
    for kind, part in parts.items():
        assert getattr(search, kind) is part
    assert search.configuration["strategy"] == {"name": "closest"}
    assert search.configuration["posterior"] == {"name": "weighted_draws", "draws": 400}
    asked = search.ask()
    for twin in (copy.deepcopy(search), pickle.loads(pickle.dumps(search))):
        assert twin.ask() == asked
        assert twin.strategy == parts["strategy"]
    search.save(tmp_path / "me.json")
    assert ps.Search.load(tmp_path / "me.json", **parts).ask() == asked
    assert isinstance(ps.Search(ITEMS, strategy=InTurn(), rng=1).strategy, InTurn)
    assert type(ps.Search(ITEMS, strategy=Declaring(), rng=1).strategy) is Declaring


def test_a_source_of_ones_own_reads_any_member_of_a_strategy_of_ones_own():
    search = ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=Weighing(), candidates=Curious(), rng=1)
    assert search.ask().left in ITEMS.ids


def test_an_error_names_the_class_of_ones_own_part():
    class Broken(Closest):
        def score(self, candidates, belief):
            return np.full(len(candidates), np.nan)

    with pytest.raises(InvalidParameter, match=r"Broken\.score returned NaN"):
        ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=Broken(), rng=1).ask()


class Drawn(BaseUtility):
    name = "drawn"

    def score(self, candidates, belief, rng):
        return rng.random(len(candidates))

    def shape(self):
        return UtilityShape("even")


class Redefined(ps.InfoGain):
    def score(self, candidates, belief):
        return -candidates.length


class Renamed(ps.InfoGain):
    name = "renamed"


class Mixed(Thompson, ps.InfoGain):
    """A plain class whose score replaces that of a built-in strategy."""


class RedefinedPlain(Closest):
    def shape(self):
        return UtilityShape("even")

    def score(self, candidates, belief):
        return -candidates.length


class OverridingPlain(RedefinedPlain):
    def score(self, candidates, belief):
        return candidates.length


def test_what_follows_from_the_score_follows_from_the_class_that_defines_it():
    assert Drawn.takes_generator
    assert not ps.InfoGain.takes_generator
    assert utility_of(Thompson()).takes_generator
    assert Mixed.takes_generator
    assert Mixed().shape() is None
    assert Drawn().shape() == UtilityShape("even")
    assert Redefined().shape() is None
    assert Renamed().shape() == ps.InfoGain().shape()
    assert utility_of(RedefinedPlain()).shape() == UtilityShape("even")
    assert utility_of(OverridingPlain()).shape() is None


def test_none_stands_for_a_member_that_a_plain_class_does_not_have():
    class Modest(Closest):
        name = "modest"
        turn = rival = exact = planes = None

    assert ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=Modest(), rng=1).ask().info.strategy == "modest"


def test_a_strategy_may_derive_from_the_base():
    strategy = Drawn()
    first = ps.Search(ITEMS, response=ps.Logistic(1.0), strategy=strategy, rng=1)
    assert first.strategy is strategy
    pairs = {frozenset((q.left, q.right)) for q in (ps.Search(ITEMS, strategy=Drawn(), rng=s).ask() for s in range(5))}
    assert len(pairs) > 1


def test_items_and_a_space_have_the_same_members():
    space = ps.Space([0.0, 0.0], [1.0, 2.0])
    refused = Unsupported("no items")
    assert ITEMS._require_catalogue(refused) is ITEMS
    with pytest.raises(Unsupported):
        space._require_catalogue(refused)
    assert space.coordinates.shape == (0, 2)
    assert space.appeal.shape == (0,)
    assert space.spread is None
    assert space.scaled() is space
    assert ITEMS._side("item 3") == "item 3"
    assert space._side([0.5, 1]) == (0.5, 1.0)
    point, appeal = ITEMS._place_of("item 3")
    assert point.tolist() == ITEMS.coordinates[3].tolist()
    assert (space._place_of((0.5, 1.0))[0].tolist(), appeal, space._place_of((0.5, 1.0))[1]) == ([0.5, 1.0], 0.0, 0.0)
    assert ITEMS._side_of(3, point) == "item 3"
    assert space._side_of(0, np.array([0.5, 1.0])) == (0.5, 1.0)
    shared = {name for name in vars(ps.Space) if not name.startswith("_")}
    assert shared - {"min_separation", "max_separation", "point"} <= set(dir(ITEMS))


def test_parts_have_one_base():
    assert all(issubclass(base, Part) for base in BASES)
