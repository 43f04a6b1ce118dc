"""Bundles from elsewhere: malformed and oversized ones are refused in one line, in little time and memory."""

import copy
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from helpers.serving import configuration, some_items
from pairseek.errors import InvalidChoices, InvalidFile
from pairseek.people.formats.bundle import items as read_items
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.results import bundle
from pairseek.web.sessions import simulated
from pairseek.web.sessions.prefetch import Gate
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study

PARTS = ("study.json", "items.json", "sessions.jsonl", "parts.json", "populations.json")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The parts of a bundle with two sessions of three answers, as plain data by name."""
    folder = tmp_path_factory.mktemp("bundle")
    database = Database(str(folder / "b.db"))
    migrate.prepare(database)
    create_study(database, configuration(answers=3), some_items(), is_open=True, who="test")
    sessions = Sessions(database, Catalogue(database))
    study = sessions.catalogue.by_slug("which")
    simulated.simulate_sessions(sessions, Gate(), study, 2, np.random.default_rng(1))
    path = folder / "which.zip"
    with path.open("wb") as file:
        bundle.write(database, study, file)
    database.close()
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist() if name in PARTS}
    lines = found.pop("sessions.jsonl").splitlines()
    return {name: json.loads(text) for name, text in found.items()} | {"sessions.jsonl": [json.loads(x) for x in lines]}


def written(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content if isinstance(content, bytes) else as_text(name, content))
    return path


def as_text(name, content):
    if name == "sessions.jsonl" and isinstance(content, list):
        return "\n".join(map(json.dumps, content))
    return json.dumps(content)


def refusal(path):
    """Why a bundle is refused; None if it replays."""
    try:
        replay(path)
    except InvalidFile as error:
        return str(error)
    return None


def replay(path):
    return list(bundle.replayed(bundle.read(path)))


def places(value, depth=0):
    """Paths to the values of plain data, a few in each list."""
    yield ()
    if depth > 5:
        return
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from ((key, *rest) for rest in places(one, depth + 1))


def changed(parts, name, place, new):
    """The parts with another value at a place, or with none."""
    copied = {**parts, name: copy.deepcopy(parts[name])}
    holder, key = copied, name
    for step in place:
        holder, key = holder[key], step
    if new is ...:
        del holder[key]
    else:
        holder[key] = new
    return copied


def test_the_bundle_of_these_tests_replays(good, tmp_path):
    assert [one.same for one in replay(written(tmp_path / "g.zip", good))] == [True, True]


@pytest.mark.parametrize("name", PARTS)
def test_whatever_is_changed_in_a_bundle_it_replays_or_is_refused(good, tmp_path, name):
    """Every value of every part is left out and replaced by something else, which must end in `InvalidFile` or well."""
    refused = 0
    for number, place in enumerate(places(good[name])):
        # One kind of change for each place, in turn: all of them meet every part.
        for new in ((..., None), (-1, "x"), ([], {}), (1e308, [[[]]]), (True, 10**12))[number % 5]:
            said = refusal(written(tmp_path / "m.zip", changed(good, name, place, new)))
            refused += said is not None
            assert said is None or (str(tmp_path) in said and len(said) < 1000), (place, new)
    assert refused > 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "zip"),
        (b"PK\x05\x06" + bytes(18), "no item named"),
        (b"not a zip at all", "zip"),
    ],
)
def test_a_file_that_is_no_bundle_is_refused(tmp_path, content, words):
    path = tmp_path / "n.zip"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=words):
        bundle.read(path)


def test_deep_nesting_and_long_numbers_are_refused(good, tmp_path):
    for content in (b"[" * 100_000, b'{"1": ' * 50_000, b"1" * 10_000, b"\xff\xfe"):
        for name in PARTS:
            with pytest.raises(InvalidFile):
                bundle.read(written(tmp_path / "d.zip", {**good, name: content}))


def test_a_posterior_without_end_is_refused(good, tmp_path):
    parts = copy.deepcopy(good)
    for record in parts["parts.json"].values():
        record["posterior"] = {"name": "particles", "n": 10**9}
    with pytest.raises(InvalidFile):
        bundle.read(written(tmp_path / "p.zip", parts))


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_counted_before_it_is_parsed(good, tmp_path, name):
    path = written(tmp_path / "big.zip", {**good, name: b'{"1": [' + b"[]," * 3_000_000 + b"0]}"})
    with pytest.raises(InvalidFile, match="unpack to more than"):
        bundle.read(path)
    if name == "items.json":
        with pytest.raises(InvalidChoices):
            read_items(path)


@pytest.mark.long
def test_a_small_file_of_many_lists_needs_little_memory(good, tmp_path):
    """60 million empty lists would take 4 GB; as a file they take less than a megabyte."""
    path = written(tmp_path / "big.zip", {**good, "populations.json": b'{"1": [' + b"[]," * 60_000_000 + b"0]}"})
    assert path.stat().st_size < 1_000_000
    script = (
        "import re, sys\n"
        "from pairseek.cli import main\n"
        "try:\n    main(['replay', sys.argv[1]])\n"
        "finally:\n    print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unpack to more than" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    # In kilobytes.
    assert int(done.stdout.split()[-1]) < 600_000
