"""Opening the page: the person's browser, or a window of its own in Chromium (`lineup desktop`).

Rules:
1. A browser is started in a session of its own with nothing of ours: no descriptors, no output into our stdout.
2. What stands on its command line can be read by every user of the machine: the address there has a token that opens once, soon.
3. A window has its own profile in the home: no extension, history or page of the person's browser is near it.
4. As root Chromium runs only without its sandbox; that is said.
5. Without a display nothing is started: the line in the terminal is what there is.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence

import trio

from hosts.homes import Home
from hosts.output import print_note

BROWSERS = ("xdg-open", "sensible-browser", "x-www-browser", "firefox", "chromium", "google-chrome")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

CLOSE_SECONDS = 5.0

# What a Chromium without the Connection-Allowlist header would let a surface do, closed once more from outside.
_WINDOW_FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-quic",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class Window:
    """A Chromium of ours. Closed by the person, or with the host."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)

    async def wait_closed(self) -> None:
        """Wait until the person closed it."""
        await trio.lowlevel.wait_readable(self._pidfd)

    async def close(self) -> None:
        """End it, if it is still there, and take its exit status. Called once."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal.pidfd_send_signal(self._pidfd, number)  # to one that has ended and was not reaped: nothing happens
            with trio.move_on_after(CLOSE_SECONDS):
                await self.wait_closed()
                break
        os.waitpid(self._pid, 0)  # noqa: ASYNC222 - it has ended
        os.close(self._pidfd)


def open_browser(url: str, home: Home, environ: Mapping[str, str], *, is_window: bool) -> Window | None:
    """Open the page; returns the window when it is one of ours."""
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        print_note("No display here: open the address above in a browser on this machine.")
        return None
    if is_window:
        program = _find(CHROMIUMS)
        if program is not None:
            return Window(_spawn([program, *_window_arguments(url, home)], environ))
        print_note("No Chromium here: opening the default browser.")
    program = _find(BROWSERS)
    if program is None:
        print_note("No browser found: open the address above yourself.")
        return None
    _spawn([program, url], environ)
    return None


def _find(names: Sequence[str]) -> str | None:
    return next((path for path in map(shutil.which, names) if path is not None), None)


def _window_arguments(url: str, home: Home) -> list[str]:
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    profile = home.folder / "desktop" / port  # of the port: two windows of two hosts are two programs
    for folder in (profile.parent, profile):
        folder.mkdir(mode=0o700, exist_ok=True)
    names = f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {host}"  # no port here: with one the page itself is not found
    flags = [*_WINDOW_FLAGS, names, f"--user-data-dir={profile}", f"--app={url}"]
    if os.geteuid() == 0:
        print_note("You are root: Chromium runs without its own sandbox. Better run this as yourself.")
        flags.insert(0, "--no-sandbox")
    return flags


def _spawn(arguments: list[str], environ: Mapping[str, str]) -> int:
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    return os.posix_spawn(arguments[0], arguments, environ, file_actions=nothing, setsid=True)
