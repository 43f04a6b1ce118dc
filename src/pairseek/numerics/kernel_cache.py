"""Disk cache of the compiled kernels: its folder, its safety, and one compilation for all processes of a machine.

numba raises an error where it can write none of its folders, as in a container that runs as another user, and ignores a
filled folder that is read-only. Kernels are therefore loaded from the first folders that hold them, and stored in the
first that can be written: ``NUMBA_CACHE_DIR``, ``__pycache__`` beside the source, the user's cache, a temporary folder.
All of it follows from the file system, so every process of a user comes to the same folder.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import multiprocessing
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from types import SimpleNamespace
from typing import Any

from numba.core import config as numba_config
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    _Cache,
    _CacheLocator,
    _SourceFileBackedLocatorMixin,
)
from numba.core.compiler_lock import global_compiler_lock
from numba.misc.appdirs import AppDirs

from pairseek._version import __version__

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("pairseek")
_settings: Any = numba_config

ADVICE = "set NUMBA_CACHE_DIR to a folder that this user can write"
_LOCK = "pairseek-kernels.lock"
# Seconds for which a process waits while another compiles, before it compiles as well; and seconds after the last
# compilation by any process after which the note may come again.
_PATIENCE = 180.0
_AGAIN = 120.0
_POLL = 0.02
# A damaged file of the cache counts as missing.
_UNREADABLE = (OSError, EOFError, UnpicklingError)


@dataclass(frozen=True)
class Place:
    """Folders that hold the kernels of a folder of sources.

    Attributes
    ----------
    readable
        Folders from which kernels are loaded, in this order.
    writable
        Folder in which kernels are stored, the last of the readable ones; None if there is none.
    temporary
        Whether the system may empty that folder.
    """

    readable: tuple[Path, ...] = ()
    writable: Path | None = None
    temporary: bool = False


def own_place() -> Place:
    """Return the place of the kernels of this package, as its numerical core has it."""
    return place_of(str(Path(__file__).resolve().parent))


@cache
def place_of(sources: str) -> Place:
    """Return the place of the kernels of a folder of sources."""
    readable: list[Path] = []
    for folder, is_open, is_temporary in _candidates(Path(sources)):
        try:
            found = _made(folder, is_open=is_open)
            readable.append(found)
            tempfile.TemporaryFile(dir=found).close()
        except OSError:
            continue
        return Place(tuple(readable), found, is_temporary)
    return Place(tuple(readable))


def _candidates(sources: Path) -> Iterator[tuple[Path, bool, bool]]:
    """Yield folders, whether others may be able to write them because the user chose them, and whether they last."""
    name = _CacheLocator.get_suitable_cache_subpath(str(sources / "kernels.py"))
    if _settings.CACHE_DIR:
        yield Path(_settings.CACHE_DIR, name), True, False
    # Who can write beside the sources can change the sources as well.
    yield sources / "__pycache__", True, False
    users = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    # A user without a home has a relative one.
    if users.is_absolute():
        yield users / name, False, False
    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return
    yield temporary / f"pairseek-kernels-{os.geteuid() if hasattr(os, 'geteuid') else 'user'}" / name, False, True


def _made(folder: Path, *, is_open: bool) -> Path:
    """Return a folder, made if it was missing; raise an `OSError` if that is impossible or another user can write it.

    The path has no links, because others could change where they lead.
    """
    if is_open:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for part in (folder.parent, folder):
        part.mkdir(mode=0o700, exist_ok=True)
    found = folder.resolve(strict=True)
    if not is_private(found):
        raise PermissionError(f"another user can write {found}")
    return found


def is_private(folder: Path) -> bool:
    """Return whether only this user and root can put files into a folder, or another folder in its place."""
    if not hasattr(os, "geteuid"):
        return True
    for part in (folder, *folder.parents):
        found = part.stat()
        # In a folder with the sticky bit, such as /tmp, nobody can replace what belongs to others.
        is_sticky = part != folder and found.st_mode & stat.S_ISVTX
        if found.st_uid not in (0, os.geteuid()) or (found.st_mode & 0o022 and not is_sticky):
            return False
    return True


class KernelCache(_Cache):
    """Cache of one kernel in the folders of its place, as numba's dispatcher uses it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        source = os.path.abspath(inspect.getfile(function))
        # Functions from a prompt or an archive have no file that tells whether a kernel is out of date.
        is_known = os.path.isfile(source) or getattr(sys, "frozen", False)
        self.place = place_of(os.path.dirname(source)) if is_known else Place()
        self._folders = [_FolderCache(function, folder) for folder in self.place.readable]

    @property
    def cache_path(self) -> str | None:
        """Folder in which the kernel is stored."""
        return None if self.place.writable is None else str(self.place.writable)

    def load_overload(self, sig: object, target_context: object) -> Any:
        """Return the compiled kernel, or None; in that case no other process compiles until `_Turn` ends."""
        found = self._loaded(sig, target_context)
        if found is None and TURN.wait():
            found = self._loaded(sig, target_context)
        return found

    def _loaded(self, sig: object, target_context: object) -> Any:
        for folder in self._folders:
            try:
                found = folder.load_overload(sig, target_context)
            except _UNREADABLE:
                continue
            if found is not None:
                return found
        return None

    def save_overload(self, sig: object, data: object) -> None:
        """Store a compiled kernel if there is a folder for it; the search goes on if that fails."""
        if self.place.writable is None:
            return
        try:
            self._folders[-1].save_overload(sig, data)
        except _UNREADABLE as error:
            _warn_unkept(self.place.writable, str(error))

    def enable(self) -> None:
        """Use the folders."""
        for folder in self._folders:
            folder.enable()

    def disable(self) -> None:
        """Use no folder."""
        for folder in self._folders:
            folder.disable()

    def flush(self) -> None:
        """Forget what is stored."""
        if self.place.writable is not None:
            self._folders[-1].flush()


