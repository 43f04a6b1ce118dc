"""Everything that shows or exports itself, in every situation: representations, pages, tables, figures and files.

The objects are found by introspection. From each root, such as a search, all public properties are read, and all public
methods are called whose arguments are in `ARGUMENTS`; what they return is looked at in the same way. So a new property
of an estimate or a new export of a result is tested without a line here, and a new class that shows itself fails
`test_every_class_that_shows_itself_has_a_root` until a root leads to it.
"""

import ast
import importlib
import inspect
import pkgutil
import types
import warnings

import numpy as np
import pytest
from test_notebook import SAFE_TAGS, Elements

import pairseek as ps
from helpers.own_parts import Closest
from pairseek import embed, evaluate, experiments, indexes
from pairseek.core.limits import Limit
from pairseek.core.user_parts import PartAdapter
from pairseek.errors import PairseekError
from pairseek.experiments import Contender, Setting, Specification
from pairseek.people.population.model import FitOptions
from pairseek.people.population.selection import CrossValidation
from pairseek.people.ranking.segments import find_segments
from pairseek.quiz.compiler import compile_quiz
from pairseek.quiz.content import QuizSource
from pairseek.quiz.plan import plan_quiz
from pairseek.web.studies.configuration import configured

# Arguments by name for calling methods; files and folders are created for each call.
ARGUMENTS = {"key": b"0123456789abcdef0123456789abcdef", "count": 3, "level": 0.9, "backend": "pandas"}
PATHS = {"path": "shown.csv", "folder": ""}
# Methods that change the object, wait for something or start work.
LEFT_OUT = {"undo", "ask_many", "fit", "move", "next", "close"}
ANSWERS = 4


def search_of(items, **parts):
    return ps.Search(items, rng=1, **parts)


POINTS = np.random.default_rng(3).normal(size=(14, 3))
ROWS = [(person, *pair) for person in "abcdefgh" for pair in ((0, 1), (2, 3), (4, 1), (5, 0), (1, 6), (6, 2))]


def population(d, **parts):
    places = {"items": ps.Items(POINTS[:7, :d])} if d else {"dimension": 0}
    return ps.Population.fit(ps.Choices.from_pairs(ROWS), **places, rng=0, residual=0.5, **parts)


UNKNOWN = ps.Logistic(ps.Unknown(), lapse=ps.Unknown())
SEARCHES = {
    "default": lambda: search_of(ps.datasets.colours()),
    "one dimension": lambda: search_of(ps.Items(POINTS[:, :1])),
    "two dimensions": lambda: search_of(ps.Items(POINTS[:, :2])),
    "many dimensions": lambda: search_of(ps.Items(np.random.default_rng(0).normal(size=(14, 20)))),
    "of a population": lambda: search_of(ps.Items(POINTS[:7, :2]), population=population(2)),
    "of a population without coordinates": lambda: search_of(ps.Items(ids=range(7)), population=population(0)),
    "of a population, curved": lambda: search_of(
        ps.Items(POINTS[:7, :2]),
        population=population(2),
        response=ps.Logistic(1.0, "constant", curvature=ps.Unknown()),
    ),
    "without coordinates": lambda: search_of(ps.Items(ids=range(5))),
    "space": lambda: search_of(ps.Space((0.0, 0.0), (1.0, 2.0))),
    "space of three dimensions": lambda: search_of(ps.Space((0.0,) * 3, (1.0,) * 3), response=UNKNOWN),
    "best": lambda: search_of(ps.Items(POINTS), goal="best"),
    "list": lambda: search_of(ps.Items(POINTS[:, :2]), goal="list"),
    "unknown k and lapse": lambda: search_of(ps.Items(POINTS[:, :2]), response=UNKNOWN),
    "all unknown": lambda: search_of(
        ps.Items(POINTS), response=ps.Logistic(ps.Unknown(), "constant", ps.Unknown(), curvature=ps.Unknown())
    ),
    "unknown noise": lambda: search_of(ps.Items(POINTS), response=ps.Logistic(noise=ps.Unknown())),
    "particles": lambda: search_of(ps.Items(POINTS), posterior=ps.Particles(300)),
    "grid": lambda: search_of(ps.Items(POINTS[:, :2]), posterior=ps.Grid(21)),
    "procedure": lambda: search_of(ps.Items(POINTS), strategy=ps.ActRank()),
    "linear": lambda: search_of(ps.Items(POINTS), response=ps.Logistic(1.0, "constant", curvature=0.0)),
    "stop and askable": lambda: search_of(ps.Items(POINTS), stop=3, askable=6),
    "box": lambda: search_of(ps.Items(POINTS), prior=ps.UniformBox(-2.0, 2.0)),
}


