"""A web host of the tests: `lineup run --no-open` as a process on a home of its own, and the kernel that it started.

Rules:
1. Every wait is bounded; what was started is ended, the kernel too.
2. Only numbers that belong to this home are signalled.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.hosts import lineup
from tests.web.line_agent import LineAgent

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
READY = re.compile(r"READY (?P<origin>http://\S+?)/#token=(?P<token>\S+)")


class WebHost:
    """One home with its web host; the host may be stopped and started again. url = origin with its token.

    verb: what is run, with its options. options: more of them. environ: what it is started with; ours if None. is_executed: no fork of a
    warm parent (tests/hosts/lineup.py), nor is any command on this home.
    """

    def __init__(
        self,
        home: Path,
        app_folders: Sequence[Path] = (),
        *,
        verb: Sequence[str] = ("run", "--no-open"),
        is_demo: bool = False,
        options: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        is_executed: bool = False,
    ) -> None:
        self.home = home
        self.is_executed = is_executed
        self.url = ""
        self.origin = ""
        self.token = ""
        self._folders = [part for folder in app_folders for part in ("--app-folder", str(folder))]
        self._verb, self._environ = verb, environ
        self._more = [*options, *(["--demo"] if is_demo else [])]
        self._errors = home.with_name(f"{home.name}.stderr")
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        words = [*self._named(), *self._folders, *self._verb, *self._more]
        how = {"cwd": ROOT, "env": self._environ, "is_executed": self.is_executed, "text": True}
        with self._errors.open("ab") as errors:
            self._process = lineup.start(words, stdout=subprocess.PIPE, stderr=errors, **how)
        assert self._process.stdout is not None
        killer = threading.Timer(SECONDS, self._process.kill)  # a host that never gets ready ends the wait below
        killer.start()
        line = self._process.stdout.readline()
        killer.cancel()
        found = READY.match(line)
        assert found is not None, f"not ready: {line!r} {self.said()!r}"
        self.origin, self.token, self.url = found[1], found[2], line.split()[1]

    def said(self) -> str:
        """What its processes wrote to stderr."""
        return self._errors.read_text()

    @property
    def is_running(self) -> bool:
        """Whether the host is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.origin.rpartition(":")[2])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the host, not the kernel; returns its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self.wait_end()

    def wait_end(self) -> int:
        """Wait for the host's own end; returns its exit code."""
        assert self._process is not None
        code = self._process.wait(SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    def signal(self, number: int) -> None:
        """Send a signal to the host alone."""
        assert self._process is not None
        self._process.send_signal(number)

    def lineup(self, *words: str) -> str:
        """Run one command on this home and return what it printed."""
        done = self._run(*words)
        done.check_returncode()
        return str(done.stdout)

    def kernel_pid(self) -> int:
        """The process of the kernel of this home."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"kernel" in words and b"serve" in words and os.fsencode(self.home) in words:
                return int(entry.name)
        raise AssertionError("no kernel runs on this home")

    def kill_kernel(self) -> None:
        """kill -9: without a word."""
        os.kill(self.kernel_pid(), signal.SIGKILL)

    def close(self) -> None:
        """End the host and the kernel."""
        if self._process is not None:
            assert self.stop() == 0
        self._run("stop")  # it may be gone already

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return lineup.run([*self._named(), *words], cwd=ROOT, text=True, timeout=SECONDS, is_executed=self.is_executed)

    def _named(self) -> list[str]:
        return ["--home", str(self.home)]


@contextmanager
def agent_of(host: WebHost) -> Iterator[LineAgent]:
    """An Agent of the tests at the door of this host's kernel."""
    agent = LineAgent(host.home, is_executed=host.is_executed)
    try:
        agent.wait("client.inventory")
        yield agent
    finally:
        agent.close()
