"""How a browser is started: a window with its own profile, or the person's browser; what is on its command line opens once only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from hosts.homes import Home
from hosts.web.browser import open_browser

URL = "http://127.0.0.1:4321/#token=once"
# Stand for programs of the machine: they say how they were called; the window lives until it is ended.
BROWSER = """#!/bin/sh
for word in "$0" "$@"; do printf '%s\\n' "$word"; done > "$SAID"
"""
WINDOW = BROWSER + "exec /usr/bin/tail -f /dev/null\n"


class Machine:
    """A PATH with the programs the test wants, and a pipe they speak into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said = folder / "said"
        os.mkfifo(self._said)
        self.home = Home(folder / "home")
        self.home.create()
        self.environ = {"PATH": str(folder), "SAID": str(self._said), "DISPLAY": ":1"}

    def add(self, name: str, program: str) -> None:
        (self._folder / name).write_text(program)
        (self._folder / name).chmod(0o755)

    async def words(self) -> list[str]:
        """How a program was called."""
        with trio.fail_after(30):
            return (await trio.to_thread.run_sync(self._said.read_text, abandon_on_cancel=True)).splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", str(tmp_path))
    return Machine(tmp_path)


async def test_a_window_has_its_own_profile_and_ends_with_the_host(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.add("chromium", WINDOW)
    machine.add("xdg-open", BROWSER)
    window = open_browser(URL, machine.home, machine.environ, is_window=True)
    assert window is not None
    program, *flags = await machine.words()
    assert program.endswith("/chromium")
    assert f"--app={URL}" in flags
    assert f"--user-data-dir={machine.home.folder}/desktop/4321" in flags
    assert "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1" in flags
    assert "--webrtc-ip-handling-policy=disable_non_proxied_udp" in flags
    is_root = os.geteuid() == 0
    assert ("--no-sandbox" in flags, "own sandbox" in capsys.readouterr().err) == (is_root, is_root)
    with trio.fail_after(30):
        await window.close()


async def test_a_window_that_the_person_closes_is_noticed(machine: Machine) -> None:
    machine.add("google-chrome", BROWSER)
    window = open_browser(URL, machine.home, machine.environ, is_window=True)
    assert window is not None
    with trio.fail_after(30):
        await machine.words()
        await window.wait_closed()
        await window.close()


async def test_without_chromium_the_window_is_the_persons_browser(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.add("firefox", BROWSER)
    assert open_browser(URL, machine.home, machine.environ, is_window=True) is None
    assert (await machine.words())[1:] == [URL]
    assert "No Chromium here" in capsys.readouterr().err


def test_without_a_display_or_a_browser_nothing_is_started(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert open_browser(URL, machine.home, machine.environ, is_window=False) is None
    assert "No browser found" in capsys.readouterr().err
    machine.add("xdg-open", BROWSER)
    assert open_browser(URL, machine.home, {"PATH": machine.environ["PATH"]}, is_window=False) is None
    assert "No display" in capsys.readouterr().err
