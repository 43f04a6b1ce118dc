"""Private PostgreSQL cluster for tests: in a temporary folder, on its own socket, deleted afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


def programs() -> Path:
    """Return the folder with ``initdb`` and ``postgres``."""
    initdb = shutil.which("initdb")
    if initdb:
        return Path(os.path.realpath(initdb)).parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert folders, "the tests need PostgreSQL: apt-get install postgresql"
    return folders[-1]


class Cluster:
    """Running cluster; PostgreSQL refuses to run as root, so root runs it as the user ``postgres``."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.folder, self.data, self.durable = folder, folder / "data", durable
        self.as_user = {}
        if os.geteuid() == 0:
            who = pwd.getpwnam("postgres")
            os.chown(folder, who.pw_uid, who.pw_gid)
            self.as_user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "pairseek", "-E", "UTF8", "--no-sync", "--locale=C")
        self.process = None
        self._databases = 0

    def start(self) -> None:
        settings = {"listen_addresses": "", "unix_socket_directories": self.folder, "shared_buffers": "32MB"}
        if not self.durable:
            # No power cuts here, and a killed process loses nothing that the operating system has buffered.
            settings["fsync"] = "off"
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        until = time.monotonic() + 60
        while not self._ready():
            assert time.monotonic() < until, (self.folder / "log").read_text()
            # After a kill it refuses to start until the last child of the old process has exited.
            if self.process is None or self.process.poll() is not None:
                with (self.folder / "log").open("ab") as log:
                    command = [programs() / "postgres", "-D", self.data, *options]
                    self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.as_user)
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the main process as in a crash; its children exit a moment later."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        """Restart like an administrator: close all connections at once and start again."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)
        self.start()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=20)

    def database(self, *options: str) -> str:
        """Return the address of a new, empty database, made with these options of createdb."""
        self._databases += 1
        name = f"test{self._databases}"
        self._run("createdb", "-h", self.folder, "-U", "pairseek", *options, name)
        return f"postgresql://pairseek@/{name}?host={self.folder}"

    def _ready(self) -> bool:
        asked = [programs() / "pg_isready", "-q", "-h", self.folder, "-U", "pairseek", "-d", "postgres"]
        return subprocess.run(asked, check=False).returncode == 0

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(programs() / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False, **self.as_user)
        assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def cluster(*, durable: bool = False):
    # Not below pytest's own folder, which other users cannot enter; also, the path of a socket must be short.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    made = Cluster(folder, durable=durable)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)
