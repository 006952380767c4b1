"""`lineup desktop` in the real Chromium, on a screen that is none: the window opens, its page attaches, and both ways out end well."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.web_host import WebHost

pytestmark = pytest.mark.clause("2.9")
SECONDS = 60


@pytest.fixture
def desktop(tmp_path: Path, screen: str) -> Iterator[WebHost]:
    """`lineup desktop` instead of `lineup run`, with a screen."""
    made = WebHost(tmp_path / "home", verb=("desktop",), environ=os.environ | {"DISPLAY": screen}, is_executed=True)
    made.start()
    yield made
    made.close()


def window_of(host: WebHost) -> int:
    """The Chromium of this host's profile."""
    profile = f"--user-data-dir={host.home}/desktop/{host.port}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if profile in words and not any(word.startswith(b"--type=") for word in words):
                return int(entry.name)
    raise AssertionError("no window of this host")


def wait_attached(host: WebHost) -> None:
    """Wait until the window's page is a view of the kernel, beside the host's own silent one."""
    until = time.monotonic() + SECONDS
    while json.loads(host.lineup("ps", "--format", "json"))["kernel"]["views"] < 2:
        assert time.monotonic() < until, host.said()


def test_the_window_opens_a_page_that_attaches_and_a_signal_ends_both(desktop: WebHost) -> None:
    wait_attached(desktop)
    with_profile = os.pidfd_open(window_of(desktop))
    assert desktop.stop(signal.SIGTERM) == 0
    assert select.select([with_profile], [], [], 0)[0], "the window outlived the host"
    os.close(with_profile)


def test_closing_the_window_ends_the_host_and_leaves_the_kernel(desktop: WebHost) -> None:
    wait_attached(desktop)
    kernel = desktop.kernel_pid()
    os.kill(window_of(desktop), signal.SIGTERM)
    assert desktop.wait_end() == 0
    assert desktop.kernel_pid() == kernel
