"""Notice of compilation: shown while kernels are compiled, and only then."""

import gc
import time

import pytest
from numba.core import event

from pairseek.numerics import compilation

SHORT = 0.05


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    monkeypatch.setattr(compilation, "_notified", False)
    # test_kernel_cache.py tests that only one of several processes shows it.
    monkeypatch.setattr(compilation.kernel_cache, "claim_notice", lambda: True)


def compiling(seconds):
    """Trigger the events of a nested compilation that takes this long."""
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        time.sleep(seconds)


def test_a_long_compilation_is_announced_once(caplog):
    for _ in range(2):
        with compilation.compilation_notice(SHORT):
            compiling(6 * SHORT)
    assert [record.getMessage()[:27] for record in caplog.records] == ["compiling numerical kernels"]


def test_many_short_compilations_add_up(caplog):
    with compilation.compilation_notice(SHORT):
        for _ in range(6):
            compiling(SHORT / 2)
    assert len(caplog.records) == 1


def test_waiting_without_compiling_is_not_announced(caplog):
    with compilation.compilation_notice(SHORT):
        time.sleep(6 * SHORT)
    with compilation.compilation_notice(60.0):
        compiling(SHORT)
    with compilation.compilation_notice(60.0):
        compiling(0.0)
        time.sleep(SHORT)
    assert caplog.records == []


def test_garbage_collection_is_paused_while_compiling():
    seen = []

    def fail():
        with compilation.compilation_notice(60.0), event.trigger_event("numba:compile"):
            seen.append(gc.isenabled())
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        fail()
    assert seen == [False]
    assert gc.isenabled()
    gc.disable()
    try:
        with compilation.compilation_notice(60.0):
            compiling(0.0)
        assert not gc.isenabled()
    finally:
        gc.enable()
