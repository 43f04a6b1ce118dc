"""Identical bits on any number of threads, and a light import."""

import os
import subprocess
import sys

import pytest

SEARCH = """
import hashlib, numpy as np, pairseek as ps
digest = hashlib.sha256()
for d in (3, 12):
    rng = np.random.default_rng(d)
    items = ps.Items(rng.standard_normal((400, d)))
    for strategy in (ps.InfoGain(), ps.GreedyMSE()):
        search = ps.Search(items, rng=1, strategy=strategy, posterior=ps.Particles(2500))
        user = ps.SimulatedUser(rng.uniform(-1, 1, d), search.response, rng=1)
        for _ in range(7):
            query = search.ask()
            search.tell(query, winner=user.answer(items, query))
            digest.update(repr((query.left, query.right, query.info.information)).encode())
            for array in (search.belief.samples, search.belief.weights, search.belief.mean, search.belief.covariance):
                digest.update(array.tobytes())
print(digest.hexdigest())
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_threads_of_pairseek_and_of_the_linear_algebra_change_no_bit():
    digests = {
        run(SEARCH, PAIRSEEK_THREADS=own, OPENBLAS_NUM_THREADS=blas, OMP_NUM_THREADS=blas)[0]
        for own, blas in (("1", "1"), ("2", "2"), ("8", "1"))
    }
    assert len(digests) == 1


def test_import_loads_nothing_that_only_some_need():
    code = "import sys, pairseek; print(*sys.modules)"
    loaded = set(run(code)[0].split())
    for heavy in ("matplotlib", "typer", "rich", "clarabel", "scipy.optimize", "scipy.stats", "scipy.integrate"):
        assert heavy not in loaded


def test_a_thread_setting_that_is_none_is_named():
    from pairseek.errors import InvalidParameter

    with pytest.raises(InvalidParameter):
        __import__("pairseek").set_thread_count(0)
    code = "import pairseek as ps\ntry:\n ps.numerics.parallel.thread_count()\nexcept ps.PairseekError as e: print(e)"
    assert run(code, PAIRSEEK_THREADS="many")[0] == "PAIRSEEK_THREADS is 'many': give a whole number, at least 1"
