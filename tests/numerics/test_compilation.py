"""The message that kernels are being compiled: when they are, and only then."""

import gc
import time

import pytest
from numba.core import event

from pairseek.numerics import compilation as _notice

SHORT = 0.05


@pytest.fixture(autouse=True)
def unsaid(monkeypatch):
    monkeypatch.setattr(_notice, "_notified", False)
    # test_kernel_cache.py has the several processes of which one says it.
    monkeypatch.setattr(_notice.kernel_cache, "may_notify", lambda: True)


def compiling(seconds):
    """What numba tells its listeners when it compiles for so long, a called function with it."""
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        time.sleep(seconds)


def test_a_long_compilation_is_told_once(caplog):
    for _ in range(2):
        with _notice.first_use(SHORT):
            compiling(6 * SHORT)
    assert [record.getMessage()[:27] for record in caplog.records] == ["compiling numerical kernels"]


def test_many_short_compilations_add_up(caplog):
    with _notice.first_use(SHORT):
        for _ in range(6):
            compiling(SHORT / 2)
    assert len(caplog.records) == 1


def test_a_wait_without_compilation_is_not_called_one(caplog):
    with _notice.first_use(SHORT):
        time.sleep(6 * SHORT)
    with _notice.first_use(60.0):
        compiling(SHORT)
    with _notice.first_use(60.0):
        compiling(0.0)
        time.sleep(SHORT)
    assert caplog.records == []


def test_garbage_is_not_collected_while_compiling_and_is_again_after():
    seen = []

    def fail():
        with _notice.first_use(60.0), event.trigger_event("numba:compile"):
            seen.append(gc.isenabled())
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        fail()
    assert seen == [False]
    assert gc.isenabled()
    gc.disable()
    try:
        with _notice.first_use(60.0):
            compiling(0.0)
        assert not gc.isenabled()
    finally:
        gc.enable()
