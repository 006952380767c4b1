"""hosts.link against a scripted kernel."""

from __future__ import annotations

import os
import socket

import pytest
import trio

from hosts.homes import Home
from hosts.link import MAX_WAITING_EVENTS, KernelUnreachable, LinkLost, Refused, connect, hello
from kernel.protocol.host import CallCancel, Delta, InstancesList, MessageSend, Snapshot
from lineup_sdk.protocol.messages import JsonObject
from tests.hosts.scripted_kernel import ScriptedKernel, message


@pytest.mark.clause("2.6")
async def test_a_view_is_welcomed_and_gets_a_snapshot_first(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("view", label="test"))
        first = await link.events.receive()
    assert isinstance(first, Snapshot)
    assert first.state["revision"] == "epoch.1"
    assert link.welcome.conversation_id == "conv_main"
    link.close()


@pytest.mark.clause("2.5")
async def test_a_request_gets_its_own_reply(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    kernel.values["message.send"] = {"message_id": "msg_7"}
    kernel.values["instances.list"] = {"instances": [], "focus": []}
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("admin"))
        assert await link.request(MessageSend(text="hello")) == {"message_id": "msg_7"}
        assert await link.request(InstancesList()) == {"instances": [], "focus": []}
    link.close()


@pytest.mark.clause("2.5")
async def test_a_refusal_carries_code_and_detail(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    kernel.refuse["call.cancel"] = {"code": "call_not_found", "detail": {"pointer": "/call_id"}}
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("admin"))
        with pytest.raises(Refused) as refused:
            await link.request(CallCancel(call_id="call_x"))
    assert (refused.value.code, refused.value.detail) == ("call_not_found", {"pointer": "/call_id"})
    link.close()


@pytest.mark.clause("2.8")
async def test_a_wrong_pairing_secret_is_refused(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    home.pairing_file.write_text("another")
    with trio.fail_after(30), pytest.raises(Refused) as refused:
        await connect(nursery, home, hello("view"))
    assert refused.value.code == "capability_denied"


@pytest.mark.clause("2.8")
async def test_the_secret_is_not_shown_in_a_run_folder_that_others_can_open(
    home: Home, kernel: ScriptedKernel, nursery: trio.Nursery
) -> None:
    home.run_folder.chmod(0o755)
    with trio.fail_after(30), pytest.raises(KernelUnreachable) as refused:
        await connect(nursery, home, hello("view"))
    assert refused.value.code == "store_foreign"
    assert not kernel.received


@pytest.mark.clause("11.4")
async def test_a_second_agent_is_told_that_the_door_is_busy(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    with trio.fail_after(30):
        first = await connect(nursery, home, hello("agent"))
        with pytest.raises(Refused) as refused:
            await connect(nursery, home, hello("agent"))
    assert refused.value.code == "door_busy"
    first.close()


async def test_a_dead_kernel_ends_requests_and_events(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("view"))
        await link.events.receive()
        kernel.die()
        await link.wait_lost()
        assert [event async for event in link.events] == []
        with pytest.raises(LinkLost):
            await link.request(InstancesList())
    assert link.farewell is None


async def test_a_stopped_kernel_says_goodbye(home: Home, kernel: ScriptedKernel, nursery: trio.Nursery) -> None:
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("view"))
        await link.events.receive()
        kernel.stop()
        await link.wait_lost()
    assert link.farewell is not None
    assert link.farewell.code == "cancelled"


@pytest.mark.clause("2.6")
async def test_a_view_that_does_not_take_its_events_is_cut_and_holds_up_no_reply(
    home: Home, kernel: ScriptedKernel, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("view"))
        for number in range(MAX_WAITING_EVENTS // 2):
            kernel.commit({"kind": "message", "value": message(number, "x")})
        await link.request(InstancesList())  # answered although nobody reads the events
        for number in range(MAX_WAITING_EVENTS):
            kernel.commit({"kind": "message", "value": message(number, "x")})
            await trio.lowlevel.checkpoint()
        await link.wait_lost()
        taken = [event async for event in link.events]
    assert len(taken) == MAX_WAITING_EVENTS
    assert all(isinstance(event, Delta) for event in taken[1:])


@pytest.mark.clause("2.2")
@pytest.mark.parametrize(
    "frame", [{"type": "surprise"}, {"type": ["reply"]}, {"type": {}}, {"type": "reply", "id": [1], "value": {}}], ids=str
)
async def test_a_frame_of_no_known_type_or_form_ends_the_link(
    frame: JsonObject, home: Home, kernel: ScriptedKernel, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("view"))
        await kernel.wait_peers("view")
        kernel.peers[0].send(frame)
        await link.wait_lost()
    assert link.farewell is not None
    assert link.farewell.code == "protocol_violation"


async def test_no_kernel_is_unreachable_and_a_stale_socket_too(home: Home, nursery: trio.Nursery) -> None:
    with trio.fail_after(30), pytest.raises(KernelUnreachable):
        await connect(nursery, home, hello("view"))
    home.run_folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(home.run_folder / "kernel.sock"))
    with trio.fail_after(30), pytest.raises(KernelUnreachable) as refused:
        await connect(nursery, home, hello("view"))
    assert refused.value.code == "kernel_unreachable"


async def test_the_length_of_the_home_path_is_no_limit(home: Home, nursery: trio.Nursery) -> None:
    deep = Home(home.folder / ("x" * 120))
    deep.create()
    (deep.folder / "run").mkdir(mode=0o700)
    folder = os.open(deep.run_folder, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{folder}/kernel.sock")
            listener.listen()
            with trio.move_on_after(0.2) as waited:
                await connect(nursery, deep, hello("agent"))
    finally:
        os.close(folder)
    assert waited.cancelled_caught  # it was connected and waited for a welcome that this listener never sends


@pytest.mark.clause("2.1")
async def test_a_message_over_the_limit_is_refused_here_and_the_link_lives(
    home: Home, kernel: ScriptedKernel, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30):
        link = await connect(nursery, home, hello("admin"))
        with pytest.raises(Refused) as refused:
            await link.request(MessageSend(text="x" * (1024 * 1024)))
        assert refused.value.code == "limit_exceeded"
        await link.request(MessageSend(text="still there"))
    link.close()