@cache
def _warn_unkept(folder: Path, why: str) -> None:
    logger.warning("compiled kernels could not be kept in %s: %s", folder, why)


class _FolderCache(FunctionCache):
    """numba's cache of a kernel, in a given folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        locator = _Folder(function, folder)

        class Implementation(CompileResultCacheImpl):
            _locator_classes: Any = (SimpleNamespace(from_function=lambda *_: locator),)

        self._impl_class = Implementation
        super().__init__(function)


class _Folder(_SourceFileBackedLocatorMixin, _CacheLocator):
    """Locator of numba that was given its folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_file, self._lineno = inspect.getfile(function), function.__code__.co_firstlineno
        self._folder = str(folder)

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> object:
        # Kernels of another version may have been compiled with other versions of the functions that they call.
        return __version__, super().get_source_stamp()


class _Turn:
    """Lock under which one process of the machine compiles at a time, so that the others load what it has stored.

    A process that ends releases it. Where there is no folder to share, nobody waits.
    """

    def __init__(self) -> None:
        self._depth = 0  # a kernel compiles the functions that it calls
        self._handle: int | None = None

    def __enter__(self) -> None:
        global_compiler_lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._handle is not None:
            # The others, whose turn is next, have been told as well.
            with contextlib.suppress(OSError):
                os.utime(self._handle)
            # Closing releases the lock.
            os.close(self._handle)
            self._handle = None
        global_compiler_lock.release()

    def wait(self) -> bool:
        """Wait until no other process compiles; return whether others may have stored kernels since."""
        folder = own_place().writable
        if not self._depth or self._handle is not None or folder is None or fcntl is None:
            return False
        try:
            handle = os.open(folder / _LOCK, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError:
            return False
        self._handle = handle
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_POLL)
            except OSError:  # a file system without locks
                break
            else:
                break
        return True


TURN = _Turn()


def cached(dispatcher: Any) -> Any:
    """Give a kernel its cache, and let one process at a time compile it."""
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    if getattr(_settings, "CACHE_LOCATOR_CLASSES", ""):
        # The user has chosen other ways to find a folder.
        dispatcher.enable_caching()
        return dispatcher
    compile_now = dispatcher.compile

    def compiled(sig: object) -> Any:
        with TURN:
            return compile_now(sig)

    dispatcher._cache, dispatcher.compile = KernelCache(dispatcher.py_func), compiled
    return dispatcher


def note() -> str:
    """Return the message for the people who wait: what is done, and whether it will be done again."""
    place = own_place()
    text = "compiling numerical kernels; this takes up to a minute"
    if place.writable is None:
        return f"{text} in every process, because no folder can be written to keep them: {ADVICE}"
    if place.temporary:
        return f"{text}, and again once {place.writable.parent} has been emptied: {ADVICE}, to keep them longer"
    return f"{text} and happens once: they are kept in {place.writable}"


def may_notify() -> bool:
    """Return whether this process should show the note: the first of those that compile at about the same time."""
    folder = own_place().writable
    if folder is None:
        # Processes that this one starts share nothing with it; it has said so for them.
        return multiprocessing.parent_process() is None
    mark = folder / _LOCK
    with contextlib.suppress(OSError):
        found = mark.stat()
        # It is empty until a process has said so.
        if found.st_size and time.time() - found.st_mtime < _AGAIN:
            return False
    with contextlib.suppress(OSError):
        # In a folder that others can write the name may be a link to a file that must stay as it is.
        handle = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(b"noted\n")
    return True
