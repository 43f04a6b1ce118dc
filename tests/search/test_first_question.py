"""Modules and kernels behind the first question of a search, for which people wait."""

import subprocess
import sys

import numpy as np
import pytest

from pairseek.model.priors import GaussianPrior, WithResiduals
from pairseek.posteriors.gaussian import PriorForm

ASK = "import pairseek as ps; search = ps.Search(ps.datasets.colours(), rng=0); query = search.ask(); "
ANSWER = "search.tell(query, winner=query.left); search.ask(); "
# The kernels that have been compiled or loaded from disk.
USED = """
import sys
from numba.core.dispatcher import Dispatcher
kernels = {member for module in list(sys.modules.values()) if "pairseek" in getattr(module, "__name__", "")
           for member in vars(module).values() if isinstance(member, Dispatcher) and member.overloads}
print(*(kernel.py_func.__name__ for kernel in kernels))
"""


def words_of(program):
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_the_first_question_needs_no_kernel_of_inference():
    first, second = (set(words_of(program + USED)) for program in (ASK, ASK + ANSWER))
    assert {"scan_pairs", "log_inverse_determinant"} <= first
    assert not first & {"propagate", "without_private", "join_private", "_orthonormal"}
    assert {"propagate", "without_private", "join_private", "_orthonormal"} <= second


def test_the_first_questions_load_no_module_after_the_import():
    program = "import sys, pairseek as ps; items = ps.datasets.colours(); known = set(sys.modules); "
    loaded = "print(*(name for name in set(sys.modules) - known if name.startswith('pairseek')))"
    asked = "search = ps.Search(items, rng=0); query = search.ask(); " + ANSWER
    assert not words_of(program + asked + loaded)


@pytest.mark.parametrize("count", [0, 3])
def test_the_mass_of_a_gaussian_prior_is_its_determinant(count):
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4))
    covariance = root @ root.T + np.eye(4)
    form = PriorForm.of(WithResiduals(GaussianPrior(rng.normal(size=4), covariance), 4, count), 4 + count)
    before = [part.copy() for part in form.scaled]
    assert form.log_mass == pytest.approx(0.5 * np.linalg.slogdet(covariance)[1], rel=1e-12)
    assert all(np.array_equal(one, other) for one, other in zip(before, form.scaled, strict=True))
