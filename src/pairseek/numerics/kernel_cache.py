"""Disk cache of compiled kernels: its folders, their safety, and a lock that lets one process compile at a time.

numba by itself raises an error if none of its folders is writable, as in a container that runs as another user, and
never reads a read-only folder, even one full of kernels. Here the candidates are ``NUMBA_CACHE_DIR``, ``__pycache__``
next to the source, the user's cache and a temporary folder, in this order. Kernels are stored in the first writable
one, and loaded from it and from the readable ones before it. The choice depends only on the file system, so all
processes of a user agree.
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

ADVICE = "set NUMBA_CACHE_DIR to a folder that this user can write to"
_LOCK_FILE = "pairseek-kernels.lock"
# Seconds a process waits for another to compile before it compiles as well.
_LOCK_TIMEOUT = 180.0
_POLL_INTERVAL = 0.02
# Seconds after the last compilation by any process before the notice may be shown again.
_NOTICE_INTERVAL = 120.0
# A damaged cache file counts as missing.
_UNREADABLE = (OSError, EOFError, UnpicklingError)


@dataclass(frozen=True)
class CacheFolders:
    """Folders that hold the kernels of a source folder.

    Attributes
    ----------
    readable
        Folders from which kernels are loaded, in this order.
    writable
        Folder in which kernels are stored, the last of the readable ones; None if no folder is writable.
    temporary
        Whether the system may empty the writable folder.
    """

    readable: tuple[Path, ...] = ()
    writable: Path | None = None
    temporary: bool = False


def own_cache_folders() -> CacheFolders:
    """Return the cache folders of this package's numerical kernels."""
    return cache_folders(str(Path(__file__).resolve().parent))


@cache
def cache_folders(sources: str) -> CacheFolders:
    """Return the cache folders for kernels defined in a source folder."""
    readable: list[Path] = []
    for folder, mode, is_temporary in _candidate_folders(Path(sources)):
        try:
            created = _create_folder(folder, mode)
            readable.append(created)
            tempfile.TemporaryFile(dir=created).close()
        except OSError:
            continue
        return CacheFolders(tuple(readable), created, is_temporary)
    return CacheFolders(tuple(readable))


def _candidate_folders(sources: Path) -> Iterator[tuple[Path, int | None, bool]]:
    """Yield each candidate, the mode to create it with (None: trusted unchecked), and whether it is temporary.

    Loading a kernel executes it, so nothing may be loaded from a folder that another user can write to.
    """
    name = _CacheLocator.get_suitable_cache_subpath(str(sources / "kernels.py"))
    if _settings.CACHE_DIR:
        # An image may be filled by root and run by another user, who must be able to read the folder.
        yield Path(_settings.CACHE_DIR, name), 0o755, False
    # Anyone who can write here can make Python itself execute other code.
    yield sources / "__pycache__", None, False
    user_cache = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    # Without a home folder this path is relative.
    if user_cache.is_absolute():
        yield user_cache / name, 0o700, False
    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return
    yield temporary / f"pairseek-kernels-{os.geteuid() if hasattr(os, 'geteuid') else 'user'}" / name, 0o700, True


def _create_folder(folder: Path, mode: int | None) -> Path:
    """Create a folder if necessary, and return it; raise an `OSError` if that fails or another user can write to it.

    Symbolic links in the path are resolved, because others could redirect them.
    """
    if mode is None:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for part in (folder.parent, folder):
        part.mkdir(mode=mode, exist_ok=True)
    resolved = folder.resolve(strict=True)
    if not is_private(resolved):
        if _settings.CACHE_DIR and folder.parent == Path(_settings.CACHE_DIR):
            _warn_refused(folder.parent)
        raise PermissionError(f"another user can write to {resolved}")
    return resolved


def is_private(folder: Path) -> bool:
    """Return whether only this user and root can put files into a folder, or replace the folder."""
    if not hasattr(os, "geteuid"):
        return True
    for part in (folder, *folder.parents):
        status = part.stat()
        # In a folder with the sticky bit, such as /tmp, users cannot replace each other's files.
        is_sticky = part != folder and status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or (status.st_mode & 0o022 and not is_sticky):
            return False
    return True


