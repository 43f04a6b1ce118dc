"""Thread pool on which kernels run."""

import numpy as np
import pytest

from pairseek.errors import InvalidParameter
from pairseek.numerics import parallel


def fill(start, stop, out):
    out[start:stop] = np.arange(start, stop)


def test_there_is_one_pool_however_many_pieces_there_are(on_threads):
    def pools():
        seen = []
        for n in (20, 30, 90, 20):
            out = np.full(n, -1)
            parallel.for_ranges(fill, n, 10, out)
            assert out.tolist() == list(range(n))
            seen.append(parallel._pool[2])
        return seen

    five = on_threads(5, pools)
    assert all(pool is five[0] for pool in five)
    two = on_threads(2, pools)
    assert two[0] is not five[0]
    assert all(pool is two[0] for pool in two)


@pytest.mark.parametrize("text", ["many", "0", "-1", "1.5", "²"])
def test_the_environment_names_a_number_of_threads(text, monkeypatch):
    monkeypatch.setattr(parallel, "_threads", None)
    monkeypatch.setenv("PAIRSEEK_THREADS", "3")
    assert parallel.thread_count() == 3
    monkeypatch.setenv("PAIRSEEK_THREADS", text)
    with pytest.raises(InvalidParameter, match=f"PAIRSEEK_THREADS is '{text}': give a whole number, at least 1"):
        parallel.thread_count()
