"""How the page feels: from `lineup run` to the first paint, from a key to its frame beside a long conversation, from the pen to the ink.

Rules:
1. A real Chromium without a window, a real host and kernel on a home of their own; nothing of the page is changed for it.
2. A document measures itself (browser.js): what the driver takes to tell the browser of an input is not in it.
3. Chromium reports a task only from 50 ms on: a longest task of 0 means that none was that long.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Frame, Page, expect, sync_playwright

from bench.kernel_process import DISK, ROOT, START_SECONDS

STARTS = 5
STORED_MESSAGES = 10_000
TYPED = "What is typed here is never sent; it is only looked at. " * 4
STROKES = 5_000
STROKES_A_PATCH = 250
DRAWN = 20
SELF = (ROOT / "bench" / "browser.js").read_text()
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")
PATCH = """async ([from, count]) => {
  const strokes = {};
  for (let n = from; n < from + count; n += 1) {
    const [x, y] = [(n % 100) / 100, Math.floor(n / 100) / 50];
    strokes[`m${n}`] = { color: "#16a34a", width: 1, order: n + 1, points: [x, y, x + 0.005, y + 0.01, x + 0.009, y] };
  }
  await lineup.surface.patch({ boards: { bench: { strokes } } });
}"""

Json = dict[str, Any]


def measure() -> Json:
    """All of it; without Chromium, a line that says so."""
    program = shutil.which("chromium")
    if program is None:
        return {"browser": "not measured: chromium is not installed"}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        starts = [_start(browser) for _ in range(STARTS + 1)][1:]  # the first warms what the others find warm
        found = {"browser": browser.version, "start": _start_summary(starts), **_long_conversation(browser), **_full_board(browser)}
        browser.close()
    return found


def spread(millis: Sequence[float]) -> Json:
    """Median, 95th percentile and worst."""
    ordered = sorted(millis)
    at_95 = ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]
    return {
        "samples": len(ordered),
        "p50_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(at_95, 1),
        "max_ms": round(ordered[-1], 1),
    }


# --------------------------------------------------------------------------------- the first paint


def _start(browser: Browser) -> Json:
    began = time.perf_counter()
    with _host() as (url, _):
        ready = time.perf_counter()
        page = _page(browser, url)
        expect(page.get_by_label("Message to the Agent")).to_be_visible()
        paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        whole = page.evaluate("() => performance.now()")
        page.context.close()
    return {"to_ready": (ready - began) * 1000, "paint": paint, "whole": whole}


def _start_summary(starts: Sequence[Json]) -> Json:
    return {
        "run_to_ready": spread([one["to_ready"] for one in starts]),
        "navigation_to_first_paint": spread([one["paint"] for one in starts]),
        "navigation_to_conversation": spread([one["whole"] for one in starts]),
        "run_to_first_paint": spread([one["to_ready"] + one["paint"] for one in starts]),
    }


# --------------------------------------------------------------------------------- a long conversation


def _long_conversation(browser: Browser) -> Json:
    with _host() as (url, home):
        lines = "".join(f"Line {number} of a *long* conversation.\n" for number in range(STORED_MESSAGES))
        _lineup(home, "agent", "--no-wait", stdin=lines)
        page = _page(browser, url)
        expect(page.get_by_text(f"Line {STORED_MESSAGES - 1} of a")).to_be_visible()
        box = page.get_by_label("Message to the Agent")
        box.click()
        page.keyboard.type(TYPED, delay=20)
        page.wait_for_function("count => benched.frames.keydown?.length >= count", arg=len(TYPED))
        found = page.evaluate("() => benched")
        page.context.close()
    return {"key_to_frame": spread(found["frames"]["keydown"]), "longest_task_ms": round(found["longest"], 1)}


# --------------------------------------------------------------------------------- a full board


def _full_board(browser: Browser) -> Json:
    with _host() as (url, home), _calling(home, "whiteboard.open", {"board_id": "bench", "title": "Bench"}):
        page = _page(browser, url)
        status = page.frame_locator("iframe[title=Whiteboard]").get_by_role("status")
        expect(status).to_contain_text("0 strokes")
        frame = _frame(page)
        for start in range(0, STROKES, STROKES_A_PATCH):
            frame.evaluate(PATCH, [start, STROKES_A_PATCH])
        expect(status).to_contain_text(f"{STROKES} strokes")
        frame.evaluate("() => { benched.frames = {}; benched.longest = 0; }")
        _draw(page)
        expect(status).to_contain_text(f"{STROKES + DRAWN} strokes")
        found = frame.evaluate("() => benched")
        page.context.close()
    frames = found["frames"]
    return {
        "board": {
            "strokes": STROKES,
            "pen_to_frame": spread(frames["pointermove"]),
            "end_of_stroke_to_frame": spread(frames["pointerup"]),
            "longest_task_ms": round(found["longest"], 1),
        }
    }


def _draw(page: Page) -> None:
    paper = page.frame_locator("iframe[title=Whiteboard]").get_by_role("application").bounding_box()
    assert paper is not None
    for number in range(DRAWN):
        y = paper["y"] + paper["height"] * (number + 1) / (DRAWN + 2)
        page.mouse.move(paper["x"] + paper["width"] * 0.2, y)
        page.mouse.down()
        page.mouse.move(paper["x"] + paper["width"] * 0.8, y, steps=20)
        page.mouse.up()


def _frame(page: Page) -> Frame:
    frame = page.locator("iframe[title=Whiteboard]").element_handle().content_frame()
    assert frame is not None
    return frame


# --------------------------------------------------------------------------------- host, page, commands


def _page(browser: Browser, url: str) -> Page:
    context = browser.new_context(viewport={"width": 1280, "height": 820}, locale="en-GB")
    context.add_init_script(SELF)
    page = context.new_page()
    page.goto(url)
    return page


@contextmanager
def _host() -> Iterator[tuple[str, Path]]:
    """`lineup run` on a new home; its address and the home. Ended with its kernel."""
    home = Path(tempfile.mkdtemp(prefix="lineup-bench-", dir=DISK))
    command = [*_command(home), "run", "--no-open"]
    with (home.parent / f"{home.name}.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("READY "):
            raise SystemExit(f"the web host did not start: {line!r}")
        yield line.split()[1], home
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        _lineup(home, "stop")
        shutil.rmtree(home)
        Path(log.name).unlink()


@contextmanager
def _calling(home: Path, tool_id: str, given: Json) -> Iterator[None]:
    """A call that stays open while this lasts."""
    command = [*_command(home), "call", tool_id, "--args-json", json.dumps(given)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield
    process.kill()
    process.wait()


def _lineup(home: Path, *words: str, stdin: str = "") -> None:
    subprocess.run([*_command(home), *words], cwd=ROOT, input=stdin, capture_output=True, text=True, check=True)


def _command(home: Path) -> list[str]:
    return [sys.executable, "-m", "hosts.cli", "--home", str(home)]
