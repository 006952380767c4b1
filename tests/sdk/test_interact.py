"""Interact alone: it projects what it is told, and keeps of it only what the person read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lineup_sdk.testing import FakeKernel, app_file

ROOT = Path(__file__).parents[2]
ENTRY = ROOT / "workers/interact/app.py"
MANIFEST = json.loads((ROOT / "manifests/chat.json").read_bytes())
TEXT, TASK = "lineup.v1.message.text", "lineup.v1.task.update"


def interact(saved_state: dict | None = None) -> FakeKernel:
    return FakeKernel(app_file(ENTRY), manifest=MANIFEST, context={"mode": "im"}, saved_state=saved_state)


def entry(number: int, direction: str = "in", **more: Any) -> dict:
    facts = {"number": number, "message_id": f"m{number}", "direction": direction, "type": TEXT, "text": "hello", "folded": False}
    return {"kind": "message", "value": facts | more}


def task(number: int, task_id: str) -> dict:
    return entry(number, type=TASK, task={"task_id": task_id, "title": "Build", "state": "running"})


def ended(number: int, status: str) -> dict:
    return {"kind": "call", "value": {"number": number, "call_id": f"c{number}", "status": status}}


async def shown(kernel: FakeKernel, **members: object) -> None:
    """Wait until the surface shows these."""
    await kernel.wait_until(lambda: members.items() <= kernel.surface.state.items())


@pytest.mark.clause("3")
async def test_what_came_while_it_was_not_in_front_is_unread_until_it_is_and_that_is_kept() -> None:
    async with interact() as kernel:
        await kernel.set_state("background")
        await kernel.tell_timeline(entry(1), entry(2, "out"), entry(3))
        await shown(kernel, mode="im", unread=2)
        await kernel.tell_timeline(entry(3))  # the same again: nothing new
        await kernel.set_state("foreground")
        await shown(kernel, unread=0)
        assert kernel.saved_state == {"read": 3}
        await kernel.tell_timeline(entry(4))
        await kernel.wait_until(lambda: kernel.saved_state == {"read": 4})
        await kernel.crash()
        await kernel.revive()
        await kernel.set_state("background")
        await kernel.tell_timeline(*(entry(number) for number in range(1, 7)))  # the window, and two more
        await shown(kernel, unread=2)


@pytest.mark.clause("9.3")
async def test_of_the_cards_of_one_task_only_the_newest_stands_whole() -> None:
    async with interact() as kernel:
        await kernel.tell_timeline(task(1, "a"), task(2, "b"), task(3, "a"))
        await kernel.wait_until(lambda: kernel.folded == {1: True})
        await kernel.tell_timeline(task(1, "a"), task(4, "a"))  # the fold of the first comes back as a change
        await kernel.wait_until(lambda: kernel.folded == {1: True, 3: True})


@pytest.mark.clause("9.1")
async def test_what_a_view_spoils_is_no_summary_and_no_mode_and_ends_no_process() -> None:
    async with interact() as kernel:
        for wanted in ([], {}, 7):
            await (await kernel.surface_event("mode", {"mode": wanted})).wait_acknowledged()
        good = {"number": 6, "text": "1 call: 1 failed"}
        for spoiled in ({}, "x", [{"number": [], "text": "x"}, 7, {"number": 1}, good]):
            await kernel.patch_surface({"summaries": spoiled})
            await kernel.crash()
            await kernel.revive()
            await kernel.tell_timeline(entry(1))
            await shown(kernel, summaries=[good] if isinstance(spoiled, list) else [])


@pytest.mark.clause("7.2")
async def test_what_calls_did_is_summed_up_beside_the_agents_next_text() -> None:
    async with interact() as kernel:
        await kernel.tell_timeline(ended(1, "completed"), ended(2, "failed"), ended(1, "completed"), ended(3, "completed"))
        await kernel.tell_timeline(entry(4, "out"), task(5, "a"))
        await kernel.tell_timeline(entry(6), entry(7))
        await shown(kernel, summaries=[{"number": 6, "text": "3 calls: 2 completed, 1 failed"}])
        await kernel.crash()
        await kernel.revive()
        await kernel.tell_timeline(entry(6), entry(7), ended(8, "expired"), entry(9))
        await kernel.wait_until(lambda: len(kernel.surface.state["summaries"]) == 2)
        assert kernel.surface.state["summaries"][1] == {"number": 9, "text": "1 call: 1 expired"}


@pytest.mark.clause("11.5")
async def test_text_of_its_surface_is_sent_with_the_key_of_the_act_and_a_mode_is_asked_for() -> None:
    async with interact() as kernel:
        await kernel.surface_event("send", {"text": "hello", "key": "k1"})
        await kernel.wait_until(lambda: kernel.sent_texts == ["hello"])
        await kernel.surface_event("mode", {"mode": "video"})
        await shown(kernel, refused="mode_unavailable")
        await kernel.surface_event("mode", {"mode": "im"})
        await shown(kernel, refused="")
        for junk in ({}, {"text": 7, "key": "k"}, {"text": "no key"}):
            await kernel.surface_event("send", junk)
        await kernel.surface_event("send", {"text": "x" * 16_385, "key": "k2"})
        await shown(kernel, refused="limit_exceeded")
        assert kernel.sent_texts == ["hello"]
