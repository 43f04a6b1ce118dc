"""Output folder of a quiz, written next to its final place and moved there when complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pairseek.errors import InvalidParameter

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

TREE_FILE = "tree.js"
TREE_PREFIX = "globalThis.pairseekQuiz="
"""First characters of the tree file; the rest is JSON."""


@contextlib.contextmanager
def staging_folder(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield an empty folder, and move it to its final place if the block succeeds.

    A half-written quiz is thus never mistaken for a finished one. Only one compilation into a folder can run at a time;
    the lock is released even if the process is killed.

    Parameters
    ----------
    out
        Folder of the quiz, empty or missing.
    force
        Whether to replace a quiz in the folder.
    """
    out = Path(os.path.abspath(out))
    _check_place(out, force=force)
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = out.with_name(f".{out.name}.part")
    with _locked(staging, out):
        try:
            _clear(staging)
            yield staging
            _check_place(out, force=force)
            _move(staging, out)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _check_place(out: Path, *, force: bool) -> None:
    if out.is_dir():
        if not any(out.iterdir()) or (force and is_quiz(out)):
            return
        advice = "give --force to replace it, or name another folder" if is_quiz(out) else "name another folder"
        problem = "contains a quiz" if is_quiz(out) else "is not empty"
        raise InvalidParameter(f"the folder {out} {problem}: {advice}; nothing was changed", field="out")
    if out.exists() or out.is_symlink():
        raise InvalidParameter(f"{out} exists and is not a folder: name a folder; nothing was changed", field="out")


def is_quiz(folder: Path) -> bool:
    """Return whether a folder contains a compiled quiz."""
    try:
        with (folder / TREE_FILE).open("rb") as file:
            return file.read(len(TREE_PREFIX)) == TREE_PREFIX.encode()
    except OSError:
        return False


@contextlib.contextmanager
def _locked(staging: Path, out: Path) -> Iterator[None]:
    """Create the staging folder and lock it until the block or the process ends."""
    busy = InvalidParameter(
        f"another compilation into {out} is running: wait for it, or name another folder; nothing was changed",
        field="out",
    )
    if fcntl is None:
        try:
            staging.mkdir()
        except FileExistsError:
            raise busy from None
        yield
        return
    while True:
        staging.mkdir(exist_ok=True)
        try:
            descriptor = os.open(staging, os.O_RDONLY)
        except FileNotFoundError:  # another compilation has just finished
            continue
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise busy from None
            # The folder may have been moved or removed before the lock was granted.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), staging.stat()):
                    yield
                    return
        finally:
            os.close(descriptor)


def _clear(folder: Path) -> None:
    """Delete the contents of a folder, left behind by a killed compilation."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _move(staging: Path, out: Path) -> None:
    """Move the staging folder to its final place, replacing any quiz there."""
    if not out.exists():
        staging.rename(out)
        return
    previous = out.with_name(f".{out.name}.before")
    shutil.rmtree(previous, ignore_errors=True)
    out.rename(previous)
    try:
        staging.rename(out)
    except OSError:
        previous.rename(out)
        raise
    shutil.rmtree(previous, ignore_errors=True)
