"""A round-robin proxy in front of several servers, as small as tests need: HTTP/1.1 with Content-Length.

Each request goes to the next server, whatever connection or cookie it comes with. A server that cannot be reached is
passed over; one that dies before its reply is complete gives 502, as most proxies do for requests that may have had an
effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading


class Proxy:
    """Proxy on a free port of this machine, in a thread of its own.

    ``twice`` sends every request to two servers at once and returns the reply of the first; ``ports`` may be changed
    while it runs.
    """

    def __init__(self, ports, *, twice: bool = False) -> None:
        self.ports, self.twice, self.port = list(ports), twice, 0
        self.sent = dict.fromkeys(self.ports, 0)
        self._turn = itertools.count()
        self._clients = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        assert self._ready.wait(10), "the proxy did not start"
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "the proxy did not stop"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        self._stopped = asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, limit=1 << 22)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _client(self, reader, writer) -> None:
        # The loop itself holds tasks by weak references.
        self._clients.add(asyncio.current_task())
        try:
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                while True:
                    request = await _message(reader)
                    asked = [self._forwarded(request) for _ in range(1 + self.twice)]
                    reply, *_ = await asyncio.gather(*asked)
                    writer.write(reply)
                    await writer.drain()
        finally:
            await _closed(writer)
            self._clients.discard(asyncio.current_task())

    async def _forwarded(self, request: bytes) -> bytes:
        first = next(self._turn)
        for further in range(len(self.ports)):
            port = self.ports[(first + further) % len(self.ports)]
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
            except OSError:
                continue
            self.sent[port] = self.sent.get(port, 0) + 1
            try:
                writer.write(request)
                await writer.drain()
                return await _message(reader)
            except (OSError, EOFError):
                return _error(502)
            finally:
                await _closed(writer)
        return _error(503)


async def _closed(writer) -> None:
    writer.close()
    with contextlib.suppress(OSError, asyncio.CancelledError):
        await writer.wait_closed()


async def _message(reader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return head + (await reader.readexactly(length) if length else b"")


def _error(status: int) -> bytes:
    return f"HTTP/1.1 {status} Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n".encode()
