"""Whiteboard and Task Dashboard in a real page: drawn, erased, undone, written, submitted to the Agent; back after every kind of end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Frame, Page, expect

from tests.web.boards import Board
from tests.web.conftest import Pages
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost

AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
SVG = "{http:" + "//www.w3.org/2000/svg}"
OPEN = {"board_id": "b1", "title": "Plan"}


@pytest.fixture
def page(host: WebHost, pages: Pages) -> Page:
    return pages.open(host.url)


def opened(page: Page, agent: LineAgent, **more: Any) -> tuple[Board, str]:
    """A board the Agent opened, in front; and the Agent's open call."""
    call_id = agent.invoke("whiteboard.open", {**OPEN, **more})
    board = Board(page)
    board.says(more.get("title", "Plan"))
    return board, call_id


def drawing(host: WebHost, artifact_id: str) -> ET.Element:
    """The kept drawing."""
    kept = [path.read_bytes() for path in (host.home / "artifacts").rglob("*") if path.is_file()]
    [svg] = [data for data in kept if data.startswith(b"<svg")]
    assert artifact_id
    return ET.fromstring(svg)


@pytest.mark.clause("9.1")
@pytest.mark.clause("9.4")
def test_a_board_is_drawn_erased_undone_written_on_and_submitted_and_the_agents_call_completes(
    page: Page, agent: LineAgent, host: WebHost
) -> None:
    board, call_id = opened(page, agent)
    board.draw((0.1, 0.1), (0.3, 0.5), (0.5, 0.2))
    board.says("1 stroke")
    board.press("Red")
    board.press("Broad")
    board.draw((0.2, 0.8), (0.8, 0.8))
    board.says("2 strokes")
    board.press("Eraser")
    board.draw((0.15, 0.7), (0.25, 0.9))
    board.says("1 stroke")
    board.press("Undo")
    board.says("2 strokes")
    board.write((0.6, 0.3), "Hi <b> 你好")
    board.says("2 strokes, 1 text")
    page.keyboard.press("Control+z")
    board.says("2 strokes")
    board.write((0.6, 0.3), "Here <b> 你好")
    board.says("2 strokes, 1 text")
    board.press("Submit")
    board.says("Submitted")
    result = agent.result(call_id)
    assert (result["status"], result["result"]["status"]) == ("completed", "submitted")
    drawn = drawing(host, result["result"]["artifact_id"])
    assert [one.tag.removeprefix(SVG) for one in drawn] == ["title", "rect", "polyline", "polyline", "text"]
    first, second = drawn.findall(f"{SVG}polyline")
    assert (first.get("stroke"), second.get("stroke"), second.get("stroke-width")) == ("#2563eb", "#dc2626", "12.8")
    assert len(str(first.get("points")).split()) == 3  # a bent line keeps its corners and no more
    assert drawn.findtext(f"{SVG}text") == "Here <b> 你好"
    expect(board.frame.get_by_role("button", name="Pen")).to_be_disabled()
    board.says("the Agent answers in the conversation")


@pytest.mark.clause("9.4")
@pytest.mark.invariant("48")
def test_the_agent_shows_the_drawing_in_the_conversation_and_no_picture_from_elsewhere(page: Page, agent: LineAgent) -> None:
    board, call_id = opened(page, agent)
    board.draw((0.1, 0.1), (0.3, 0.5))
    board.press("Submit")
    artifact_id = agent.result(call_id)["result"]["artifact_id"]
    agent.say(f"![Your drawing](artifact:{artifact_id}) ![far](http://127.0.0.1:9/x.png) ![here](/static/icon.svg)")
    page.get_by_role("tab", name="Conversation").click()
    shown = page.get_by_role("log").locator("article").last.locator("img")
    expect(shown).to_have_count(1)
    expect(shown).to_have_accessible_name("Your drawing")
    expect(shown).to_have_attribute("src", re.compile("^/a/[A-Za-z0-9_-]{32}$"))
    expect(shown).to_have_js_property("complete", value=True)
    assert shown.evaluate("(image) => image.naturalWidth") > 100


