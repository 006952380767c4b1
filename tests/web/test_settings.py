"""What the person may set beside switches and permissions: the mode of talk, which Apps may ask themselves, and all answers of one App."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.processes.written_app import ASKER, write_app
from tests.web.conftest import Pages, StartHost
from tests.web.line_agent import LineAgent
from tests.web.web_host import WebHost, agent_of

APPS = Path(__file__).parents[1] / "processes" / "apps"
CONFIRM = {"kind": "confirm", "title": "Go on?", "prompt": "The App wants to know."}
NOTIFY = {"capability": "notification.show", "reason": "To tell", "arguments": {"title": "Done", "body": "It is finished"}}
COPY = {"capability": "clipboard.write", "reason": "To paste it", "arguments": {"text": "a line to paste"}}
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.clause("3")
def test_the_kernel_says_which_modes_there_are_and_the_page_shows_the_one_there_is(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    page.get_by_role("button", name="Settings").click()
    modes = page.get_by_role("group", name="How you talk with the Agent")
    expect(modes.get_by_role("radio", name="Written")).to_be_checked()
    modes.get_by_role("radio", name="Spoken").click()
    expect(page.get_by_role("log", name="Messages from LineUp")).to_contain_text("there is no such mode")
    expect(modes.get_by_role("radio", name="Written")).to_be_checked()
    rows = [json.loads(line) for line in host.lineup("tail", "--format", "json").splitlines()]
    assert [row["command"] for row in rows if row.get("code") == "mode_unavailable"] == ["mode.request"]


@pytest.mark.clause("7.4")
def test_an_app_asks_itself_only_while_the_person_lets_it(start_host: StartHost, pages: Pages) -> None:
    host = start_host(ASKER)
    page = pages.open(host.url)
    page.get_by_role("button", name="Permissions").click()
    switch = page.get_by_role("switch", name="Asker may ask you questions of its own")
    expect(switch).not_to_be_checked()
    other = pages.open(host.url)
    other.get_by_role("button", name="Permissions").click()
    seen_there = other.get_by_role("switch", name="Asker may ask you questions of its own")
    expect(seen_there).not_to_be_checked()
    switch.click()
    expect(switch).to_be_checked()
    expect(seen_there).to_be_checked()
    with agent_of(host) as agent:
        call_id = agent.invoke("asker.ask", {"json": json.dumps(CONFIRM), "as_parent": False, "subscribe": False})
        answer = page.get_by_role("button", name="Answer Go on?")
        expect(answer).to_be_visible()
        switch.click()
        expect(switch).not_to_be_checked()
        expect(answer).to_have_count(0)
        assert json.loads(agent.result(call_id)["result"]["json"])["code"] == "capability_denied"


@pytest.mark.clause("7.4")
def test_where_no_app_wants_to_ask_itself_nothing_is_offered(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    page.get_by_role("button", name="Permissions").click()
    side = page.get_by_role("complementary", name="Permissions")
    expect(side).to_contain_text("You gave no app a standing answer.")
    expect(side.get_by_role("switch")).to_have_count(0)


@pytest.mark.clause("10")
def test_all_answers_of_one_app_are_taken_back_and_those_of_the_other_stay(start_host: StartHost, pages: Pages, tmp_path: Path) -> None:
    source, wanted = (APPS / "scribe.py").read_bytes(), ("clipboard.write", "notification.show")
    other = source.replace(b"scribe.", b"clerk.")
    folders = [write_app(tmp_path, name, code, ("ask", "results"), wanted) for name, code in (("scribe", source), ("clerk", other))]
    host = start_host(*folders)
    page = pages.open(host.url, permissions=["clipboard-write", "clipboard-read"])
    with agent_of(host) as agent:
        for scope, request in (("scribe", NOTIFY), ("scribe", COPY), ("clerk", NOTIFY)):
            allow_always(page, agent, scope, request)
    page.get_by_role("button", name="Permissions").click()
    side = page.get_by_role("complementary", name="Permissions")
    expect(side.get_by_role("button", name="Take back “")).to_have_count(3)
    expect(side.get_by_role("button", name="Take back all of Test app clerk")).to_have_count(0)
    side.get_by_role("button", name="Take back all of Test app scribe").click()
    side.get_by_role("button", name="Really all of Test app scribe").click()
    expect(side.get_by_role("button", name="Take back “")).to_have_count(1)
    left = json.loads(host.lineup("permissions", "list", "--format", "json"))["permissions"]
    assert [(one["app_scope"], one["capability"]) for one in left] == [("clerk", "notification.show")]


def allow_always(page: Page, agent: LineAgent, scope: str, request: dict[str, object]) -> None:
    agent.result(agent.invoke(f"{scope}.results", {"json": "null"}))
    page.get_by_role("tab", name=f"Test app {scope}").click()
    expect(page.get_by_role("tab", name=f"Test app {scope}", selected=True)).to_be_visible()
    agent.result(agent.invoke(f"{scope}.ask", {"json": json.dumps(request)}))
    page.get_by_role("dialog").get_by_role("button", name="Always allow", disabled=False).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.clause("17")
def test_a_chinese_page_explains_in_chinese_what_the_kernel_decided(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, locale="zh-CN")
    agent.result(agent.invoke("runtime.status", {}))
    agent.result(agent.invoke("nobody.knows", {}))
    page.get_by_role("button", name="活动").click()
    side = page.get_by_role("complementary", name="活动")
    expect(side.get_by_role("button", name="运行状态")).to_be_visible()
    side.get_by_role("button", name="nobody.knows").click()
    side.get_by_role("listitem").filter(has_text="nobody.knows").get_by_role("button", name="原因").click()
    dialog = page.get_by_role("dialog", name="为什么会这样")
    said = dialog.get_by_role("listitem")
    expect(said.first).to_have_text("这是Agent对 nobody.knows 的调用；状态：被拒绝，原因：目前没有这个工具。")
    expect(said.nth(1)).to_contain_text("在做任何事之前被拒绝（目前没有这个工具）；由Agent触发（ToolInvoke）。")
    dialog.get_by_text("决定记录").click()
    cells = dialog.get_by_role("table").get_by_role("row").nth(1).get_by_role("cell")
    assert [bool(CHINESE.search(cell)) for cell in cells.all_inner_texts()[3:]] == [True]


@pytest.mark.clause("8")
def test_a_chinese_page_calls_the_apps_that_ship_and_what_they_do_by_chinese_names(host: WebHost, agent: LineAgent, pages: Pages) -> None:
    page = pages.open(host.url, locale="zh-CN")
    agent.invoke("task-dashboard.open", {"task_id": "t", "title": "一件事", "state": "running"})
    front = page.get_by_role("tabpanel", name="任务面板")
    expect(front.get_by_role("heading", name="任务面板")).to_be_visible()
    expect(front.locator(".app-head")).to_contain_text("进行中")
    expect(page.frame_locator("iframe[title=任务面板]").get_by_role("listitem")).to_contain_text("一件事")
    for name in ("应用", "活动"):
        page.get_by_role("button", name=name, exact=True).click()
        side = page.get_by_role("complementary", name=name)
        expect(side).to_contain_text("显示一项任务")
        expect(side).to_contain_text("任务面板")
        said = side.inner_text()
        assert [one for one in ("Task Dashboard", "Whiteboard", "Conversation", "Show a task") if one in said] == []


@pytest.mark.clause("17")
def test_what_is_gone_what_is_refused_and_what_is_unknown_is_explained_too(host: WebHost, pages: Pages) -> None:
    """The sentences are made of facts; a kind of thing that the page does not know is told in the kernel's own words."""
    page = pages.open(host.url)
    expect(page.get_by_label("Message to the Agent")).to_be_visible()
    told = page.evaluate(
        """async () => {
          const { sentencesOf } = await import("/static/parts/why.js");
          const by = { speaker: "view", command: "x.y" };
          const row = { ...by, seq: 7, cause: 5, at: "2026-01-02T03:04:05.000Z", event: "command.refused", count: 3 };
          const sentences = [{ text: "As is." }];
          const of = (kind, summary, audit = []) => sentencesOf({ what: "w", kind, state: "denied", summary, audit, sentences }, null);
          return [
            of("capability", { app_scope: "a", capability: "clipboard.write", error_code: "expired" }),
            of("call", { is_kept: false, status: "failed", error_code: "tool_failed" }),
            of("audit", { seq: 7 }, [row]),
            of("novelty", {}, [{ ...row, cause: undefined, count: undefined, event: "new.event", code: "new_code" }]),
          ].map((all) => all.map(({ text, seqs }) => [text, seqs]));
        }"""
    )
    assert told[0] == [["This is a request of a for Replace what is on the clipboard; it is not allowed, because: its time ran out.", []]]
    assert told[1] == [["This was a call; it was not allowed, because: the app reported a failure. Its body is not kept any more.", []]]
    assert told[2][0] == ["This is row 7 of the audit.", []]
    assert told[2][1][0].endswith(": something was asked that was not allowed, and nothing was changed 3 times; set off by you, x.y.")
    assert told[2][1][1] == [7, 5]
    assert told[3][0] == ["As is.", []]
    assert told[3][1][0].endswith(": new.event (refused (new_code)); set off by you, x.y.")
