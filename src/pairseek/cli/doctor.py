"""Command ``pairseek doctor``: a report on the installation and whether it works."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

import typer

from pairseek._version import __version__
from pairseek.cli.options import DatabaseOption
from pairseek.core.messages import languages, words
from pairseek.core.text import listed, plural
from pairseek.errors import PairseekError
from pairseek.numerics.kernel_cache import ADVICE, cache_folders, own_cache_folders

EXTRAS = {
    "cli": "commands",
    "web": "studies in the browser",
    "postgres": "studies on PostgreSQL",
    "plots": "figures",
    "baselines": "the strategy GaussCloud",
    "frames": "data frames and Parquet",
    "data": "download of the paper's data",
    "cluster": "runs on a dask cluster",
}
"""Purpose of each extra that users may install."""
# Kernel modules that every search uses.
_KERNEL_MODULES = ("pairseek.numerics.pair_kernels", "pairseek.posteriors.ep_kernels", "pairseek.numerics.tables")

# Largest number of messages that a line names.
_MAX_LISTED_MESSAGES = 50


class ReportLine(NamedTuple):
    """Line of the report; `works` is None for a part that is not installed or not used."""

    topic: str
    text: str
    works: bool | None


def command(*, database: DatabaseOption = None) -> None:
    """Show what is installed, where the data are, and whether everything works.

    The report covers the package and its extras, the compiled kernels, the
    languages of pages and the messages that they lack, the folder with the
    paper's data, and the service's database. The exit code is
    0 if all that is installed works, and 1 otherwise.
    """
    report = [
        *_installation_lines(),
        *_kernel_lines(),
        *_language_lines(),
        _data_line(),
        _database_line(database),
    ]
    marks = {True: "ok", False: "!!", None: "--"}
    for line in report:
        typer.echo(f"{marks[line.works]}  {line.topic:<10} {line.text}")
    failing = [line.topic for line in report if line.works is False]
    typer.echo(
        f"\n{plural(len(failing), 'problem')}: {', '.join(failing)}"
        if failing
        else "\nEverything that is installed works."
    )
    if failing:
        raise typer.Exit(1)


def _installation_lines() -> Iterator[ReportLine]:
    yield ReportLine("pairseek", f"{__version__} in {Path(__file__).parents[1]}", works=True)
    yield ReportLine("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}", works=True)
    core = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    yield ReportLine("core", f"{core}; {plural(os.cpu_count() or 1, 'processor')}", works=True)
    for extra, purpose in EXTRAS.items():
        missing = [name for name in _required_packages(extra) if not _is_installed(name)]
        if missing:
            text = f"not installed ({purpose}): pip install 'pairseek[{extra}]'"
            if len(missing) < len(_required_packages(extra)):
                text += f"; {', '.join(missing)} missing"
            yield ReportLine(extra, text, works=None)
        else:
            yield ReportLine(extra, f"installed ({purpose})", works=True)


def _required_packages(extra: str) -> list[str]:
    """Return the distributions that an extra requires on this platform."""
    requirements = [line for line in requires("pairseek") or () if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    return [
        re.split(r"[^\w.-]", line, maxsplit=1)[0]
        for line in requirements
        if not (sys.platform == "win32" and "sys_platform != " in line)
    ]


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _kernel_lines() -> Iterator[ReportLine]:
    folders = {
        str(folder)
        for name in _KERNEL_MODULES
        for folder in cache_folders(str(Path(str(import_module(name).__file__)).resolve().parent)).readable
        if any(folder.glob(f"{name.rpartition('.')[2]}.*.nbi"))
    }
    writable = own_cache_folders().writable
    if writable is None:
        text = f"compiled, in {sorted(folders)[0]}; others" if folders else "compiled anew by every process: they"
        yield ReportLine("kernels", f"{text} cannot be cached: {ADVICE}", None)
    elif folders:
        yield ReportLine("kernels", f"compiled, in {sorted(folders)[0]}", works=True)
    else:
        yield ReportLine(
            "kernels",
            "not compiled yet: the first search takes up to a minute longer; pairseek warm compiles them",
            None,
        )


def _language_lines() -> Iterator[ReportLine]:
    try:
        catalogues = [words(language) for language in languages()]
    except PairseekError as error:
        yield ReportLine("languages", str(error), works=False)
        return
    yield ReportLine("languages", ", ".join(languages()), works=True)
    for catalogue in catalogues:
        for keys, text in [(catalogue.missing, "lacks"), (catalogue.unknown, "has unknown messages")]:
            if keys:
                shown = listed(sorted(keys), _MAX_LISTED_MESSAGES)
                yield ReportLine(catalogue.language, f"{text}: {shown}", works=None)


def _data_line() -> ReportLine:
    from pairseek.datasets.food10k import local_folder

    folder = local_folder()
    if folder is not None:
        return ReportLine("food10k", f"the paper's embeddings are in {folder}", works=True)
    data = os.environ.get("PAIRSEEK_DATA")
    if data:
        return ReportLine("food10k", f"PAIRSEEK_DATA is {data}, which has no folder data/food10k", works=False)
    return ReportLine(
        "food10k", "the paper's embeddings are downloaded at first use; --data synthetic needs none", works=None
    )


def _database_line(url: str | None) -> ReportLine:
    from pairseek.cli.database import open_database, place_of, require_web

    try:
        require_web()
    except PairseekError:
        return ReportLine("database", "not used: studies need the extra 'web'", works=None)
    from pairseek.store import migrate
    from pairseek.store.database import Database
    from pairseek.web.settings import Settings

    try:
        name = Settings.of(database=url).database
        location = place_of(Database(name)) if "://" in name else name
        if "://" not in name and not Path(name).exists():
            return ReportLine("database", f"{location} does not exist yet: pairseek serve creates it", works=None)
        with open_database(url, create=False, prepare=False) as database:
            current, newest = migrate.current_version(database), migrate.newest_version()
    except (PairseekError, OSError) as error:
        return ReportLine("database", f"does not reply: {' '.join(str(error).split())}", works=False)
    if current != newest:
        return ReportLine(
            "database",
            f"{location} has tables of version {current}, not {newest}: run pairseek db upgrade",
            works=False,
        )
    return ReportLine("database", f"{location} replies, tables of version {current}", works=True)
