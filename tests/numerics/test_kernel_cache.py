"""Cache of compiled kernels when few or no folders are writable, tested in real processes of other users."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.unprivileged import as_nobody, give, installed, protect
from pairseek.numerics import kernel_cache

# Uses two kernels; prints how many were loaded from disk and how many were compiled.
PROGRAM = """
import pairseek
from pairseek.numerics import jit, kernel_cache
jit.log_ndtr(0.5)
jit.exp_minus(0.5)
stats = jit.log_ndtr.stats, jit.exp_minus.stats
hits, misses = (sum(sum(kernel[field].values()) for kernel in stats) for field in (1, 2))
print(pairseek.__file__, hits, misses, kernel_cache.own_cache_folders().writable)
print(kernel_cache.notice())
"""
# Asks twice, and prints the modules of what numba compiles; it compiles its module of strings for an error message if
# a kernel assigns an array to a slice of another.
SEARCH = """
from numba.core import event
class Compiled(event.Listener):
    def on_start(self, event):
        print("compiled", event.data["dispatcher"].py_func.__module__)
    def on_end(self, event):
        pass
event.register("numba:compile", Compiled())
import pairseek as ps
search = ps.Search(ps.datasets.colours(), rng=0)
query = search.ask()
search.tell(query, winner=query.left)
print(search.ask().left)
"""
NOTICE = "compiling numerical kernels;"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package():
    with installed() as folder:
        yield folder


@pytest.fixture
def world(package, tmp_path_factory):
    """A read-only package, no home folder, and a temporary folder like /tmp, in which to ``run`` programs."""
    return World(package)


class World:
    def __init__(self, folder):
        self.folder = folder
        self.temporary = folder / f"tmp{len(list(folder.iterdir()))}"
        self.temporary.mkdir()
        self.temporary.chmod(0o1777)
        self.own = self.temporary / f"pairseek-kernels-{os.geteuid() or 65534}"

    def start(self, *words, **environment):
        environment = {
            "HOME": "/nonexistent",
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.folder / "site"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self.temporary),
        } | {name: str(value) for name, value in environment.items()}
        return subprocess.Popen(
            [*as_nobody(), sys.executable, *map(str, words)],
            env=environment,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, **environment):
        with self.start(*words, **environment) as process:
            out, errors = process.communicate(timeout=240)
        assert process.returncode == 0, out + errors
        return out, errors

    def counts(self, **environment):
        """Return the number of kernels loaded and compiled, the folder that stores them, and the notice."""
        out, _ = self.run("-c", PROGRAM, **environment)
        first, notice = out.splitlines()
        package, hits, misses, stored = first.split(maxsplit=3)
        assert package.startswith(str(self.folder)), "another package was imported"
        return int(hits), int(misses), stored, notice


def test_kernels_go_to_a_private_temporary_folder_if_nothing_else_is_writable(world):
    hits, misses, kept, notice = world.counts()
    assert (hits, misses) == (0, 2)
    assert kept.startswith(f"{world.own}/numerics_")
    assert notice.startswith(
        f"{NOTICE} this takes up to a minute, and again once {world.own} has been emptied: set NUMBA_"
    )
    for folder in (world.own, *world.own.iterdir()):
        status = folder.stat()
        assert stat.S_IMODE(status.st_mode) == 0o700
        assert status.st_uid == (os.geteuid() or 65534)
    assert world.counts()[:2] == (2, 0)
    # Nothing is loaded from a folder that another user can write.
    elsewhere = world.folder / f"{world.temporary.name}-elsewhere"
    for opened in (world.own, world.temporary, elsewhere):
        if opened == elsewhere:
            world.own.rename(elsewhere)
            world.own.symlink_to(elsewhere)
        usual = stat.S_IMODE(opened.stat().st_mode)
        opened.chmod(0o777)
        hits, misses, kept, _ = world.counts()
        opened.chmod(usual)
        assert (hits, misses, kept) == (0, 2, "None"), opened


def test_the_cache_of_the_user_comes_before_a_temporary_one(world):
    home = give(world.folder / "home")
    hits, misses, kept, notice = world.counts(HOME=home)
    assert (hits, misses) == (0, 2)
    assert kept.startswith(f"{home}/")
    assert not world.own.exists()
    assert notice == f"{NOTICE} this takes up to a minute and happens once: they are stored in {kept}"
    assert world.counts(HOME=home)[:2] == (2, 0)


def test_without_a_writable_folder_kernels_are_compiled_in_every_process(world):
    # The name is taken: by root, or by a file.
    world.own.write_text("")
    hits, misses, kept, notice = world.counts()
    assert (hits, misses, kept) == (0, 2, "None")
    assert "in every process, because no folder is writable" in notice
    assert "once" not in notice


def test_a_filled_cache_that_is_read_only_is_used_and_what_it_lacks_goes_elsewhere(world):
    filled = give(world.folder / "filled")
    one_kernel = "from pairseek.numerics import jit; jit.log_ndtr(0.5)"
    world.run("-c", one_kernel, NUMBA_CACHE_DIR=filled)
    protect(filled)
    if os.geteuid() == 0:
        for path in (filled, *filled.rglob("*")):
            os.chown(path, 0, 0)
    hits, misses, kept, _ = world.counts(NUMBA_CACHE_DIR=filled)
    assert (hits, misses) == (1, 1)
    assert kept.startswith(str(world.own))
    # With no other folder it is used as well.
    other = World(world.folder)
    other.own.write_text("")
    assert other.counts(NUMBA_CACHE_DIR=filled)[:3] == (1, 1, "None")


def test_a_configured_folder_that_another_user_can_write_is_not_used(world):
    configured = give(world.folder / f"{world.temporary.name}-configured") / "kernels"
    _, misses, kept, _ = world.counts(NUMBA_CACHE_DIR=configured)
    assert misses == 2
    assert world.counts(NUMBA_CACHE_DIR=configured)[:3] == (2, 0, kept)
    hits = []
    for opened, mode in ((configured, 0o777), (configured, 0o775), (configured.parent, 0o777), (Path(kept), 0o777)):
        usual = stat.S_IMODE(opened.stat().st_mode)
        opened.chmod(mode)
        out, errors = world.run("-c", PROGRAM, NUMBA_CACHE_DIR=configured)
        opened.chmod(usual)
        hits.append(int(out.split()[1]))
        assert out.split()[3].startswith(f"{world.own}/")
        assert errors.count(f"another user can write to {configured}, the folder of NUMBA_CACHE_DIR") == 1
    # The first run stored what it compiled in the private folder.
    assert hits == [0, 2, 2, 2]


def test_a_folder_that_belongs_to_another_user_is_not_private(tmp_path, monkeypatch):
    assert kernel_cache.is_private(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert kernel_cache.is_private(tmp_path) == (os.getuid() == 0)
    if os.getuid() == 0:
        os.chown(tmp_path, 23456, 23456)
        assert not kernel_cache.is_private(tmp_path)


def test_concurrent_processes_compile_each_kernel_once_and_show_one_notice(world):
    started = [world.start("-c", SEARCH, NUMBA_DEBUG_CACHE=1) for _ in range(3)]
    ended = [process.communicate(timeout=240) for process in started]
    assert [process.returncode for process in started] == [0] * 3, ended
    output = "".join(out for out, _ in ended)
    assert "compiled pairseek.posteriors.ep_kernels" in output
    assert "compiled numba.cpython.unicode" not in output
    stored = re.findall(r"data saved to '([^']+)'", output)
    assert len(stored) > 10
    assert len(stored) == len(set(stored)), "a kernel was compiled twice"
    assert sum(errors.count(NOTICE) for _, errors in ended) == 1
    assert len({out.splitlines()[-1] for out, _ in ended}) == 1


@pytest.mark.long
@pytest.mark.parametrize("kept", [True, False])
def test_the_processes_of_a_simulation_show_one_notice(world, kept):
    if not kept:
        world.own.write_text("")
    out = give(world.folder / f"{world.temporary.name}-out")
    (out / "items.csv").write_text("id,x,y\na,0,1\nb,1,0\nc,2,2\nd,-1,1\n")
    words = ["simulate", "--data", out / "items.csv", "--strategies", "infogain", "--queries", "2", "--trials", "3"]
    _, errors = world.run("-m", "pairseek", *words, "--jobs", "3", "--out", out / "results")
    assert errors.count(NOTICE) == 1
    assert ("in every process" in errors) == (not kept)


def test_a_kernel_without_a_source_file_is_compiled_and_not_stored(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    exec("from pairseek.numerics.jit import kernel\n@kernel\ndef halved(x):\n    return x / 2", namespace)
    assert namespace["halved"](3.0) == 1.5
    assert namespace["halved"].stats.cache_path is None
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_logged_once_and_does_not_stop_the_search(monkeypatch, caplog, tmp_path):
    from pairseek.numerics import jit

    @jit.kernel
    def doubled(x):
        return 2.0 * x

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(doubled._cache, "folders", kernel_cache.CacheFolders((tmp_path,), tmp_path))
    monkeypatch.setattr(kernel_cache.FunctionCache, "save_overload", full)
    assert doubled(2.0) == 4.0
    assert doubled(2) == 4.0
    assert [record.getMessage() for record in caplog.records] == [
        f"compiled kernels could not be stored in {tmp_path}: [Errno 28] No space left on device"
    ]
