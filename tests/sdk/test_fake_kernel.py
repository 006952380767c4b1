"""FakeKernel refuses what the kernel refuses, keeps what the kernel keeps, and never lets a broken app pass a test."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from lineup_sdk import MiniApp, ToolCall
from lineup_sdk.app import InboxMessage
from lineup_sdk.errors import Refused
from lineup_sdk.protocol.framing import ProtocolViolation
from lineup_sdk.protocol.messages import InboxAcknowledge, ToolComplete, ToolFail, ToolProgress, ToolsGet, UiRequest
from lineup_sdk.testing import AppEnded, CallNotCompleted, FakeKernel, ManifestMismatch, app_file
from lineup_sdk.testing.questions import FakeQuestions
from lineup_sdk.testing.records import Changes, FakeCall
from lineup_sdk.testing.rules import Desk

SOURCE = """
from lineup_sdk import MiniApp

app = MiniApp()
lives = []

@app.on_start
async def start():
    lives.append(1)

@app.tool("a.lives")
async def lives_(call):
    return {"lives": len(lives), "attempts": call.attempts}

@app.tool("a.wait")
async def wait(call):
    await call.progress(percent=1)
    if call.attempts == 0:
        import trio
        await trio.sleep_forever()
    return {"attempts": call.attempts}

@app.on_message("t")
async def handle(message):
    if message.delivery_count == 1:
        import trio
        await trio.sleep_forever()
