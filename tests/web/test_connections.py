"""Clients that send too much, too slowly, or too many at once: they are cut off, and others are served."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from ipaddress import ip_network
from types import SimpleNamespace

import httpx
import psutil
import pytest
from prometheus_client import REGISTRY

from helpers.serving import begin, configuration, listening, served, some_items
from pairseek.errors import InvalidParameter
from pairseek.web.access import connections
from pairseek.web.access.connections import Connections
from pairseek.web.access.rates import network_of
from pairseek.web.settings import Settings

POST = b"POST /s/which/answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def visitors(tmp_path_factory):
    settings = {"most_connections": 12, "most_connections_of_address": 6}
    studies = [(configuration(), some_items())]
    with served(tmp_path_factory.mktemp("c") / "c.db", studies=studies, **settings) as visitors:
        yield visitors


@pytest.fixture
def impatient(monkeypatch):
    """Deadlines of tenths of a second."""
    for name in ("_HEAD_SECONDS", "_BODY_SECONDS", "_LINGER_SECONDS", "_UNSENT_SECONDS"):
        monkeypatch.setattr(connections, name, 0.4)
    monkeypatch.setattr(connections, "_SWEEP_SECONDS", 0.05)


def connect(visitors):
    host, port = visitors.address.removeprefix("http://").split(":")
    return contextlib.closing(socket.create_connection((host, int(port)), 10))


def sent_until_closed(visitors, first, again=b"", most=40_000_000):
    """How many bytes a server takes before it closes the connection, and what it says."""
    with connect(visitors) as wire:
        total, reply = 0, b""
        with contextlib.suppress(ConnectionError):
            wire.sendall(first)
            while again and total < most:
                total += wire.send(again)
        with contextlib.suppress(ConnectionError):
            while piece := wire.recv(65536):
                reply += piece
    return total, reply


def healthy(visitors):
    began = time.monotonic()
    assert visitors.browser().get("/healthz").status_code == 200
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ", b"a" * 8192),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"a: b\r\n" * 1000),
        (b"GET /", b"a" * 8192),
        (b"", b"\r\n" * 4096),
        (CHUNKED + b"5;", b"x" * 8192),
        (CHUNKED + b"0\r\n", b"a: b\r\n" * 1000),
        (CHUNKED, b"1\r\nx\r\n" * 1000),
        (b"", GET * 200),
    ],
    ids=["header", "headers", "path", "lines", "extension", "trailers", "chunks", "requests"],
)
def test_what_is_not_the_body_of_a_request_has_a_limit(visitors, first, again):
    total, _ = sent_until_closed(visitors, first, again)
    # The system buffers up to a few megabytes on both sides.
    assert total < 20_000_000
    assert healthy(visitors) < 2


def test_a_header_of_just_too_many_bytes_is_refused_with_words_and_one_below_is_served(visitors):
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: "
    _, reply = sent_until_closed(visitors, head + b"a" * 60_000 + b"\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200")
    _, reply = sent_until_closed(visitors, head + b"a" * 65_536)
    assert reply.startswith(b"HTTP/1.1 431")
    assert b'"header_too_large"' in reply


def test_an_endless_body_is_refused_and_then_ignored_for_a_while_only(visitors, monkeypatch):
    monkeypatch.setattr(connections, "_MAX_IGNORED_BYTES", 1_000_000)
    total, _ = sent_until_closed(visitors, CHUNKED, b"2000\r\n" + b"x" * 8192 + b"\r\n")
    assert total < 20_000_000
    assert healthy(visitors) < 2


def test_half_sent_requests_make_room_for_whole_ones(visitors):
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            wire = stack.enter_context(connect(visitors))
            wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-A")
        for _ in range(3):
            assert healthy(visitors) < 2
        for _ in range(40):
            wire = stack.enter_context(connect(visitors))
            wire.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        assert healthy(visitors) < 2
        browser = visitors.browser()
        assert begin(browser)["query"] is not None


@pytest.mark.parametrize(
    "data",
    [b"", b"\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-A", POST + b"Content-Length: 100\r\n\r\n{", CHUNKED + b"5;"],
    ids=["nothing", "line", "head", "body", "chunk"],
)
def test_who_sends_too_slowly_is_cut_off(visitors, impatient, data):
    began = time.monotonic()
    with connect(visitors) as wire:
        stopped = threading.Event()

        def drip():
            with contextlib.suppress(OSError):
                wire.sendall(data)
                while data and not stopped.wait(0.1):
                    wire.sendall(b"\r\n" if data == b"\r\n" else b"a")

        thread = threading.Thread(target=drip)
        thread.start()
        reply = b""
        with contextlib.suppress(ConnectionError):
            while piece := wire.recv(4096):
                reply += piece
        stopped.set()
        thread.join()
    assert time.monotonic() - began < 5
    # Where no request has begun, as on connections that browsers open before they need them, nothing is said.
    assert reply.startswith(b"HTTP/1.1 408") == (len(data) > 2)
    assert reply == b"" or len(data) > 2
    assert healthy(visitors) < 2


def test_a_body_that_keeps_coming_is_given_time(visitors, impatient, monkeypatch):
    # 60 bytes in 0.6 s are more than the rate below, though the deadline is 0.4 s.
    monkeypatch.setattr(connections, "_BODY_BYTES_PER_SECOND", 20)
    with connect(visitors) as wire:
        wire.sendall(POST + b"X-Pairseek: 1\r\nConnection: close\r\nContent-Length: 60\r\n\r\n")
        for _ in range(6):
            wire.sendall(b"x" * 10)
            time.sleep(0.1)
        assert b"408" not in wire.recv(4096).split(b"\r\n")[0]


def test_who_does_not_read_the_reply_is_cut_off(visitors, impatient):
    def closed_count():
        return REGISTRY.get_sample_value("pairseek_connections_closed_total", {"reason": "unread"}) or 0.0

    before, until = closed_count(), time.monotonic() + 10
    with connect(visitors) as wire:
        # Several replies of 4 MB, since the system buffers the first.
        wire.sendall(b"GET /static/plotly.min.js HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
        while closed_count() == before:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_a_connection_is_kept_for_the_next_request_and_closed_when_none_comes(visitors, impatient):
    with connect(visitors) as wire:
        for _ in range(5):
            wire.sendall(GET)
            reply = wire.recv(4096)
            assert reply.startswith(b"HTTP/1.1 200")
            # On a busy machine the body comes by itself.
            while not reply.endswith(b'{"status":"ok"}'):
                more = wire.recv(4096)
                assert more, reply
                reply += more
            time.sleep(0.2)
        assert wire.recv(4096) == b""


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
        (b"HEAD /s/which HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"405"),
        (b"OPTIONS /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"405"),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"40"),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"40"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"200"),
        (POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (POST + b"Content-Length: -1\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
)
def test_odd_requests_get_a_plain_answer(visitors, impatient, data, status):
    _, reply = sent_until_closed(visitors, data)
    assert reply.split(b" ")[1].startswith(status), reply
    assert healthy(visitors) < 2


def test_a_few_requests_may_be_pipelined(visitors):
    with connect(visitors) as wire:
        wire.sendall(GET * 5)
        reply = b""
        while reply.count(b'"ok"') < 5:
            reply += wire.recv(65536)
    assert reply.count(b"HTTP/1.1 200") == 5


class Held:
    """A connection that the registry of connections sees."""

    def __init__(self, waits=True):
        self.waits, self.why, self.loop = waits, None, self

    def call_later(self, *_):
        """As an event loop does."""

    def abort(self, why):
        self.why = why


def test_a_new_connection_takes_the_place_of_the_oldest_that_waits():
    shared = Connections(4, 2)
    busy, old, new = Held(waits=False), Held(), Held()
    assert shared.add(busy, "192.0.2.1")
    assert shared.add(old, "192.0.2.1")
    assert shared.add(new, "::ffff:192.0.2.1")
    assert (busy.why, old.why, new.why) == (None, "evicted", None)
    new.waits = False
    assert not shared.add(Held(), "192.0.2.1")
    others = [Held(), Held()]
    assert all(shared.add(one, f"198.51.100.{k}") for k, one in enumerate(others))
    assert shared.add(Held(), "203.0.113.1")
    assert [other.why for other in others] == ["evicted", None]
    for one in (busy, new, old):
        shared.remove(one)
    assert shared.add(Held(), "192.0.2.1")


def test_a_trusted_proxy_has_as_many_connections_as_there_are():
    shared = Connections(6, 2, (ip_network("10.0.0.0/8"),))
    held = [Held() for _ in range(6)]
    assert all(shared.add(one, "10.1.2.3") for one in held)
    assert not shared.add(Held(), "192.0.2.1")
    assert all(one.why is None for one in held)


def test_limits_of_connections_are_within_the_file_descriptors():
    limits = Connections.of(Settings(most_connections=10**9, most_connections_of_address=10**9))
    assert 1 <= limits.max_per_address <= limits.max_connections // 2 < 10**9


def test_addresses_of_both_kinds_are_one_and_proxies_are_named_by_address_or_network():
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7") != network_of("::ffff:192.0.2.8")
    assert Settings(trusted_proxies=" 127.0.0.1, 10.0.0.1/8 ").proxies == (
        ip_network("127.0.0.1/32"),
        ip_network("10.0.0.0/8"),
    )
    assert Settings().proxies == ()
    with pytest.raises(InvalidParameter, match=r"PAIRSEEK_TRUSTED_PROXIES contains '\*': give addresses or networks"):
        _ = Settings(trusted_proxies="*").proxies


def resident(process):
    """Megabytes of memory of a process, and its seconds of processor time."""
    return psutil.Process(process).memory_info().rss / 1e6, sum(psutil.Process(process).cpu_times()[:2])


@pytest.fixture(scope="module")
def few_descriptors(tmp_path_factory):
    """The address and the number of a server of its own process, with 200 file descriptors."""
    folder = tmp_path_factory.mktemp("few")
    script = (
        "import resource, pairseek.cli; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)); pairseek.cli.main()"
    )
    command = [sys.executable, "-c", script, "serve", "--port", "0", "--database", "f.db"]
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)
    try:
        yield SimpleNamespace(address=listening(folder / "out"), process=process.pid)
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "again", "held"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ", b"a" * 65536, 1),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"a: b\r\n" * 10_000, 1),
        (CHUNKED + b"0\r\n", b"a: b\r\n" * 10_000, 1),
        (b"", GET * 2000, 1),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A", b"", 240),
        (POST + b"Content-Length: 100\r\n\r\n{", b"", 240),
    ],
    ids=["header", "headers", "trailers", "requests", "half-sent heads", "half-sent bodies"],
)
def test_under_attack_others_are_served_and_memory_does_not_grow(few_descriptors, first, again, held):
    stopped, seconds = threading.Event(), 15

    def attack():
        with contextlib.ExitStack() as stack:
            wires = deque()
            while not stopped.is_set():
                with contextlib.suppress(OSError):
                    wires.append(stack.enter_context(connect(few_descriptors)))
                    wires[-1].sendall(first)
                    while again and not stopped.is_set():
                        wires[-1].sendall(again)
                if len(wires) > held:
                    wires.popleft().close()
                stopped.wait(0.01)

    memory, processor = resident(few_descriptors.process)
    thread = threading.Thread(target=attack)
    thread.start()
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        assert httpx.get(f"{few_descriptors.address}/healthz", timeout=10).status_code == 200
        times.append(time.monotonic() - began)
        time.sleep(0.05)
    stopped.set()
    thread.join()
    after, spent = resident(few_descriptors.process)
    # Without limits: replies after seconds or none at all, 1.5 GB of memory, and a whole core.
    assert max(times) < 3
    assert after - memory < 100
    assert spent - processor < 0.6 * seconds
