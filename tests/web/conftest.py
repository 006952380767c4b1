"""What the tests of the page share: one browser a session, a context of its own for every page of a test, a host on a home of its own.

A page that writes an error or a warning to its console, or leaves a rejection unhandled, fails its test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT_MS = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.fail("these tests need Chromium: apt-get install chromium fonts-noto-cjk fonts-noto-color-emoji")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def headed_browser(browser: Browser, screen: str) -> Iterator[Browser]:
    """A browser with a window, on a screen that is none."""
    opened = browser.browser_type.launch(executable_path=CHROMIUM, args=FLAGS, headless=False, env=os.environ | {"DISPLAY": screen})
    yield opened
    opened.close()


@pytest.fixture
def screen() -> Iterator[str]:
    """A screen of Xvfb's; its name for DISPLAY."""
    if (program := shutil.which("Xvfb")) is None:
        pytest.fail("these tests need Xvfb: apt-get install xvfb")
    reading, writing = os.pipe()
    command = [program, "-displayfd", str(writing), "-screen", "0", "1400x1000x24", "-nolisten", "tcp", "-noreset"]
    process = subprocess.Popen(command, pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as said:
        number = said.readline().strip()  # ends when Xvfb does
    assert number, "Xvfb did not start"
    yield f":{number}"
    process.terminate()
    process.wait(WAIT_MS / 1000)


class Pages:
    """Opens pages, each a tab of a context of its own, and remembers what went wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._allowed: list[str] = []
        self.troubles: list[str] = []

    def open(self, url: str, *, script: str = "", **options: Any) -> Page:
        """Open a page on the board of a host. script: run first in every document of it."""
        context = self._browser.new_context(**{"viewport": {"width": 1280, "height": 820}, "locale": "en-GB", **options})
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(script)
        page = context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(f"unhandled: {error}"))
        page.goto(url)
        return page

    def allow(self, words: str) -> None:
        """Let the console say this: the test takes the host away, and the browser tells of it."""
        self._allowed.append(words)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(words in message.text for words in self._allowed):
            self.troubles.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        """Close every context."""
        for context in self._browser.contexts:
            context.close()


@pytest.fixture
def pages(browser: Browser) -> Iterator[Pages]:
    made = Pages(browser)
    yield made
    made.close()
    assert not made.troubles


@pytest.fixture
def host(tmp_path: Path) -> Iterator[WebHost]:
    """A host with the shipped Apps."""
    made = WebHost(tmp_path / "home")
    made.start()
    yield made
    made.close()


StartHost = Callable[..., WebHost]


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[StartHost]:
    """Start a host with further Apps, with the demo Agent, or with no process forked."""
    started: list[WebHost] = []

    def begin(*app_folders: Path, **more: bool) -> WebHost:
        started.append(WebHost(tmp_path / f"home-{len(started)}", app_folders, **more))
        started[-1].start()
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def agent(host: WebHost) -> Iterator[LineAgent]:
    """An Agent at the door of `host`."""
    with agent_of(host) as made:
        yield made