@pytest.mark.clause("9.1")
def test_everything_on_a_board_can_be_done_by_keys(page: Page, agent: LineAgent, host: WebHost) -> None:
    board, call_id = opened(page, agent)
    board.keys(["ArrowRight", "Space", "Shift+ArrowDown", "Shift+ArrowRight", "Enter"])
    board.says("1 stroke")
    board.keys(["Shift+ArrowUp", "Space", "Shift+ArrowRight", "Escape"])
    board.says("Pen down")
    board.frame.get_by_role("button", name="Text").press("Enter")
    board.keys(["Shift+ArrowUp", "Enter"])
    page.keyboard.type("by keys")
    page.keyboard.press("Enter")
    board.says("1 stroke, 1 text")
    board.frame.get_by_role("button", name="Discard", exact=True).press("Enter")
    expect(board.frame.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(board.frame.get_by_role("button", name="Discard", exact=True)).to_be_focused()
    board.frame.get_by_role("button", name="Submit").press("Enter")
    assert agent.result(call_id)["result"]["status"] == "submitted"


@pytest.mark.clause("9.1")
def test_a_board_is_discarded_only_after_its_question_and_another_one_is_shown(page: Page, agent: LineAgent) -> None:
    board, first = opened(page, agent)
    board.draw((0.1, 0.1), (0.9, 0.9))
    second = agent.invoke("whiteboard.open", {"board_id": "b2", "title": "Second"})
    tabs = board.frame.get_by_role("tab")
    expect(tabs).to_have_text(["Plan", "Second"])
    board.says("Plan · 1 stroke")  # the person stays where they draw
    tabs.first.press("ArrowRight")
    board.says("Second · 0 strokes")
    board.press("Discard")
    board.press("Discard it")
    assert agent.result(second)["result"] == {"status": "cancelled"}
    board.says("Discarded")
    tabs.first.click()
    board.press("Submit")
    assert agent.result(first)["result"]["status"] == "submitted"


@pytest.mark.clause("9.1")
@pytest.mark.clause("12")
def test_a_board_is_back_after_a_reload_a_killed_worker_a_killed_kernel_and_another_host(
    page: Page, pages: Pages, agent: LineAgent, host: WebHost
) -> None:
    pages.allow("WebSocket")
    pages.allow("ERR_CONNECTION_REFUSED")
    board, call_id = opened(page, agent)
    board.draw((0.1, 0.1), (0.9, 0.9))
    board.says("1 stroke")
    page.reload()
    board.says("1 stroke")
    kill_workers(host)
    board.draw((0.9, 0.1), (0.1, 0.9))
    board.says("2 strokes")
    path = page.locator("iframe[title=Whiteboard]").get_attribute("src")
    host.kill_kernel()
    board.draw((0.5, 0.1), (0.5, 0.9))  # while nobody is there to keep it
    board.says("3 strokes")
    expect(page.locator(f'iframe[title=Whiteboard]:not([src="{path}"])')).to_be_visible()
    board.says("3 strokes")  # in a new frame, so it is what the kernel has
    page.reload()
    board.says("3 strokes")
    board.press("Submit")
    board.says("Submitted")
    result = agent.result(call_id)
    assert result["result"]["status"] == "submitted"
    assert len(drawing(host, result["result"]["artifact_id"]).findall(f"{SVG}polyline")) == 3


INK_UNDER_THE_PEN = """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"""


def test_a_line_under_the_pen_is_seen_through_a_change_of_the_room(page: Page, agent: LineAgent) -> None:
    board, _ = opened(page, agent)
    page.mouse.move(*board.at((0.2, 0.2)))
    page.mouse.down()
    page.mouse.move(*board.at((0.6, 0.6)), steps=5)
    height = board.paper.evaluate("(canvas) => canvas.height")
    agent.result(agent.invoke("interaction.notice", {"title": "Backup", "message": "It takes room above the board."}))
    expect(page.get_by_role("log", name="Messages from LineUp")).to_contain_text("Backup")
    expect(board.paper).not_to_have_js_property("height", height)
    assert board.paper.evaluate(INK_UNDER_THE_PEN)
    page.mouse.up()
    board.says("1 stroke")


def kill_workers(host: WebHost) -> None:
    """kill -9 of every process below the kernel's that runs an instance; the zygote starts others."""
    children = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in children]
    below, found = {host.kernel_pid()}, []
    for _ in range(4):
        below |= {int(pid) for pid, parent, _ in rows if int(parent) in below}
    found = [pid for pid in below if any(int(parent) in below and int(row) == pid for row, parent, _ in rows)]
    leaves = [pid for pid in found if not any(int(parent) == pid for _, parent, _ in rows)]
    assert leaves
    for pid in leaves:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.clause("9.1")