"""


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(SOURCE)
    return path


def manifest(*, idempotent: bool) -> dict:
    schema = {"type": "object", "additionalProperties": False}
    tools = [{"id": i, "input_schema": schema, "output_schema": schema, "hints": {"idempotent": idempotent}} for i in ("a.lives", "a.wait")]
    return {"app_scope": "a", "version": "1.2.3", "tools": tools, "subscriptions": [{"topic": "t"}]}


@pytest.mark.clause("6.8")
async def test_after_a_crash_variables_are_gone_and_open_calls_and_messages_come_again(entry: Path) -> None:
    async with FakeKernel(app_file(entry)) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_progress()
        message = await kernel.deliver("t", {})
        await kernel.ping()
        await kernel.crash()
        assert (call.status, call.attempts, message.is_acknowledged) == ("waiting_for_app", 1, False)
        late = await kernel.call("a.lives", {})
        await kernel.revive()
        assert await call.result() == {"attempts": 1}
        assert await late.result() == {"lives": 1, "attempts": 0}
        await message.wait_acknowledged()
        assert message.delivery_count == 2


@pytest.mark.clause("6.8")
@pytest.mark.parametrize(("idempotent", "code"), [(True, None), (False, "interrupted")])
async def test_a_crash_interrupts_a_call_that_reported_progress_and_may_not_run_twice(
    entry: Path, idempotent: bool, code: str | None
) -> None:
    async with FakeKernel(app_file(entry), manifest=manifest(idempotent=idempotent)) as kernel:
        call = await kernel.call("a.wait", {})
        await call.wait_progress()
        await kernel.crash()
        await kernel.revive()
        outcome = await call.wait_outcome()
    assert outcome.code == code


@pytest.mark.clause("6.8")
async def test_a_suspend_is_no_attempt(entry: Path) -> None:
    async with FakeKernel(app_file(entry)) as kernel:
        await (await kernel.call("a.lives", {})).result()
        call = await kernel.call("a.wait", {})
        await call.wait_progress()
        await kernel.stop("suspend")
        await kernel.revive()
        await call.wait_progress(2)
        assert call.attempts == 0


async def test_an_app_given_as_an_object_is_not_revived() -> None:
    async with FakeKernel(MiniApp()) as kernel:
        await kernel.crash()
        with pytest.raises(RuntimeError, match="app_file"):
            await kernel.revive()


async def test_modules_beside_the_entry_file_are_loaded_afresh_and_leave_nothing(tmp_path: Path) -> None:
    import sys

    (tmp_path / "part_of_app.py").write_text("lives = []\n")
    (tmp_path / "app.py").write_text(SOURCE.replace("lives = []", "from part_of_app import lives"))
    async with FakeKernel(app_file(tmp_path / "app.py")) as kernel:
        await kernel.crash()
        await kernel.revive()
        assert await (await kernel.call("a.lives", {})).result() == {"lives": 1, "attempts": 0}
    assert "part_of_app" not in sys.modules
    assert str(tmp_path) not in sys.path


async def test_an_entry_file_without_an_app_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("application = 1\n")
    with pytest.raises(LookupError, match="app"):
        await FakeKernel(app_file(tmp_path / "app.py")).__aenter__()


# --- the Manifest


async def test_handlers_and_manifest_must_agree(entry: Path) -> None:
    lacking = manifest(idempotent=True)
    lacking["tools"].pop()
    with pytest.raises(ManifestMismatch, match=r"a\.wait"):
        await FakeKernel(app_file(entry), manifest=lacking).__aenter__()
    deaf = {**manifest(idempotent=True), "subscriptions": []}
    with pytest.raises(ManifestMismatch, match="subscribe"):
        await FakeKernel(app_file(entry), manifest=deaf).__aenter__()


async def test_a_test_cannot_ask_for_what_the_manifest_does_not_declare(entry: Path) -> None:
    async with FakeKernel(app_file(entry), manifest=manifest(idempotent=True), is_valid=lambda schema, value: not value) as kernel:
        assert (kernel.app.context.app_scope, kernel.app.context.app_version) == ("a", "1.2.3")
        with pytest.raises(ManifestMismatch, match="declares no tool"):
            await kernel.call("a.unknown", {})
        with pytest.raises(ManifestMismatch, match="input_schema"):
            await kernel.call("a.lives", {"x": 1})
        with pytest.raises(ManifestMismatch, match="subscribe"):
            await kernel.deliver("other", {})
        await kernel.call("a.lives", {}, call_id="call_1")
        with pytest.raises(ValueError, match="used before"):
            await kernel.call("a.lives", {}, call_id="call_1")


# --- a broken app fails the test


async def test_an_app_that_breaks_the_wire_fails_the_test() -> None:
    app = MiniApp()

    @app.tool("a.break")
    async def break_(call: ToolCall) -> dict:
        app._requests._channel.send({"type": "tool.explode"})
        return {}

    async def run() -> None:
        async with FakeKernel(app) as kernel:
            await kernel.call("a.break", {})
            with trio.fail_after(30), pytest.raises(AppEnded):
                await kernel.wait_until(lambda: False)

    with pytest.raises(ProtocolViolation, match="type"):
        await run()


@pytest.mark.clause("2.3")
async def test_an_identity_key_and_an_ungranted_type_are_refused_capability_denied() -> None:
    app = MiniApp()
    replies = []

    @app.tool("a.forge")
    async def forge(call: ToolCall) -> dict:
        await app.state.load()
        return {}

    async with FakeKernel(app) as kernel:
        life = kernel._require_life()
        life._send_receipt = lambda request_id, refused: replies.append((request_id, refused.code))
        life._take({"type": "tool.complete", "id": 7, "call_id": "c", "result": {}, "app_scope": "other"})
        life._take({"type": "ui.get", "id": 8, "interaction_id": "int_7"})
    assert replies == [(7, "capability_denied"), (8, "capability_denied")]


@pytest.mark.clause("2.2")
@pytest.mark.parametrize("strange", [["tool.complete"], {}, 7, None], ids=str)
async def test_what_is_no_text_where_a_name_is_expected_is_refused_and_no_fault_of_the_fake(strange: object) -> None:
    async with FakeKernel(MiniApp()) as kernel:
        with pytest.raises(ProtocolViolation, match="type"):
            kernel._require_life()._take({"type": strange, "id": 7})
    questions = FakeQuestions(is_allowed=True)
    with pytest.raises(Refused) as refused:
        questions.open(UiRequest(request={"kind": strange}))
    assert refused.value.code == "tool_input_invalid"


async def test_waiting_for_an_app_that_ended_raises_instead_of_hanging() -> None:
    app = MiniApp()

    @app.tool("a.exit")
    async def exit_(call: ToolCall) -> dict:
        raise SystemExit(3)

    @app.on_start
    async def start() -> None:
        raise ZeroDivisionError

    with pytest.raises(AppEnded):
        await FakeKernel(app).__aenter__()


async def test_asking_for_the_result_of_a_failed_call_says_how_it_ended() -> None:
    async with FakeKernel(MiniApp()) as kernel:
        call = await kernel.call("a.unknown", {})
        with pytest.raises(CallNotCompleted, match="no_handler") as caught:
            await call.result()
    assert caught.value.outcome.code == "tool_failed"


# --- the rules, one by one


def desk_with_call(status: str) -> tuple[Desk, FakeCall]:
    desk = Desk(changes=Changes())
    call = FakeCall(call_id="c", tool_id="a.t", input={}, time_left_ms=None, changes=desk.changes, status=status, is_delivered=True)
    desk.calls["c"] = call
    return desk, call


@pytest.mark.clause("6.5")
async def test_the_rules_refuse_what_the_kernel_refuses() -> None:
    desk, call = desk_with_call("waiting_for_app")
    for message, code in (
        (ToolComplete(call_id="other", result={}), "call_not_found"),
        (ToolsGet(call_id="other"), "call_not_found"),
        (ToolComplete(call_id="c", result={}), "lifecycle_denied"),
        (ToolProgress(call_id="c", percent=1), "lifecycle_denied"),
    ):
        with pytest.raises(Refused, match=code):
            desk.answer(message)
    call.status = "running"
    with pytest.raises(Refused, match="tool_output_invalid"):
        desk.answer(ToolProgress(call_id="c", percent=100.5))
    for _ in range(4):
        desk.answer(ToolProgress(call_id="c", percent=1))
    with pytest.raises(Refused, match="limit_exceeded"):
        desk.answer(ToolProgress(call_id="c", percent=1))
    desk.answer(ToolFail(call_id="c", reason="x"))
    first = call.outcome
    with pytest.raises(Refused, match="call_already_final"):
        desk.answer(ToolComplete(call_id="c", result={}))
    assert call.outcome is first
    desk.is_store_full = True
    with pytest.raises(Refused, match="store_full"):
        desk.answer(InboxAcknowledge(message_id="m"))


async def test_foreground_can_be_refused() -> None:
    app = MiniApp()

    @app.on_message("t")
    async def handle(message: InboxMessage) -> None:
        with pytest.raises(Refused, match="lifecycle_denied"):
            await app.lifecycle.request_foreground()

    async with FakeKernel(app) as kernel:
        kernel.refuse_foreground()
        await (await kernel.deliver("t", {})).wait_acknowledged()
        assert kernel.lifecycle_requests == []
