"""One page, by hand, on a real host and a real kernel: what it is told, what it may ask, and what it lives through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from hosts.agents.demo_words import EN, ZH
from tests.web.raw_page import RawPage, attached, changes, fetch, open_page, wait_change
from tests.web.web_host import WebHost

SECONDS = 60


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHost]:
    """For tests that leave host and kernel as they are."""
    made = WebHost(tmp_path_factory.mktemp("page") / "home")
    made.start()
    yield made
    made.close()
    assert "mistake" not in made.said()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[WebHost]:
    """For tests that end one of them."""
    made = WebHost(tmp_path / "home")
    made.start()
    yield made
    made.close()
    assert "mistake" not in made.said()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[WebHost]:
    made = WebHost(tmp_path / "home", is_demo=True)
    made.start()
    yield made
    made.close()
    assert "mistake" not in made.said()


async def wait_up(page: RawPage) -> dict[str, Any]:
    await page.wait_op("phase", phase="up")
    return await page.wait_op("snapshot")


# --- to be let in, to be told, to ask


@pytest.mark.invariant("30")
async def test_the_line_half_typed_in_a_tab_is_told_to_that_tab_alone_and_only_while_the_host_runs(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        for tab, line, before in (("one", "half", ""), ("two", "", ""), ("one", "", "half"), ("one", "again", "")):
            async with open_page(fresh.url) as page:
                await page.send(op="auth", token=fresh.token, tab=tab)
                assert (await page.wait_op("welcome"))["line"] == before
                await page.send(op="line", text=line)
                await page.op("ask", type="kernel.status")
    assert fresh.stop() == 0
    fresh.start()
    with trio.fail_after(SECONDS):
        async with open_page(fresh.url) as page:
            await page.send(op="auth", token=fresh.token, tab="one")
            assert (await page.wait_op("welcome"))["line"] == ""


@pytest.mark.clause("2.5")
@pytest.mark.parametrize("value", [r'"\ud83d"', "1e300", "9007199254740993", "[" * 20 + "]" * 20, "NaN"])
async def test_what_no_wire_admits_is_refused_under_its_own_number(host: WebHost, value: str) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.url, host.token) as page:
            await page.send_text(f'{{"op":"ask","type":"message.send","text":{value},"id":7}}')
            assert (await page.wait_op("reply", id=7))["receipt"]["code"] == "protocol_violation"


@pytest.mark.clause("2.6")
async def test_a_page_is_welcomed_gets_the_whole_and_then_every_change(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            welcome, *_, snapshot = page.heard
            assert (welcome["op"], welcome["demo"], welcome["exposed"], welcome["token"]) == ("welcome", False, False, host.token)
            assert {"calls", "instances", "messages", "apps", "focus", "interactions", "surfaces", "consents"} <= snapshot["state"].keys()
            sent = await page.ask("message.send", text="**hello** <script>")
            message = await wait_change(page, "message", message_id=sent["value"]["message_id"])
            assert message["tree"] == [["p", {}, ["strong", {}, "hello"], " <script>"]]


@pytest.mark.clause("2.5")
async def test_answers_come_in_the_order_of_the_questions_each_once(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page:
            for number in range(1, 41):
                await page.send(op="ask", id=number, type="message.send", text=str(number))
            replies = [await page.wait(lambda message: message["op"] == "reply") for _ in range(40)]
            assert sorted(reply["id"] for reply in replies) == list(range(1, 41))
            listed = (await page.ask("messages.list"))["value"]["messages"]
            assert [message["text"] for message in listed] == [str(number) for number in range(1, 41)]


async def test_what_the_kernel_refuses_comes_with_its_code_and_pointer(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            assert (await page.ask("calls.show", call_id="call_none"))["receipt"]["code"] == "call_not_found"
            assert (await page.ask("mode.request", mode="audio"))["receipt"]["code"] == "mode_unavailable"
            refused = (await page.ask("call.invoke", tool_id="whiteboard.open", input={"board_id": 5, "title": "x"}))["receipt"]
            assert (refused["code"], refused["detail"]["pointer"]) == ("tool_input_invalid", "/payload/input/board_id")


async def test_a_call_of_the_persons_own_hand_is_completed(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            call_id = (await page.ask("call.invoke", tool_id="runtime.status", input={}))["value"]["call_id"]
            await wait_change(page, "call", call_id=call_id, status="completed")


@pytest.mark.clause("2.8")
async def test_two_pages_are_two_views_and_the_first_answer_wins_and_is_named(demo: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(demo.origin, demo.token) as first, attached(demo.origin, demo.token) as second:
            asked = [await wait_change(page, "interaction", kind="choice", status="presented") for page in (first, second)]
            assert asked[0]["interaction_id"] == asked[1]["interaction_id"]
            assert asked[0]["tree"][0][0] == "p"
            answer = {"interaction_id": asked[0]["interaction_id"], "shown_digest": asked[0]["shown_digest"]}
            assert (await first.ask("interaction.answer", answer={"action_ids": ["draw"]}, **answer))["receipt"]["accepted"]
            told = await wait_change(second, "interaction", interaction_id=answer["interaction_id"], status="submitted")
            late = (await second.ask("interaction.answer", answer={"action_ids": ["tour"]}, **answer))["receipt"]
            assert late["code"] == "interaction_already_final"
            own = next(message["view_id"] for message in first.heard if message["op"] == "snapshot")
            assert told["answered_by"] == own


# --- the kernel dies, stops, cannot be started


@pytest.mark.clause("2.9")
async def test_a_killed_kernel_is_started_again_and_what_was_asked_meanwhile_is_answered(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page, attached(fresh.origin, fresh.token) as other:
            await page.ask("message.send", text="before")
            os.kill(fresh.kernel_pid(), signal.SIGKILL)
            await page.wait_op("phase", phase="connecting")
            await page.send(op="ask", id=77, type="message.send", text="meanwhile")
            snapshot = await wait_up(page)
            assert [message["text"] for message in snapshot["state"]["messages"]] == ["before"]
            assert "value" in await page.wait_op("reply", id=77)
            await wait_up(other)
            assert [message for message in page.heard if message["op"] == "phase"][-1]["restarts"] == 1


@pytest.mark.clause("2.9")
async def test_a_question_that_was_open_when_the_kernel_died_is_answered_lost(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page:
            pid = fresh.kernel_pid()
            os.kill(pid, signal.SIGSTOP)
            await page.send(op="ask", id=5, type="message.send", text="into the dark")
            await page.send(op="ask", id="not a number", type="x")
            await page.wait_op("reply", id=None)  # the one before it is on its way to the kernel by now
            os.kill(pid, signal.SIGKILL)
            assert await page.wait_op("reply", id=5) == {"op": "reply", "id": 5, "lost": True}
            await wait_up(page)


@pytest.mark.clause("2.9")
async def test_a_stopped_kernel_stays_stopped_until_the_person_wants_it(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page:
            await trio.to_thread.run_sync(fresh.lineup, "stop")
            await page.wait_op("phase", phase="ended")
            assert fresh.is_running
            await page.send(op="retry")
            await wait_up(page)


@pytest.mark.clause("2.9")
@pytest.mark.parametrize("end", ["failed", "ended"])
async def test_a_host_that_gave_up_joins_the_kernel_another_host_started(fresh: WebHost, end: str) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page:
            if end == "failed":
                for _ in range(2):
                    os.kill(fresh.kernel_pid(), signal.SIGKILL)
                    await wait_up(page)
                os.kill(fresh.kernel_pid(), signal.SIGKILL)
            else:
                await trio.to_thread.run_sync(fresh.lineup, "stop")
            await page.wait_op("phase", phase=end)
            await trio.to_thread.run_sync(fresh.lineup, "call", "runtime.status")  # starts a kernel, as any host may
            pid = fresh.kernel_pid()
            await wait_up(page)
            sent = await page.ask("message.send", text="found")
            assert sent["value"]["message_id"]
            assert fresh.kernel_pid() == pid


@pytest.mark.clause("2.9")
async def test_a_kernel_that_dies_again_and_again_is_left_alone_with_a_reason_until_the_person_tries(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page:
            for _ in range(2):
                os.kill(fresh.kernel_pid(), signal.SIGKILL)
                await wait_up(page)
            os.kill(fresh.kernel_pid(), signal.SIGKILL)
            failed = await page.wait_op("phase", phase="failed")
            assert failed["code"] == "kernel_unreachable"
            assert "kernel.log" in failed["hint"]
            await page.send(op="retry")
            await wait_up(page)


@pytest.mark.clause("12")
def test_a_kernel_that_cannot_start_at_all_is_said_by_the_command_and_nothing_is_announced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "kernel.db").write_bytes(b"of another program" * 1_000)
    command = [sys.executable, "-P", "-m", "hosts.cli", "--home", str(home), "run", "--no-open"]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout) == (4, b"")
    assert json.loads(done.stderr)["code"] == "store_foreign"


# --- the host ends, comes back, is there twice


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)])
async def test_every_page_hears_goodbye_before_the_host_ends(fresh: WebHost, number: int, code: int) -> None:
    with trio.fail_after(SECONDS):
        url, token = fresh.origin, fresh.token
        async with attached(url, token) as page, attached(url, token) as other, open_page(url) as stranger:
            ended = await trio.to_thread.run_sync(fresh.stop, number)
            assert [await one.wait_closed() for one in (page, other)] == [1001, 1001]
            assert page.heard[-1] == {"op": "bye", "code": "unavailable"}
            assert await stranger.wait_closed() == 1006
            assert stranger.heard == []
    assert ended == code
    assert "Traceback" not in fresh.said()


async def test_the_next_host_has_the_same_port_and_takes_the_same_page(fresh: WebHost) -> None:
    before = (fresh.origin, fresh.token)
    fresh.stop()
    fresh.start()
    assert (fresh.origin, fresh.token) == before
    with trio.fail_after(SECONDS):
        async with attached(*before):
            pass


@pytest.mark.clause("2.9")
async def test_a_second_run_attaches_to_the_same_kernel_on_a_port_of_its_own(fresh: WebHost) -> None:
    second = WebHost(fresh.home)
    second.start()
    try:
        assert second.port != fresh.port
        assert second.token != fresh.token
        assert second.kernel_pid() == fresh.kernel_pid()
        with trio.fail_after(SECONDS):
            async with attached(fresh.origin, fresh.token) as page, attached(second.origin, second.token) as other:
                sent = await page.ask("message.send", text="to both")
                await wait_change(other, "message", message_id=sent["value"]["message_id"])
            async with open_page(second.origin) as stranger:
                await stranger.send(op="auth", token=fresh.token)
                assert await stranger.wait_closed() == 4401
    finally:
        second.stop()


async def test_a_page_that_reads_nothing_holds_up_neither_the_others_nor_the_end(fresh: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(fresh.origin, fresh.token) as page, attached(fresh.origin, fresh.token):
            for _ in range(300):
                assert "value" in await page.ask("message.send", text="x" * 16_000)
            ended = await trio.to_thread.run_sync(fresh.stop)
            assert await page.wait_closed() == 1001
    assert ended == 0


# --- artifacts and surfaces


IMAGE = {"sec_fetch_site": "same-origin", "sec_fetch_dest": "image"}


async def draw(page: RawPage) -> str:
    """Open a board, end it, return the drawing's artifact."""
    stroke = {"color": "#112233", "width": 2, "points": [0.1, 0.1, 0.5, 0.5]}
    board = {"board_id": "b1", "title": "A board", "state": {"strokes": [stroke]}}
    opened = (await page.ask("call.invoke", tool_id="whiteboard.open", input=board))["value"]["call_id"]
    await wait_change(page, "call", call_id=opened, status="running")
    submitted = (await page.ask("call.invoke", tool_id="whiteboard.submit", input={"board_id": "b1"}))["value"]["call_id"]
    await wait_change(page, "call", call_id=submitted, status="completed")
    result = (await page.ask("calls.show", call_id=submitted))["value"]["result"]
    return str(result["artifact_id"])