def results(tmp_path, data, **parts):
    plan = Specification(
        name="shown",
        settings=(Setting(data=data, **parts),),
        strategies=(Contender(ps.Random()),),
        queries=2,
        trials=2,
        seed=1,
    )
    return experiments.run(plan, tmp_path / "results")


def crowd():
    """Return the choices of 24 people: some methods learn from a subset and replay the others."""
    return ps.Choices.from_pairs([(times * person, *pair) for times in (1, 2, 3) for person, *pair in ROWS])


def evaluated(tmp_path, items=None):
    given = {"learn": 1} if items is None else {"items": items}
    return evaluate.evaluate(crowd(), tmp_path / "evaluation", answers=(1, 2), splits=1, residual=0.0, **given)


def catalogue_index():
    items = ps.Items(POINTS)
    return indexes.CatalogueIndex.of(indexes.ExactIndex(), items)


TRIPLETS = embed.simulate_triplets(ps.Items(POINTS[:10, :2]), 200, rng=1)
FAST = {"random_state": 0, "max_iter": 20}


def last_step(fit, **parts):
    """Return the last progress a fit reports."""
    steps = []
    fit(progress=steps.append, **parts)
    return steps[-1]


OTHERS = {
    "adapter": lambda _: PartAdapter(Closest()),
    "items": lambda _: ps.Items(POINTS, data={"colour": ["#ff0000"] * 14, "image": ["x.png"] * 14}),
    "items without coordinates": lambda _: ps.Items(ids=["tea", "coffee"]),
    "items from vectors": lambda _: ps.Items.from_vectors(np.random.default_rng(1).normal(size=(40, 30))),
    "space": lambda _: ps.Space((0.0, 0.0), (1.0, 1.0)),
    "choices": lambda _: ps.Choices.from_pairs(ROWS),
    "population": lambda _: population(2),
    "population without coordinates": lambda _: population(0),
    "population step": lambda _: last_step(lambda **parts: population(2, **parts)),
    "fit options": lambda _: CrossValidation((FitOptions(dimension=0), FitOptions(dimension=1)), np.zeros((2, 4))),
    "ranking": lambda _: ps.rank(ps.Choices.from_pairs(ROWS)),
    "ranking among items": lambda _: ps.rank(ps.Choices.from_pairs(ROWS), ps.Items(POINTS)),
    "segments": lambda _: find_segments(ps.Choices.from_pairs(ROWS)),
    "simulation": lambda folder: results(folder, ps.Items(POINTS), scaled=False),
    "simulation of a default search": lambda folder: results(
        folder, ps.Items(POINTS), scaled=False, prior=None, response=ps.Search(ps.Items(POINTS)).response
    ),
    "simulation in a space": lambda folder: results(folder, ps.Space((-1.0,) * 2, (1.0,) * 2)),
    "evaluation": evaluated,
    "evaluation among items": lambda folder: evaluated(folder, ps.Items(POINTS[:7], ids=range(7))),
    "catalogue index": lambda _: catalogue_index(),
    "triplets": lambda _: TRIPLETS,
    "embedding": lambda _: embed.CKL(n_components=2, **FAST).fit(TRIPLETS),
    "embedding step": lambda _: last_step(
        lambda progress: embed.CKL(n_components=2, progress=progress, **FAST).fit(TRIPLETS)
    ),
    "dimension": lambda _: embed.choose_dimension(TRIPLETS, (1, 2), method=embed.CKL(**FAST), folds=2),
    "noise fits": lambda _: embed.fit_noise(ps.Items(POINTS[:10, :2]), TRIPLETS, folds=2),
    "scales": lambda _: ps.Items(POINTS * [1.0, 500.0, 1.0]),
    "limit": lambda _: Limit(0, 1),
    "health": lambda _: embed.check(ps.Items(np.random.default_rng(1).normal(size=(40, 2)))),
    "simulated user": lambda _: ps.SimulatedUser(POINTS[0], ps.Logistic(1.0), rng=1),
}


# For every class with its own representation, a key of SEARCHES or OTHERS from which it can be reached.
ROOTS = {
    "Choices": "choices",
    "ColumnScale": "scales",
    "CrossValidation": "fit options",
    "DimensionChoice": "dimension",
    "Estimate": "default",
    "EvaluationResults": "evaluation",
    "FitOptions": "fit options",
    "FitProgress": "embedding step",
    "Health": "health",
    "Items": "items",
    "LearningStep": "population step",
    "Limit": "limit",
    "NoiseFits": "noise fits",
    "PartAdapter": "adapter",
    "Population": "population",
    "Ranking": "ranking",
    "Recommendation": "default",
    "Recommendations": "default",
    "Results": "simulation",
    "ScaleContrast": "scales",
    "Search": "default",
    "Segmentation": "segments",
    "Triplets": "triplets",
    "VectorMap": "items from vectors",
}