def test_five_thousand_strokes_are_shown_and_one_more_is_drawn_without_drawing_them_again(page: Page, agent: LineAgent) -> None:
    board, _ = opened(page, agent)
    frame = frame_of(page, "Whiteboard")
    board.draw((0.1, 0.1), (0.2, 0.2))
    board.says("1 stroke")
    made = """async (from) => {
      const strokes = {};
      for (let n = from; n < from + 250; n += 1) {
        const [x, y] = [(n % 100) / 100, Math.floor(n / 100) / 50];
        strokes[`m${n}`] = { color: "#16a34a", width: 1, order: n + 10, points: [x, y, x + 0.005, y + 0.01, x + 0.009, y] };
      }
      await lineup.surface.patch({ boards: { b1: { strokes } } });
    }"""
    for start in range(0, 5000, 250):
        frame.evaluate(made, start)
    board.says("5001 strokes")
    frame.evaluate("() => { const kept = ink.stroke.bind(ink); window.strokes = 0; ink.stroke = (path) => { strokes += 1; kept(path); }; }")
    board.draw((0.3, 0.3), (0.7, 0.7), (0.3, 0.7))
    board.says("5002 strokes")
    assert frame.evaluate("() => strokes") == 1
    page.reload()
    board.says("5002 strokes")


def frame_of(page: Page, title: str) -> Frame:
    """The frame of a surface that is shown."""
    frame = page.locator(f"iframe[title='{title}']").element_handle().content_frame()
    assert frame is not None
    return frame


@pytest.mark.clause("9.2")
def test_tasks_are_shown_and_an_unfinished_one_is_closed_only_after_its_own_question(page: Page, agent: LineAgent) -> None:
    call_id = agent.invoke("task-dashboard.open", {"task_id": "t1", "title": "Build", "state": "running", "description": "All of it"})
    shown = page.frame_locator("iframe[title='Task Dashboard']")
    row = shown.get_by_role("listitem").filter(has_text="Build")
    expect(row).to_contain_text("Running")
    expect(row).to_contain_text("All of it")
    agent.invoke("task-dashboard.update", {"task_id": "t1", "progress": 40})
    expect(row.get_by_role("progressbar")).to_have_attribute("value", "40")
    shown.get_by_role("button", name="Close Build").click()
    expect(shown.get_by_text("not finished")).to_be_visible()
    shown.get_by_role("button", name="Keep it").click()
    expect(shown.get_by_text("not finished")).to_be_hidden()
    shown.get_by_role("button", name="Close Build").press("Enter")
    shown.get_by_role("button", name="Close the task").press("Enter")
    assert agent.result(call_id)["result"] == {"status": "cancelled"}
    expect(row).to_contain_text("Cancelled")
    shown.get_by_role("button", name="Close Build").click()
    expect(shown.get_by_text("No tasks yet")).to_be_visible()


@pytest.mark.clause("9.2")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_surfaces_have_nothing_that_axe_finds_in_either_language(host: WebHost, pages: Pages, agent: LineAgent, scheme: str) -> None:
    page = pages.open(host.url, color_scheme=scheme, locale="zh-CN" if scheme == "dark" else "en-GB")
    agent.invoke("task-dashboard.open", {"task_id": "t1", "title": "Build", "state": "blocked", "description": "All of it"})
    dashboard, whiteboard = ("任务面板", "白板") if scheme == "dark" else ("Task Dashboard", "Whiteboard")
    tasks = page.frame_locator(f"iframe[title='{dashboard}']")
    expect(tasks.get_by_role("listitem")).to_be_visible()
    agent.invoke("task-dashboard.update", {"task_id": "t1", "progress": 40})
    expect(tasks.get_by_role("listitem")).to_contain_text("40 %")
    tasks.get_by_role("listitem").get_by_role("button").first.click()
    assert violations(frame_of(page, dashboard)) == []
    agent.invoke("whiteboard.open", OPEN)
    agent.invoke("whiteboard.open", {"board_id": "b2", "title": "Second"})
    expect(page.frame_locator(f"iframe[title={whiteboard}]").get_by_role("tab")).to_have_count(2)
    frame = frame_of(page, whiteboard)
    assert violations(frame) == []
    assert frame.evaluate("() => document.documentElement.dataset.theme") == scheme
    assert frame.evaluate("() => document.documentElement.lang") == ("zh" if scheme == "dark" else "en")


def violations(frame: Frame) -> list[str]:
    """What axe finds in a document."""
    frame.evaluate(AXE.read_text("utf-8"))
    found = frame.evaluate("() => axe.run(document, { iframes: false })")
    return [f"{one['id']}: {[node['html'] for node in one['nodes']]}" for one in found["violations"]]
