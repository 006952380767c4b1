"""Task Dashboard alone: an open call lives as long as its task, and no outcome is told before it is saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cbor2
import pytest
import trio
from jsonschema import Draft202012Validator

from lineup_sdk.protocol.limits import MAX_STATE_BYTES
from lineup_sdk.testing import FakeCall, FakeKernel, app_file

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "workers/task_dashboard/app.py"
MANIFEST = json.loads((ROOT / "manifests/task-dashboard.json").read_bytes())
MAX_TASKS = 20
OPEN = "task-dashboard.open"
UPDATE = "task-dashboard.update"


def is_valid(schema: dict, value: dict) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def dashboard(saved_state: dict | None = None) -> FakeKernel:
    return FakeKernel(app_file(ENTRY), manifest=MANIFEST, is_valid=is_valid, saved_state=saved_state)


async def open_task(kernel: FakeKernel, task_id: str, title: str = "Build", **more: str) -> FakeCall:
    call = await kernel.call(OPEN, {"task_id": task_id, "title": title, **more})
    await call.wait_progress()
    return call


async def update(kernel: FakeKernel, task_id: str, **change: object) -> dict:
    return await (await kernel.call(UPDATE, {"task_id": task_id, **change})).result()


@pytest.mark.clause("6.10")
@pytest.mark.parametrize("state", ["completed", "cancelled", "failed"])
async def test_an_open_call_stays_open_until_its_task_ends_and_says_how(state: str) -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        assert await update(kernel, "t1", progress=40) == {"task_id": "t1", "title": "Build", "state": "pending", "progress": 40}
        assert await call.wait_progress(2) == {"percent": 40, "message": "pending"}
        assert call.outcome is None
        assert await update(kernel, "t1", state=state) == {"task_id": "t1", "title": "Build", "state": state, "progress": 40}
        assert await call.result() == {"status": state}


@pytest.mark.clause("8.5")
async def test_tasks_come_back_after_a_crash_and_the_redelivered_open_goes_on() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1", state="running")
        await update(kernel, "t1", progress=70)
        await kernel.crash()
        await kernel.revive()
        assert await update(kernel, "t1") == {"task_id": "t1", "title": "Build", "state": "running", "progress": 70}
        await update(kernel, "t1", state="completed")
        assert await call.result() == {"status": "completed"}
        assert call.attempts == 1


@pytest.mark.clause("6.8")
async def test_an_open_delivered_again_for_a_task_that_ended_answers_at_once() -> None:
    ended = {"tasks": [{"task_id": "t1", "title": "Build", "state": "failed"}]}
    async with dashboard(ended) as kernel:
        call = await kernel.call(OPEN, {"task_id": "t1", "title": "Build"})
        assert await call.result() == {"status": "failed"}
        assert call.progress == []


@pytest.mark.clause("6.8")
async def test_no_outcome_is_told_before_it_is_saved() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        kernel.set_store_full(True)
        late = await kernel.call(UPDATE, {"task_id": "t1", "state": "completed"})
        await kernel.wait_until(lambda: ("state.save", "store_full") in kernel.refusals)
        await kernel.ping()
        kernel.set_store_full(False)
        assert call.outcome is None
        assert kernel.saved_state == {"tasks": [{"task_id": "t1", "title": "Build", "state": "pending"}]}
        await kernel.crash()
        await kernel.revive()
        assert await late.result() == {"task_id": "t1", "title": "Build", "state": "completed"}
        assert await call.result() == {"status": "completed"}


@pytest.mark.clause("6.7")
async def test_cancelling_an_open_call_cancels_its_task_and_saves_that_first() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        other = await open_task(kernel, "t1")
        await kernel.cancel(call)
        assert (await call.wait_outcome()).status == "cancelled"
        assert kernel.saved_state == {"tasks": [{"task_id": "t1", "title": "Build", "state": "cancelled"}]}
        await kernel.wait_until(lambda: other.outcome is not None)
        assert (await other.wait_outcome()).result == {"status": "cancelled"}


@pytest.mark.clause("6.7")
async def test_a_cancel_that_comes_after_the_task_ended_does_not_change_its_outcome() -> None:
    ended = {"tasks": [{"task_id": "t1", "title": "Build", "state": "completed"}]}
    async with dashboard(ended) as kernel:
        call = await kernel.call(OPEN, {"task_id": "t1", "title": "Build"})
        await kernel.cancel(call)
        assert await call.result() == {"status": "completed"}


@pytest.mark.clause("8.2")
@pytest.mark.clause("8.4")
async def test_a_close_that_cancels_open_calls_leaves_their_tasks_cancelled_in_the_saved_state() -> None:
    async with dashboard() as kernel:
        calls = [await open_task(kernel, "t1", state="running"), await open_task(kernel, "t2"), await open_task(kernel, "t2")]
        for call in calls:
            await kernel.end(call, "cancelled")
        await kernel.stop("close")
        assert kernel.saved_state is not None
        assert {task["task_id"]: task["state"] for task in kernel.saved_state["tasks"]} == {"t1": "cancelled", "t2": "cancelled"}
    async with dashboard(kernel.saved_state) as continued:
        assert (await update(continued, "t1"))["state"] == "cancelled"


@pytest.mark.clause("6.6")
async def test_a_call_that_expired_elsewhere_leaves_its_task_as_it_is() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1", state="running")
        await kernel.end(call, "expired")
        assert (await update(kernel, "t1"))["state"] == "running"


@pytest.mark.clause("6.5")
async def test_an_update_of_an_unknown_or_ended_task_fails_with_its_reason() -> None:
    async with dashboard() as kernel:
        unknown = await (await kernel.call(UPDATE, {"task_id": "t9", "progress": 1})).wait_outcome()
        assert (unknown.status, unknown.reason) == ("failed", "task_not_found")
        call = await open_task(kernel, "t1")
        await update(kernel, "t1", state="completed")
        await call.result()
        assert await update(kernel, "t1", state="completed") == {"task_id": "t1", "title": "Build", "state": "completed"}
        ended = await (await kernel.call(UPDATE, {"task_id": "t1", "state": "running"})).wait_outcome()
        assert (ended.status, ended.reason) == ("failed", "task_ended")


async def test_fast_updates_end_the_call_at_once_although_progress_waits_its_turn() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        for progress in range(1, 30):
            await update(kernel, "t1", progress=progress)
        with trio.fail_after(30):
            await update(kernel, "t1", state="completed")
            assert await call.result() == {"status": "completed"}
        assert call.refusals == []
        assert len(call.progress) < 30


async def test_a_second_open_of_a_running_task_renames_it_and_both_end_together() -> None:
    async with dashboard() as kernel:
        first = await open_task(kernel, "t1")
        second = await open_task(kernel, "t1", title="Build again")
        assert (await update(kernel, "t1", state="failed"))["title"] == "Build again"
        assert [await first.result(), await second.result()] == [{"status": "failed"}] * 2


@pytest.mark.clause("8.5")
async def test_the_longest_texts_of_as_many_tasks_as_fit_can_be_saved_and_one_more_is_refused() -> None:
    longest: Callable[[int], str] = lambda n: chr(0x1F600 + n) * 64  # noqa: E731
    async with dashboard() as kernel:
        for n in range(MAX_TASKS):
            await open_task(kernel, longest(n), title="\U0001f600" * 80, description="\U0001f600" * 200)
            await update(kernel, longest(n), progress=0.123456789, state="running")
        assert len(cbor2.dumps(kernel.saved_state)) <= MAX_STATE_BYTES
        refused = await (await kernel.call(OPEN, {"task_id": "more", "title": "x"})).wait_outcome()
        assert refused.reason == "too_many_tasks"
        await update(kernel, longest(7), state="completed")
        await kernel.wait_until(lambda: len(kernel.open_calls) == MAX_TASKS - 1)
        await kernel.ping()
        await open_task(kernel, "more")
        assert kernel.saved_state is not None
        assert [t["task_id"] for t in kernel.saved_state["tasks"]].count(longest(7)) == 0


@pytest.mark.clause("9.1")
async def test_the_surface_shows_the_tasks_as_they_are_saved() -> None:
    async with dashboard() as kernel:
        await open_task(kernel, "t1", state="running")
        await update(kernel, "t1", progress=40)
        await open_task(kernel, "t2", title="Test")
        assert kernel.surface.state == {
            "tasks": {
                "t1": {"task_id": "t1", "title": "Build", "state": "running", "progress": 40, "order": 0},
                "t2": {"task_id": "t2", "title": "Test", "state": "pending", "order": 1},
            }
        }
        await kernel.patch_surface({"tasks": {"t1": {"progress": 99, "more": "x"}, "t3": {"title": "not a task"}}})
        await update(kernel, "t2", state="running")
        shown = kernel.surface.state["tasks"]
        assert shown.keys() == {"t1", "t2"}
        assert shown["t1"] == {"task_id": "t1", "title": "Build", "state": "running", "progress": 40, "order": 0}
        await kernel.crash()
        await kernel.patch_surface({"tasks": None})
        await kernel.revive()
        assert kernel.surface.state["tasks"].keys() == {"t1", "t2"}


@pytest.mark.clause("9.1")
async def test_the_person_cancels_a_task_in_the_surface_and_its_open_call_ends() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        for task_id in ("t1", "t1", "unknown"):
            await (await kernel.surface_event("cancel", {"task_id": task_id})).wait_acknowledged()
        assert await call.result() == {"status": "cancelled"}
        assert kernel.surface.state["tasks"]["t1"]["state"] == "cancelled"


@pytest.mark.clause("9.1")
async def test_a_surface_that_cannot_be_changed_holds_up_no_task_and_is_put_right_later() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        kernel.surface.is_open = False
        await update(kernel, "t1", state="running")
        assert kernel.surface.state["tasks"]["t1"]["state"] == "pending"
        kernel.surface.is_open = True
        await update(kernel, "t1", state="completed")
        assert await call.result() == {"status": "completed"}
        await kernel.wait_until(lambda: kernel.surface.state["tasks"]["t1"]["state"] == "completed")


@pytest.mark.clause("9.1")
async def test_a_description_is_taken_changed_and_kept_when_a_task_is_named_again() -> None:
    async with dashboard() as kernel:
        await open_task(kernel, "t1", description="Compile all")
        assert kernel.surface.state["tasks"]["t1"]["description"] == "Compile all"
        assert (await update(kernel, "t1", description="Link all"))["description"] == "Link all"
        await open_task(kernel, "t1", title="Build again")
        await kernel.wait_until(lambda: kernel.surface.state["tasks"]["t1"]["title"] == "Build again")
        assert kernel.surface.state["tasks"]["t1"]["description"] == "Link all"


@pytest.mark.clause("9.1")
async def test_the_person_puts_an_ended_task_away_and_not_one_that_runs() -> None:
    async with dashboard() as kernel:
        call = await open_task(kernel, "t1")
        await (await kernel.surface_event("remove", {"task_id": "t1"})).wait_acknowledged()
        assert kernel.surface.state["tasks"].keys() == {"t1"}
        await update(kernel, "t1", state="completed")
        await call.result()
        await kernel.ping()
        for task_id in ("t1", "t1", "unknown"):
            await (await kernel.surface_event("remove", {"task_id": task_id})).wait_acknowledged()
        assert kernel.surface.state["tasks"] == {}
        assert kernel.saved_state == {"tasks": []}