class KernelCache(_Cache):
    """Cache of one kernel in its cache folders, with the interface of numba's dispatcher."""

    def __init__(self, function: Callable[..., Any]) -> None:
        source = os.path.abspath(inspect.getfile(function))
        # Functions from a prompt or an archive have no source file to tell whether a kernel is out of date.
        has_source = os.path.isfile(source) or getattr(sys, "frozen", False)
        self.folders = cache_folders(os.path.dirname(source)) if has_source else CacheFolders()
        self._caches = [_FolderCache(function, folder) for folder in self.folders.readable]

    @property
    def cache_path(self) -> str | None:
        """Folder in which the kernel is stored."""
        return None if self.folders.writable is None else str(self.folders.writable)

    def load_overload(self, sig: object, target_context: object) -> Any:
        """Return the stored kernel; if None, the caller must compile it, and holds the lock until then."""
        kernel = self._load(sig, target_context)
        if kernel is None and COMPILATION_LOCK.wait():
            kernel = self._load(sig, target_context)
        return kernel

    def _load(self, sig: object, target_context: object) -> Any:
        for cache_of_folder in self._caches:
            try:
                kernel = cache_of_folder.load_overload(sig, target_context)
            except _UNREADABLE:
                continue
            if kernel is not None:
                return kernel
        return None

    def save_overload(self, sig: object, data: object) -> None:
        """Store a compiled kernel if a folder is writable; failure is logged, not raised."""
        if self.folders.writable is None:
            return
        try:
            self._caches[-1].save_overload(sig, data)
        except _UNREADABLE as error:
            _warn_not_stored(self.folders.writable, str(error))

    def enable(self) -> None:
        """Use the cache folders."""
        for cache_of_folder in self._caches:
            cache_of_folder.enable()

    def disable(self) -> None:
        """Stop using the cache folders."""
        for cache_of_folder in self._caches:
            cache_of_folder.disable()

    def flush(self) -> None:
        """Delete the stored kernel."""
        if self.folders.writable is not None:
            self._caches[-1].flush()


@cache
def _warn_refused(folder: Path) -> None:
    logger.warning(
        "another user can write to %s, the folder of NUMBA_CACHE_DIR: compiled kernels are neither loaded from it nor "
        "stored in it; let only this user or root write to it and the folders above it",
        folder,
    )


@cache
def _warn_not_stored(folder: Path, reason: str) -> None:
    logger.warning("compiled kernels could not be stored in %s: %s", folder, reason)


class _FolderCache(FunctionCache):
    """numba's cache of a kernel in a given folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        locator = _Folder(function, folder)

        class Implementation(CompileResultCacheImpl):
            _locator_classes: Any = (SimpleNamespace(from_function=lambda *_: locator),)

        self._impl_class = Implementation
        super().__init__(function)


class _Folder(_SourceFileBackedLocatorMixin, _CacheLocator):
    """numba cache locator for a given folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._py_file, self._lineno = inspect.getfile(function), function.__code__.co_firstlineno
        self._folder = str(folder)

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> object:
        # Another version of the package may have compiled the kernel with other versions of the functions it calls.
        return __version__, super().get_source_stamp()


class _CompilationLock:
    """Lock that lets one process on the machine compile at a time, so that the others load what it stored.

    A process that exits releases the lock. Processes without a shared folder do not wait.
    """

    def __init__(self) -> None:
        self._depth = 0  # compilations nest: a kernel compiles the functions it calls
        self._handle: int | None = None

    def __enter__(self) -> None:
        global_compiler_lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth and self._handle is not None:
            # Postpone the next notice: the processes waiting for the lock need not repeat it.
            with contextlib.suppress(OSError):
                os.utime(self._handle)
            # Closing releases the lock.
            os.close(self._handle)
            self._handle = None
        global_compiler_lock.release()

    def wait(self) -> bool:
        """Wait until no other process is compiling; return whether others may have stored kernels in the meantime."""
        folder = own_cache_folders().writable
        if not self._depth or self._handle is not None or folder is None or fcntl is None:
            return False
        try:
            handle = os.open(folder / _LOCK_FILE, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError:
            return False
        self._handle = handle
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while time.monotonic() < deadline:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_POLL_INTERVAL)
            except OSError:  # a file system without locks
                break
            else:
                break
        return True


COMPILATION_LOCK = _CompilationLock()


def cached(dispatcher: Any) -> Any:
    """Attach the disk cache to a kernel, and let one process at a time compile it."""
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT
        return dispatcher
    if getattr(_settings, "CACHE_LOCATOR_CLASSES", ""):
        # The user has configured other cache locators.
        dispatcher.enable_caching()
        return dispatcher
    compile_now = dispatcher.compile

    def compiled(sig: object) -> Any:
        with COMPILATION_LOCK:
            return compile_now(sig)

    dispatcher._cache, dispatcher.compile = KernelCache(dispatcher.py_func), compiled
    return dispatcher


def notice() -> str:
    """Return the notice for waiting users: what takes so long, and whether it will happen again."""
    folders = own_cache_folders()
    text = "compiling numerical kernels; this takes up to a minute"
    if folders.writable is None:
        return f"{text} in every process, because no folder is writable to store them: {ADVICE}"
    if folders.temporary:
        return f"{text}, and again once {folders.writable.parent} has been emptied: {ADVICE} to keep them longer"
    return f"{text} and happens once: they are stored in {folders.writable}"


def claim_notice() -> bool:
    """Return True in only one of several processes that compile together, which then shows the notice."""
    folder = own_cache_folders().writable
    if folder is None:
        # Without a shared folder, the parent process has shown the notice on behalf of its children.
        return multiprocessing.parent_process() is None
    lock_file = folder / _LOCK_FILE
    with contextlib.suppress(OSError):
        status = lock_file.stat()
        # The file is empty until a process has shown the notice.
        if status.st_size and time.time() - status.st_mtime < _NOTICE_INTERVAL:
            return False
    with contextlib.suppress(OSError):
        # In a folder that others can write to, the name may be a link to a file that must not be touched.
        handle = os.open(lock_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(b"noted\n")
    return True
