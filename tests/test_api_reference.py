"""The API reference has every public name once, each with an example that runs."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import pairseek as ps

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api"
NAMES = [name for name in ps.__all__ if name != "__version__"]
MODULES = [name for name in NAMES if inspect.ismodule(getattr(ps, name))]


def examples_of(name):
    value = getattr(ps, name)
    if inspect.ismodule(value):
        return doctest.DocTestFinder(exclude_empty=True).find(value, name)
    # The docstring of the class or function alone: methods inherited from elsewhere have examples of their own.
    module = inspect.getmodule(value)
    return [
        found for found in doctest.DocTestFinder(exclude_empty=True).find(value, name, module=module) if found.examples
    ]


def test_the_reference_has_every_public_name_once():
    pages = "\n".join(path.read_text() for path in sorted(REFERENCE.glob("*.md")))
    assert sorted(re.findall(r"^::: pairseek\.(\w+)$", pages, re.MULTILINE)) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name):
    found = examples_of(name)
    assert any(test.examples for test in found), f"{name} has no example: add one to its docstring"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    for test in found:
        runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
