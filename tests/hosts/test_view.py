"""hosts.mirror, hosts.view and hosts.headless against scripted kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio

from hosts.headless import Headless, open_headless
from hosts.homes import Home
from hosts.launch import Launcher
from hosts.link import LinkLost, Refused
from hosts.mirror import MAX_ENDED_CALLS, MAX_ENDED_INTERACTIONS, Mirror, OutOfStep, apply, from_snapshot
from kernel.protocol.host import Delta, Snapshot
from tests.hosts.scripted_kernel import ScriptedKernel, call, consent, empty_state, instance, message, question, surface


def _mirror() -> Mirror:
    return from_snapshot(Snapshot(seq=4, state=empty_state()))


@pytest.mark.clause("2.6")
def test_a_delta_replaces_the_entry_of_the_same_number() -> None:
    mirror = _mirror()
    apply(mirror, Delta(seq=5, changes=[{"kind": "call", "value": call(1)}, {"kind": "instance", "value": instance()}]))
    apply(mirror, Delta(seq=6, changes=[{"kind": "call", "value": call(1, "completed")}, {"kind": "focus", "value": ["inst_1"]}]))
    assert mirror.call("call_1") == call(1, "completed")
    assert mirror.open_calls() == []
    assert mirror.front() == instance()


@pytest.mark.clause("2.6")
@pytest.mark.parametrize("seq", [4, 6])
def test_a_missing_or_repeated_delta_is_out_of_step_and_changes_nothing(seq: int) -> None:
    mirror = _mirror()
    with pytest.raises(OutOfStep):
        apply(mirror, Delta(seq=seq, changes=[{"kind": "call", "value": call(1)}]))
    assert (mirror.seq, mirror.calls) == (4, {})


@pytest.mark.clause("2.6")
def test_questions_surfaces_and_consents_are_kept_as_long_as_they_are_there() -> None:
    mirror = _mirror()
    changes = [
        {"kind": "interaction", "value": question()},
        {"kind": "surface", "value": surface()},
        {"kind": "consent", "value": consent()},
    ]
    apply(mirror, Delta(seq=5, changes=changes))
    assert [one["number"] for one in mirror.waiting_questions()] == [20]
    assert mirror.waiting_consents() == [consent()]
    assert mirror.surface_of("task-dashboard") == surface()
    ended = [{"kind": "surface", "value": surface(is_open=False)}, {"kind": "consent", "value": consent(status="denied")}]
    many = [{"kind": "interaction", "value": question(number, status="completed")} for number in range(20, 21 + MAX_ENDED_INTERACTIONS)]
    apply(mirror, Delta(seq=6, changes=[*ended, *many]))
    assert (mirror.surfaces, mirror.consents, mirror.waiting_questions()) == ({}, {}, [])
    assert len(mirror.interactions) == MAX_ENDED_INTERACTIONS


@pytest.mark.clause("2.6")
def test_a_kind_of_a_newer_kernel_is_left_out_and_a_known_one_of_another_form_is_out_of_step() -> None:
    mirror = _mirror()
    apply(mirror, Delta(seq=5, changes=[{"kind": "weather", "value": 5}, {"kind": "revision", "value": "epoch.2"}]))
    assert mirror.revision == "epoch.2"
    bad: list[tuple[str, object]] = [("call", {}), ("surface", []), ("focus", {}), ("revision", 5)]
    for kind, value in bad:
        with pytest.raises(OutOfStep):
            apply(mirror, Delta(seq=mirror.seq + 1, changes=[{"kind": kind, "value": value}]))


def test_ended_calls_leave_the_window_and_open_ones_never() -> None:
    mirror = _mirror()
    apply(mirror, Delta(seq=5, changes=[{"kind": "call", "value": call(0)}]))
    ended = [{"kind": "call", "value": call(number, "failed")} for number in range(1, MAX_ENDED_CALLS + 50)]
    apply(mirror, Delta(seq=6, changes=ended))
    assert len(mirror.ended_calls()) == MAX_ENDED_CALLS
    assert mirror.open_calls() == [call(0)]


@pytest.mark.clause("11.5")
async def test_headless_sends_text_and_sees_what_the_kernel_says(home: Home, kernel: ScriptedKernel) -> None:
    kernel.values["message.send"] = {"message_id": "msg_9"}
    with trio.fail_after(30):
        async with open_headless(Launcher(home)) as host:
            assert await host.send_text("hello") == "msg_9"
            assert (await kernel.wait_received("message.send"))["text"] == "hello"
            kernel.commit({"kind": "message", "value": message(1, "hello", "person")})
            await host.wait_until(lambda mirror: mirror.timeline() or None)
            kernel.commit({"kind": "call", "value": call(2)})
            kernel.commit({"kind": "call", "value": call(2, "expired")})
            assert (await host.wait_call("call_2"))["status"] == "expired"


async def test_headless_passes_refusals_on(home: Home, kernel: ScriptedKernel) -> None:
    kernel.refuse["app.close"] = {"code": "lifecycle_denied"}
    with trio.fail_after(30):
        async with open_headless(Launcher(home)) as host:
            with pytest.raises(Refused) as refused:
                await host.close_app("inst_1")
    assert refused.value.code == "lifecycle_denied"


@pytest.mark.clause("2.9")
async def test_a_view_comes_back_after_a_kernel_death_with_a_new_snapshot(
    home: Home, kernel: ScriptedKernel, launcher_of: Callable[[str], Launcher], nursery: trio.Nursery
) -> None:
    with trio.fail_after(30):
        async with open_headless(launcher_of("locked")) as host:  # whoever starts first, the second kernel below holds the lock
            kernel.die()
            second = ScriptedKernel(home.folder)
            second.state["revision"] = "epoch.2"
            await nursery.start(second.serve)
            await host.wait_until(lambda mirror: mirror.revision == "epoch.2" or None)
            assert host.restarts == 1


@pytest.mark.clause("2.6")
async def test_a_view_out_of_step_asks_for_a_new_snapshot(home: Home, kernel: ScriptedKernel) -> None:
    with trio.fail_after(30):
        async with open_headless(Launcher(home)) as host:
            kernel.state["revision"] = "epoch.3"
            kernel.peers[0].seq += 1  # one delta is lost
            kernel.commit({"kind": "call", "value": call(1)})
            await host.wait_until(lambda mirror: mirror.revision == "epoch.3" or None)
            assert host.mirror.call("call_1") is not None


@pytest.mark.clause("2.9")
async def test_a_view_of_a_kernel_that_was_stopped_ends_and_starts_nothing(home: Home, kernel: ScriptedKernel) -> None:
    async def watch(host: Headless) -> None:
        with pytest.raises(LinkLost):
            await host.wait_call("call_1")

    with trio.fail_after(30):
        async with open_headless(Launcher(home)) as host, trio.open_nursery() as watching:
            watching.start_soon(watch, host)
            kernel.stop()
            await host.wait_ended()
            with pytest.raises(LinkLost):
                await host.calls()
    assert not home.log_file.exists()
