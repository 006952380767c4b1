"""What a page does for Apps (SPEC 10): told once, by the kernel, and only the page that consented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.processes.written_app import write_app
from tests.web.raw_page import RawPage, attached, changes, fetch, wait_change
from tests.web.web_host import WebHost

pytestmark = [pytest.mark.clause("10"), pytest.mark.invariant("52")]
SOURCE = Path(__file__).parents[1] / "processes" / "apps" / "scribe.py"
CAPABILITIES = ("artifact.save", "clipboard.write", "notification.show")
COPY = {"capability": "clipboard.write", "reason": "To paste it", "arguments": {"text": "copied"}}
SECONDS = 60


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHost]:
    folder = tmp_path_factory.mktemp("providers")
    made = WebHost(folder / "home", [write_app(folder, "scribe", SOURCE.read_bytes(), ("ask", "copy", "put", "results"), CAPABILITIES)])
    made.start()
    yield made
    made.close()


async def call(page: RawPage, verb: str, given: Any = None) -> str:
    invoked = await page.ask("call.invoke", tool_id=f"scribe.{verb}", input={"json": json.dumps(given)})
    return str(invoked["value"]["call_id"])


async def result(page: RawPage, call_id: str) -> Any:
    while (shown := (await page.ask("calls.show", call_id=call_id))["value"])["status"] not in ("completed", "submitted"):
        await page.wait(lambda message: any(one["call_id"] == call_id for one in changes(message, "call")))
    return json.loads(shown["result"]["json"])


async def to_front(page: RawPage) -> None:
    await result(page, await call(page, "results"))
    listed = (await page.ask("instances.list"))["value"]["instances"]
    [instance] = [one for one in listed if one["app_scope"] == "scribe" and one["state"] not in ("stopped", "failed")]
    assert (await page.ask("focus.raise", instance_id=instance["instance_id"]))["receipt"]["accepted"]


async def consent(page: RawPage, reason: str, decision: str) -> str:
    asked = await wait_change(page, "consent", reason=reason, status="asked")
    answer = {"request_id": asked["request_id"], "decision": decision, "shown": asked["shown"]}
    assert (await page.ask("consent.answer", **answer))["receipt"]["accepted"]
    return str(asked["request_id"])


def executed(page: RawPage) -> list[dict[str, Any]]:
    return [message for message in page.heard if message["op"] == "execute"]


async def test_the_page_that_consented_acts_once_and_the_app_hears_how_it_ended(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page, attached(host.origin, host.token) as other:
            await to_front(page)
            for ok, code, ended in (
                (True, None, ("done", None)),
                (False, "not_focused", ("failed", "not_focused")),
                (False, "B A D", ("failed", "failed")),
            ):
                call_id = await call(page, "copy", COPY | {"reason": f"{ok} {code}"})
                request_id = await consent(page, f"{ok} {code}", "once")
                told = next((one for one in executed(page) if one["request_id"] == request_id), None) or await page.wait_op("execute")
                assert (told["capability"], told["arguments"], told["app_scope"]) == ("clipboard.write", {"text": "copied"}, "scribe")
                await page.send(op="provided", request_id=request_id, ok=ok, **({"code": code} if code else {}))
                await page.send(op="provided", request_id=request_id, ok=True)
                said = await result(page, call_id)
                assert (said["status"], said["reason"]) == ended
            await other.ask("kernel.status")
            assert executed(other) == []


async def test_a_refused_request_reaches_no_page(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            await to_front(page)
            call_id = await call(page, "copy", COPY | {"reason": "refuse me"})
            await consent(page, "refuse me", "deny")
            assert (await result(page, call_id))["status"] == "denied"
            assert executed(page) == []


async def test_what_was_taken_back_is_stopped_and_a_word_after_that_counts_no_more(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            await to_front(page)
            call_id = await call(page, "copy", COPY | {"reason": "take it back"})
            request_id = await consent(page, "take it back", "always")
            await page.ask("permissions.revoke", app_scope="scribe", capability="clipboard.write")
            if not any(message["op"] == "stop" for message in page.heard):
                await page.wait_op("stop", request_id=request_id)
            await page.send(op="provided", request_id=request_id, ok=True)
            assert (await result(page, call_id))["status"] == "revoked"


async def test_an_artifact_is_saved_by_a_path_that_is_good_once(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            await to_front(page)
            await result(page, await call(page, "put", {"text": "<b>kept</b>", "name": "page.html"}))
            request_id = await consent(page, "Keep it", "once")
            told = next((one for one in executed(page) if one["request_id"] == request_id), None) or await page.wait_op("execute")
            own = {"sec_fetch_site": "same-origin", "sec_fetch_dest": "document"}
            status, headers, body = await trio.to_thread.run_sync(lambda: fetch(host.origin + told["path"], **own))
            assert (status, body) == (200, b"<b>kept</b>")
            assert headers["content-disposition"] == "attachment; filename*=UTF-8''page.html"
            assert headers["content-type"] == "application/octet-stream"
            assert (await trio.to_thread.run_sync(lambda: fetch(host.origin + told["path"], **own)))[0] == 410
            await page.send(op="provided", request_id=request_id, ok=True)
