"""Studies that `unchanged.py` records: replies, pages and exports of the service, each with its own database."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import logging
import re
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

import unchanged_studies
from pairseek import cli
from pairseek.web.app import create_app
from pairseek.web.settings import Settings
from unchanged_crashes import kept
from unchanged_studies import ScriptedStudy

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a deprecation in another package
    from starlette.testclient import TestClient

GUARD = {"X-Pairseek": "1"}
PASSWORD = re.compile(r"password (\S+)")
CSRF = re.compile(r'name="csrf" value="([0-9a-f]{64})"')
TABLES = ("answers", "participants", "estimates", "items", "ranking")
_PATIENCE = 180.0
_RAN: dict[str, dict[str, Any]] = {}
# Patterns of text that differ between runs, in order; 32 hexadecimal digits are the id of a session.
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d| UTC)?)?")
_DAY = re.compile(r"\b\d{1,2}\.\d{1,2}\.20\d\d(?:, \d\d:\d\d)?|\b\d{1,2}\.? \w{3,9}\.? 20\d\d(?:, \d\d:\d\d)?")
_SECRET = re.compile(r"(?<![\w-])(?=[\w-]*\d)[A-Za-z0-9_-]{40,44}(?![\w-])|(?<=signature=)[\w-]+|(?<=until=)\d+")
_SESSION = re.compile(r"\b[0-9a-f]{32}\b")
# Fields with a duration, a time or the machine.
_CHANGING = {
    "answers_per_minute",
    "compute_ms",
    "compute_seconds",
    "csrf",
    "latency_ms",
    "machine",
    "numba",
    "numpy",
    "processor",
    "python",
    "scipy",
    "seconds",
    "server_ms",
    "token",
    "token_hash",
    "updated",
}


class Text(HTMLParser):
    """Parser for the text of a page, the targets of its links and forms, and the data of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style"):
            data = given.get("type") == "application/json" and given.get("id") != "words"
            self._within = "data" if data else "code"
        elif given.get("data-number") in _CHANGING:
            self._within = "code"
        for name in ("href", "action", "value", "alt", "aria-label", "name"):
            shown = given.get(name)
            if shown and not shown.startswith("/static") and tag not in ("script", "meta") and len(shown) < 5000:
                self.lines.append(f"{tag} {name}={shown}")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "dd"):
            self._within = ""

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if words and self._within != "code":
            self.lines.append(words)


def text_of(page: str) -> list[str]:
    parser = Text()
    parser.feed(CSRF.sub('name="csrf" value=""', page))
    return parser.lines


class Names:
    """Names for sessions in order of appearance, in place of their random ids."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        """Return a record without times, secrets and random ids."""
        if isinstance(value, dict):
            return {self.plain(key): self._field(key, one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(one) for one in value]
        return self._text(value) if isinstance(value, str) else value

    def _field(self, key: str, value: Any) -> Any:
        # The hash of choices depends on the random ids of their sessions.
        varies = key in _CHANGING or (key == "choices" and isinstance(value, str))
        return "(varies)" if varies and value is not None else self.plain(value)

    def _text(self, text: str) -> str:
        text = _SESSION.sub(lambda found: self._known.setdefault(found[0], f"session-{len(self._known) + 1}"), text)
        for known, name in self._known.items():
            text = text.replace(known[:8], name)
        return _SECRET.sub("(secret)", _DAY.sub("(time)", _TIME.sub("(time)", text)))


class House:
    """A service with a study, its researcher and its people, which can be restarted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.database = folder, str(folder / "studies.db")
        self.names, self.sessions = Names(), {}
        self.exports: dict[str, Any] = {}
        found = PASSWORD.search(self.command("user", "add", "admin"))
        assert found is not None
        self.password = found[1]
        scopes = [part for scope in ("read", "write", "answer", "delete") for part in ("--scope", scope)]
        self.token = self.command("token", "create", "program", *scopes).strip()
        self._open("never")

    def _open(self, prefetch: str) -> None:
        settings = Settings(database=self.database, prefetch=prefetch, secret="fixed" * 8)
        self._stack = contextlib.ExitStack()
        self._app = create_app(settings)
        self.visitor = self._stack.enter_context(TestClient(self._app, follow_redirects=False))
        self._researcher: TestClient | None = None

    def close(self) -> None:
        self._stack.close()

    def restart(self, prefetch: str = "never") -> None:
        """Stop the service and start another on the same database."""
        self.close()
        self._open(prefetch)

    def browser(self, cookies: dict[str, str] | None = None) -> TestClient:
        """Return a new browser at the running service."""
        found = TestClient(self._app, follow_redirects=False)
        found.cookies.update(cookies or {})
        return found

    def command(self, *arguments: str) -> str:
        """Run a command, and return what it printed."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
            cli.main([*arguments, "--database", self.database] if arguments[0] != "replay" else [*arguments])
        return out.getvalue() + errors.getvalue()

    # Programs

    def api(self, method: str, path: str, body: Any = None, *, token: str | None = None, **query: Any) -> Any:
        """Call the API, and return the status and the reply."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        reply = self.visitor.request(method, f"/api/v1{path}", json=body, params=query, headers=headers)
        return [reply.status_code, reply.json()]

    # Pages

    @property
    def researcher(self) -> TestClient:
        if self._researcher is None:
            self._researcher = self.browser()
            page = self._researcher.get("/login")
            form = {"csrf": CSRF.findall(page.text)[0], "name": "admin", "password": self.password}
            assert self._researcher.post("/login", data=form).status_code == 303
        return self._researcher

    def page(self, path: str, browser: TestClient | None = None) -> Any:
        """Return the status and text of a page, or its redirection."""
        reply = (browser or self.researcher).get(path, headers={"accept": "text/html"})
        if "location" in reply.headers:
            return [reply.status_code, reply.headers["location"]]
        if "json" in reply.headers["content-type"]:
            return [reply.status_code, reply.json()]
        return [reply.status_code, text_of(reply.text)]

    def send(self, path: str, source: str, browser: TestClient | None = None, **form: Any) -> Any:
        """Send a form with the CSRF token of the page that shows it."""
        who = browser or self.researcher
        found = CSRF.findall(who.get(source, headers={"accept": "text/html"}).text)
        reply = who.post(path, data={"csrf": found[0] if found else "", **form})
        return [reply.status_code, reply.headers.get("location") or text_of(reply.text)]

    def until(self, path: str, pattern: str) -> None:
        """Wait until a page contains a pattern."""
        end = time.monotonic() + _PATIENCE
        while not re.search(pattern, (page := self.researcher.get(path).text)):
            failed = [line for line in text_of(page) if "Learning failed" in line]
            assert not failed, failed
            assert time.monotonic() < end, f"{path} does not show {pattern!r} after {_PATIENCE:.0f} s"
            time.sleep(0.1)

    # Exports

    def export(self, study: str, *, findings: bool = True) -> None:
        """Add all files and the researcher's pages to the record of exports."""
        for table in TABLES:
            for ending in ("csv", "parquet"):
                reply = self.researcher.get(f"/studies/{study}/export/{table}.{ending}")
                self.exports[f"{table}.{ending}"] = content_of(f"{table}.{ending}", reply.content, reply.status_code)
        bundle = self.folder / "bundle.zip"
        bundle.write_bytes(self.researcher.get(f"/studies/{study}/bundle.zip").content)
        with zipfile.ZipFile(bundle) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        # Tables are the same as above, and are not repeated.
        read = {name: content_of(name, content) for name, content in members.items()}
        self.exports["bundle.zip"] = {
            name: "(as above)" if one == self.exports.get(name) else one for name, one in read.items()
        }
        self.exports["replay"] = self.command("replay", str(bundle)).splitlines()
        self.exports["study page"] = self.page(f"/studies/{study}")
        if findings:
            self.page(f"/studies/{study}/findings")
            self.until(f"/studies/{study}/findings.json", r'"current":\s*true')
            self.exports["findings page"] = self.page(f"/studies/{study}/findings")
            for language in ("en", "de"):
                self.exports[f"report, {language}"] = self.page(f"/studies/{study}/report.html?language={language}")


