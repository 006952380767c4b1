"""The life of a real kernel as hosts see it: started, shared, killed, stopped; and the console on a real terminal."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from hosts.headless import open_headless
from hosts.homes import Home
from hosts.launch import Launcher
from hosts.link import hello
from kernel.protocol.host import CallInvoke, CallsShow, KernelStop
from tests.hosts import lineup
from tests.hosts.screen import SECONDS, Screen, environ


@pytest.fixture
async def launcher(home: Home) -> AsyncIterator[Launcher]:
    made = Launcher(home)
    yield made
    await made.end_started()


def _kernel_pid(launcher: Launcher) -> int:
    launcher.reap()
    [pid] = launcher._pids
    return pid


@pytest.mark.clause("2.9")
async def test_a_view_and_its_calls_survive_kill_9_of_the_kernel(launcher: Launcher) -> None:
    with trio.fail_after(SECONDS):
        async with open_headless(launcher) as host, trio.open_nursery() as nursery:
            admin = await launcher.attach(nursery, hello("admin"))
            invoke = CallInvoke(tool_id="task-dashboard.open", input={"task_id": "t1", "title": "A task"}, call_id="call_1")
            await admin.request(invoke)
            await host.wait_call("call_1", "running")
            before = host.restarts
            os.kill(_kernel_pid(launcher), signal.SIGKILL)
            await host.wait_until(lambda mirror: host.restarts > before or None)
            await host.wait_call("call_1", "running")
            await host.cancel("call_1")
            assert (await host.wait_call("call_1"))["status"] == "cancelled"
            await host.stop_kernel()
            await host.wait_ended()
            await launcher.wait_gone()


@pytest.mark.clause("2.9")
async def test_two_views_see_the_same_and_text_reaches_the_conversation(launcher: Launcher) -> None:
    with trio.fail_after(SECONDS):
        async with open_headless(launcher) as one, open_headless(Launcher(launcher.home)) as two:
            message_id = await one.send_text("hello")
            found = await two.wait_until(lambda mirror: next((m for m in mirror.timeline() if m["message_id"] == message_id), None))
            assert (found["text"], found["author"], found["state"]) == ("hello", "person", "pending")
            await one.stop_kernel()
            await two.wait_ended()
        await launcher.wait_gone()


@pytest.mark.clause("2.9")
async def test_a_kernel_that_somebody_stopped_is_not_started_again_by_the_views_on_it(launcher: Launcher) -> None:
    with trio.fail_after(SECONDS):
        async with open_headless(launcher) as host, trio.open_nursery() as nursery:
            admin = await launcher.attach(nursery, hello("admin"))
            await admin.request(KernelStop())
            await host.wait_ended()
            await launcher.wait_gone()
            assert host.restarts == 0


@pytest.mark.clause("6.4")
async def test_the_same_call_id_after_a_restart_is_answered_and_not_run_again(launcher: Launcher) -> None:
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            invoke = CallInvoke(tool_id="runtime.status", input={}, call_id="call_1")
            results = []
            for _ in range(2):
                admin = await launcher.attach(nursery, hello("admin"))
                await admin.request(invoke)
                event = await admin.events.receive()
                results.append(event)
                os.kill(_kernel_pid(launcher), signal.SIGKILL)
                await admin.wait_lost()
            assert results[0] == results[1]
            admin = await launcher.attach(nursery, hello("admin"))
            assert (await admin.request(CallsShow(call_id="call_1")))["attempts"] == 0
            await admin.request(KernelStop())
            await admin.wait_lost()
            await launcher.wait_gone()


@pytest.fixture
def screen(home: Home) -> Iterator[Screen]:
    opened = Screen(home, 80, 24)
    yield opened
    opened.close()
    done = lineup.run(["stop"], env=environ(home), timeout=SECONDS)
    assert done.returncode in (0, 4), done


@pytest.mark.clause("2.9")
def test_the_console_talks_draws_survives_a_resize_and_leaves_the_terminal_as_it_was(screen: Screen) -> None:
    screen.wait_text("kernel up")
    screen.enter("hello from the console")
    screen.wait_text("You …")
    screen.resize(140, 40)
    screen.wait_text("│── Apps")
    screen.wait_text("hello from the console")
    screen.type("\x04")
    assert screen.wait_end() == 0
    assert termios.tcgetattr(screen.terminal) == screen.before
    assert screen.raw.endswith(b"\x1b[?2004l\x1b[?25h\x1b[?1049l")


@pytest.mark.clause("2.9")
def test_ctrl_c_ends_the_console_with_130_and_the_terminal_as_it_was(screen: Screen) -> None:
    screen.wait_text("kernel up")
    screen.type("\x03")
    assert screen.wait_end() == 130
    assert termios.tcgetattr(screen.terminal) == screen.before
