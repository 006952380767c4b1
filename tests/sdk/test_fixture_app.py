"""The fixture app does what its tools promise, so that tests of the kernel may rely on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from lineup_sdk.testing import FakeKernel, app_file

FOLDER = Path(__file__).parents[1] / "fixtures/apps/fixture"
MANIFEST = json.loads((FOLDER / "manifest.json").read_bytes())


def is_valid(schema: dict, value: dict) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def fixture_app() -> FakeKernel:
    return FakeKernel(app_file(FOLDER / "app.py"), manifest=MANIFEST, is_valid=is_valid)


@pytest.mark.parametrize(
    ("tool", "given", "result"),
    [
        ("echo", {"text": "x"}, {"text": "x"}),
        ("operate", {"text": "x"}, {"text": "x"}),
        ("show", {"text": "x"}, {"text": "x", "state": "starting"}),
        ("crash", {"times": 0}, {"attempts": 0}),
        ("bad_output", {"mend": True}, {"text": "tool_output_invalid"}),
        ("remember", {"value": "v"}, {}),
        ("notes", {}, {"notes": []}),
        ("report", {"percents": [1, 50.5]}, {"count": 2}),
        ("report_fast", {"count": 6}, {"codes": ["limit_exceeded"] * 2}),
        ("ask", {"what": "foreground"}, {"accepted": True}),
        ("ask", {"what": "close"}, {"accepted": False, "code": "lifecycle_denied"}),
        ("meddle", {"call_id": "call_of_another", "how": "get"}, {"accepted": False, "code": "call_not_found"}),
        ("meddle", {"call_id": "call_of_another", "how": "complete"}, {"accepted": False, "code": "call_not_found"}),
        ("print", {"text": "x"}, {}),
    ],
)
async def test_a_tool_gives_its_result(tool: str, given: dict, result: dict, capsys: pytest.CaptureFixture[str]) -> None:
    async with fixture_app() as kernel:
        assert await (await kernel.call(f"fixture.{tool}", given)).result() == result


@pytest.mark.parametrize(
    ("tool", "given", "reason"),
    [
        ("fail", {"reason": "no_luck", "message": "Not today."}, "no_luck"),
        ("raise", {"text": "x"}, "handler_error"),
        ("bad_output", {"mend": False}, "output_invalid"),
    ],
)
async def test_a_tool_fails_with_its_reason(tool: str, given: dict, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with fixture_app() as kernel:
        outcome = await (await kernel.call(f"fixture.{tool}", given)).wait_outcome()
    assert (outcome.status, outcome.reason) == ("failed", reason)


@pytest.mark.parametrize("tool", ["open", "slow", "once"])
async def test_a_waiting_tool_goes_on_when_its_key_is_released(tool: str) -> None:
    async with fixture_app() as kernel:
        call = await kernel.call(f"fixture.{tool}", {"key": "k"})
        await call.wait_running()
        await (await kernel.deliver("fixture.go", {"key": "other"})).wait_acknowledged()
        await kernel.ping()
        assert call.outcome is None
        await kernel.deliver("fixture.go", {"key": "k"})
        assert await call.result() == {"key": "k", "attempts": 0}


@pytest.mark.parametrize("tool", ["slow", "once"])
async def test_a_crash_redelivers_the_safe_tool_and_interrupts_the_other(tool: str) -> None:
    async with fixture_app() as kernel:
        call = await kernel.call(f"fixture.{tool}", {"key": "k"})
        await (call.wait_progress() if tool == "once" else call.wait_running())
        await kernel.crash()
        await kernel.revive()
        await kernel.deliver("fixture.go", {"key": "k"})
        outcome = await call.wait_outcome()
    expected = ("failed", "interrupted") if tool == "once" else ("submitted", None)
    assert (outcome.status, outcome.code) == expected


@pytest.mark.parametrize("acknowledge", [True, False])
async def test_ignore_cancel_goes_on_after_the_request(acknowledge: bool) -> None:
    async with fixture_app() as kernel:
        call = await kernel.call("fixture.ignore_cancel", {"key": "k", "acknowledge": acknowledge})
        await call.wait_running()
        await kernel.cancel(call)
        if acknowledge:
            await call.wait_cancel_seen()
        await kernel.ping()
        assert (call.outcome, call.is_cancel_seen) == (None, acknowledge)
        await kernel.deliver("fixture.go", {"key": "k"})
        assert await call.result() == {"key": "k", "attempts": 0}


async def test_notes_are_kept_with_their_delivery_count() -> None:
    async with fixture_app() as kernel:
        await (await kernel.deliver("fixture.note", {"text": "n"})).wait_acknowledged()
        notes = await (await kernel.call("fixture.notes", {})).result()
        await kernel.stop("close")
        assert kernel.log == [("log", "info: stopping: close\n")]
    assert notes == {"notes": [{"text": "n", "delivery_count": 1}]}