def content_of(name: str, content: bytes, status: int = 200) -> Any:
    """Return a file as plain data, without columns that vary."""
    if status != 200:
        return [status, json.loads(content)]
    if name.endswith(".parquet"):
        table = pyarrow.parquet.read_table(io.BytesIO(content))
        columns = {field.name: str(field.type) for field in table.schema}
        kept = [field for field in columns if field not in _CHANGING]
        return {"columns": columns, "rows": [list(row.values()) for row in table.select(kept).to_pylist()]}
    if name.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
        vary = {place for place, field in enumerate(rows[0]) if field in _CHANGING} if rows else set()
        return [[cell for place, cell in enumerate(row) if place not in vary] for row in rows]
    if name.endswith(".json"):
        return json.loads(content)
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in content.splitlines()]
    return content.decode().splitlines()


def cases(part: str, wanted: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the replies ("sessions") or the files ("exports") of every study."""
    for study in unchanged_studies.every_study():
        if wanted in study.name:
            if study.name not in _RAN:
                _RAN[study.name] = kept(lambda study=study: _ran(study))
            found = _RAN[study.name]
            yield study.name, found.get(part, found)


def _ran(study: ScriptedStudy) -> dict[str, Any]:
    """Run a study, and return its record for both parts."""
    logging.getLogger("pairseek").setLevel(logging.CRITICAL)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder))
        try:
            replies = house.names.plain(study.run(house))
            return {"sessions": replies, "exports": house.names.plain(house.exports)}
        finally:
            house.close()


def person_of(seed: int, items: list[dict[str, Any]], noise: float = 0.3) -> Callable[[dict[str, Any], int], str]:
    """Return a person who answers by their own utilities, with noise that depends only on the number of the answer."""
    rng = np.random.default_rng(seed)
    points = np.array([item.get("coordinates") or rng.normal(size=2) for item in items])
    point = points[rng.integers(len(items))] + 0.2 * rng.normal(size=points.shape[1])
    # People share part of their taste, or a study could not learn from them.
    shared = 2.0 * np.random.default_rng(len(items)).normal(size=len(items))
    own = shared - np.sum((points - point) ** 2, axis=1)
    utility = {item["id"]: float(one) for item, one in zip(items, own, strict=True)}
    places = {item["id"]: np.random.default_rng(n).normal(size=2) for n, item in enumerate(items)}

    def answer(query: dict[str, Any], number: int) -> str:
        left, right = (query[side]["id"] for side in ("left", "right"))
        if query.get("anchor"):
            anchor = places[query["anchor"]["id"]]
            gain = float(np.sum((anchor - places[right]) ** 2) - np.sum((anchor - places[left]) ** 2))
        else:
            gain = utility[left] - utility[right]
        return "left" if gain + noise * np.random.default_rng([seed, number]).logistic() > 0 else "right"

    return answer
