"""Logs of the service: one JSON object a line, whoever writes it, and nothing that was sent."""

import json
import re
import subprocess
import sys

PROGRAM = """
import asyncio, logging, threading, warnings
from pairseek.web.operations import logs
logs.set_up()
logging.getLogger("pairseek.web").info("ours")
logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
logging.getLogger("uvicorn.access").warning("192.0.2.1")
logging.getLogger("other.package").error("first line\\nann@example.org")
warnings.warn("a warning")
thread = threading.Thread(target=lambda: int("ann@example.org"))
thread.start()
thread.join()
class Breaks:
    def __del__(self):
        raise ValueError("ann@example.org")
Breaks()
async def fails():
    raise ValueError("ann@example.org")
async def main():
    asyncio.create_task(fails())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
asyncio.run(main())
"""


def test_every_line_is_json_and_quotes_nothing():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["level"], line["event"], line.get("error")) for line in lines] == [
        ("info", "ours", None),
        ("warning", "Invalid HTTP request received.", None),
        ("error", "first line", None),
        ("warning", "<string>:9: UserWarning: a warning", None),
        ("error", "uncaught exception", "ValueError"),
        ("error", "uncaught exception", "ValueError"),
        ("error", "Task exception was never retrieved", "ValueError"),
    ]
    assert lines[4]["where"]
    assert "ann@example.org" not in done.stderr
    assert done.stdout == ""


AT_TERMINAL = """
import io, logging, sys
from pairseek.web.operations import logs
class Terminal(io.StringIO):
    def isatty(self):
        return True
sys.stderr = Terminal()
logs.set_up()
logging.getLogger("pairseek.web").info("request")
logging.getLogger("uvicorn.error").info("Started server process")
logging.getLogger("pairseek.web").warning("worker exited", extra={"facts": {"code": 1}})
print(sys.stderr.getvalue(), end="")
"""


def test_a_terminal_shows_only_warnings_and_as_plain_text():
    done = subprocess.run([sys.executable, "-c", AT_TERMINAL], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d\d:\d\d:\d\d warning worker exited code=1\n", done.stdout)
