"""Programs run as a user who can read everything but write only to given folders."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NOBODY = 65534
PACKAGE = Path(__file__).resolve().parents[2] / "src" / "pairseek"


@functools.cache
def as_nobody() -> tuple[str, ...]:
    """Return the command prefix that drops root privileges; empty if this process is not root."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    assert setpriv, "the tests need setpriv, of util-linux"
    base = (setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs")
    # It must also be able to start its own processes.
    probe = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import numba'], check=True)"
    # If Python is installed in root's home, the user nobody needs permission to read there.
    for more in ((), ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")):
        words = (*base, *more)
        if not subprocess.run([*words, sys.executable, "-c", probe], capture_output=True, check=False).returncode:
            return words
    raise AssertionError(f"no other user than root can run {sys.executable}")


def give(folder: Path, *, mode: int = 0o700) -> Path:
    """Create a folder owned by the user of `as_nobody`."""
    folder.mkdir(mode=mode, parents=True)
    folder.chmod(mode)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


@contextlib.contextmanager
def installed():
    """Yield a folder with a copy of the package that its users cannot change."""
    # Not below pytest's own folder, which is closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="pairseek-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        shutil.copytree(PACKAGE, folder / "site" / "pairseek", ignore=shutil.ignore_patterns("__pycache__"))
        protect(folder / "site")
        yield folder
    finally:
        for path in (folder, *folder.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(folder)


def protect(folder: Path) -> None:
    """Make a folder and its subfolders writable only by root."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o555)