def modules():
    """Return the modules of the library; the pages of the service have their own tests."""
    names = (info.name for info in pkgutil.walk_packages(ps.__path__, "pairseek."))
    left_out = ("pairseek.web", "pairseek.store", "pairseek.cli", "pairseek.testing", "pairseek.__main__")
    return [importlib.import_module(name) for name in names if not name.startswith(left_out)]


def showing():
    """Return the classes with a hand-written representation."""
    found = set()
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ClassDef) and not any("Error" in ast.unparse(base) for base in node.bases):
                own = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                if own & {"_repr_html_", "__repr__", "__str__"}:
                    found.add(node.name)
    return found


def looked_at(root, folder):
    """Read and call all public members of an object and of its results; return the class names encountered."""
    met, waiting = set(), [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list | tuple) and len(one):
            waiting.extend(one[:2])
        kind = type(one)
        if not kind.__module__.startswith("pairseek") or isinstance(one, str) or kind.__name__ in met:
            continue
        met.add(kind.__name__)
        shown(one)
        for attribute in dir(kind) + list(getattr(one, "__dict__", {})):
            if attribute.startswith("_") or attribute in LEFT_OUT:
                continue
            waiting.append(result_of(one, attribute, folder))
    return met


def shown(one):
    assert repr(one)
    assert str(one)
    if hasattr(one, "_repr_html_"):
        page = Elements(one._repr_html_())
        assert {tag for tag, _ in page.found} <= SAFE_TAGS
        assert "nan" not in page.text.lower().split()


def result_of(one, attribute, folder):
    """Return a property, or the result of a method; an error of the library also counts as a result."""
    if isinstance(inspect.getattr_static(one, attribute), classmethod | staticmethod):
        return None
    try:
        value = getattr(one, attribute)
        if not isinstance(value, types.MethodType):
            return value
        arguments = {}
        for name, parameter in inspect.signature(value).parameters.items():
            if name in PATHS:
                place = folder / f"{type(one).__name__}-{attribute}"
                place.mkdir(exist_ok=True)
                arguments[name] = place / PATHS[name]
            elif parameter.default is inspect.Parameter.empty and name in ARGUMENTS:
                arguments[name] = ARGUMENTS[name]
            elif parameter.default is inspect.Parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
                return None
        return value(**arguments)
    except PairseekError:
        # A refusal with a reason, such as `recommend` in a space.
        return None


def answered(search):
    for number in range(ANSWERS):
        if search.finished is not None:
            break
        query = search.ask()
        search.tell(query, **({"tie": True} if number == 2 else {"winner": query.left}))
    if isinstance(search.items, ps.Items) and search.items.n > 3:
        search.observe(search.items.ids[0], search.items.ids[3], winner=search.items.ids[0])
    return search


def leads_on(name):
    """Return the classes to which a root must lead."""
    return {one for one, root in ROOTS.items() if root == name}


def test_every_class_that_shows_itself_has_a_root():
    assert showing() == set(ROOTS)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_and_all_it_returns(name, when, tmp_path):
    search = SEARCHES[name]()
    if when == "after":
        answered(search)
    assert {"Estimate", "Belief", *leads_on(name)} <= looked_at(search, tmp_path)


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else(name, tmp_path):
    assert leads_on(name) <= looked_at(OTHERS[name](tmp_path), tmp_path)


QUIZZES = {
    "default": (3, {}),
    "two dimensions": (2, {}),
    "one dimension": (1, {}),
    "without coordinates": (0, {}),
    "best": (3, {"goal": "best"}),
    "list": (0, {"goal": "list"}),
    "unknown k and lapse": (2, {"response": {"name": "logistic", "k": "unknown", "lapse": "unknown"}}),
}


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("name", QUIZZES)
def test_a_page_to_embed(name, learned, tmp_path):
    d, settings = QUIZZES[name]
    items = ps.Items(POINTS[:7, :d]) if d else ps.Items(ids=range(7))
    found = population(d) if learned else None
    source = QuizSource(configured({"title": "Shown", "answers": 3, **settings}), items, population=found)
    made = compile_quiz(plan_quiz(source), tmp_path / "quiz")
    assert "<!doctype html>" in (tmp_path / "quiz" / "index.html").read_text().lower()
    shown(made)