@pytest.mark.clause("9.4")
async def test_an_image_is_served_once_to_an_image_of_ours_and_never_as_a_document(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            artifact_id = await draw(page)
            shown = (await page.op("artifact", artifact_id=artifact_id))["value"]
            assert shown["media_type"] == "image/svg+xml"
            status, headers, body = await trio.to_thread.run_sync(lambda: fetch(host.origin + shown["path"], **IMAGE))
            assert (status, len(body)) == (200, shown["size"])
            assert "sandbox" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert (await trio.to_thread.run_sync(lambda: fetch(host.origin + shown["path"], **IMAGE)))[0] == 410
            for wrong in ({}, IMAGE | {"sec_fetch_dest": "document"}, IMAGE | {"sec_fetch_dest": "iframe"}):
                path = (await page.op("artifact", artifact_id=artifact_id))["value"]["path"]
                assert (await trio.to_thread.run_sync(lambda: fetch(host.origin + path, **wrong)))[0] == 410  # noqa: B023
            saved = (await page.op("artifact", artifact_id=artifact_id, save_as='évil".svg'))["value"]
            status, headers, _ = await trio.to_thread.run_sync(lambda: fetch(host.origin + saved["path"], sec_fetch_site="same-origin"))
            assert headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%A9vil%22.svg"
            assert headers["content-type"] == "application/octet-stream"
            assert (await page.op("artifact", artifact_id="none"))["receipt"]["code"] == "artifact_not_found"


@pytest.mark.clause("9.1")
async def test_a_mount_of_another_page_takes_the_surface_over_and_the_first_is_told(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page, attached(host.origin, host.token) as other:
            await page.ask("app.open", app_scope="whiteboard")
            surface = await wait_change(page, "surface", app_scope="whiteboard")
            await wait_change(other, "surface", app_scope="whiteboard")
            first = (await page.op("surface.mount", surface_id=surface["surface_id"]))["value"]
            assert first["path"].startswith("/s/")
            patched = await page.op("surface.patch", mount=first["mount"], base_version=first["version"], patch={"seen": True})
            assert patched["value"]["version"] == first["version"] + 1
            second = (await other.op("surface.mount", surface_id=surface["surface_id"]))["value"]
            assert second["state"]["seen"] is True
            await page.wait_op("surface.unmounted", mount=first["mount"], reason="taken_over")
            stale = await page.op("surface.patch", mount=first["mount"], base_version=second["version"], patch={"seen": False})
            assert stale["receipt"]["code"] == "stale_mount"
            document = {"sec_fetch_site": "same-origin", "sec_fetch_dest": "iframe"}
            assert (await trio.to_thread.run_sync(lambda: fetch(host.origin + second["path"], **document)))[0] == 200
            assert (await trio.to_thread.run_sync(lambda: fetch(host.origin + second["path"], **document)))[0] == 410


# --- the demo Agent


async def test_the_demo_greets_asks_opens_the_board_and_answers_what_is_typed(demo: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(demo.origin, demo.token) as page:
            assert page.heard[0]["demo"] is True
            await wait_change(page, "message", text=EN.greeting, author="demo")
            asked = await wait_change(page, "interaction", kind="choice", status="presented")
            await page.ask("message.send", text="what are you")
            await page.wait(lambda message: any("> what are you" in one["text"] for one in changes(message, "message")))
            answer = {"interaction_id": asked["interaction_id"], "shown_digest": asked["shown_digest"]}
            await page.ask("interaction.answer", answer={"action_ids": ["tour"]}, **answer)
            board = await wait_change(page, "call", tool_id="whiteboard.open", status="running")
            await page.ask("call.cancel", call_id=board["call_id"])
            await wait_change(page, "call", tool_id="task-dashboard.update", status="completed")
            await page.wait(lambda message: any("That was the tour" in one["text"] for one in changes(message, "message")))


async def test_the_demo_speaks_the_language_it_is_told(tmp_path: Path) -> None:
    made = WebHost(tmp_path / "home", is_demo=True, options=["--language", "zh"])
    made.start()
    try:
        with trio.fail_after(SECONDS):
            async with attached(made.origin, made.token) as page:
                await wait_change(page, "message", text=ZH.greeting, author="demo")
    finally:
        made.close()
