"""hosts.launch with a scripted kernel program: attach, start, lose the lock, start again, give up."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from hosts.homes import Home, HomeRefused
from hosts.launch import MAX_LAUNCHES, MAX_LOG_BYTES, Launcher
from hosts.link import HostLink, KernelUnreachable, hello
from kernel.protocol.host import InstancesList, KernelStop, Snapshot
from tests.hosts.scripted_kernel import ScriptedKernel

LauncherOf = Callable[[str], Launcher]


async def _pid_of(link: HostLink) -> int:
    event = await link.events.receive()
    assert isinstance(event, Snapshot)
    return int(event.state["kernel"]["pid"])


def _option_of(pid: int, name: bytes) -> bytes | None:
    line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return line[line.index(name) + 1] if name in line else None


def _launches(home: Home) -> int:
    return len((home.folder / "launches").read_text().splitlines())


async def _wait_launch(home: Home) -> None:
    while "launches" not in os.listdir(home.folder):  # noqa: ASYNC110 - another process writes it
        await trio.sleep(0.01)


async def _stop(launcher: Launcher, link: HostLink) -> None:
    await link.request(KernelStop())
    await link.wait_lost()
    await launcher.wait_gone()


@pytest.mark.clause("2.9")
async def test_a_view_starts_the_kernel_of_an_empty_home_in_a_session_of_its_own(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    launcher = launcher_of("serve")
    with trio.fail_after(30):
        link = await launcher.attach(nursery, hello("view"))
        pid = await _pid_of(link)
        assert os.getsid(pid) == pid
        await _stop(launcher, link)


@pytest.mark.clause("2.9")
async def test_an_agent_that_starts_the_kernel_comes_in_through_the_socket(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    launcher = launcher_of("serve")
    with trio.fail_after(30):
        agent = await launcher.attach(nursery, hello("agent"))
        admin = await launcher.attach(nursery, hello("admin"))
        assert _launches(home) == 1
        await _stop(launcher, admin)
        await agent.wait_lost()


@pytest.mark.clause("2.9")
async def test_many_hosts_at_once_share_one_kernel(home: Home, launcher_of: LauncherOf, nursery: trio.Nursery) -> None:
    launchers = [launcher_of("serve") for _ in range(3)]
    links: list[HostLink] = []

    async def attach(launcher: Launcher) -> None:
        links.append(await launcher.attach(nursery, hello("view")))

    with trio.fail_after(60):
        async with trio.open_nursery() as starting:
            for launcher in launchers:
                starting.start_soon(attach, launcher)
        assert len({await _pid_of(link) for link in links}) == 1
        await links[0].request(KernelStop())
        for launcher in launchers:
            await launcher.wait_gone()


@pytest.mark.clause("2.9")
async def test_a_starter_that_loses_the_lock_attaches_to_the_winner(home: Home, launcher_of: LauncherOf, nursery: trio.Nursery) -> None:
    loser = launcher_of("locked")
    links: list[HostLink] = []

    async def attach() -> None:
        links.append(await loser.attach(nursery, hello("view")))

    with trio.fail_after(60):
        async with trio.open_nursery() as starting:
            starting.start_soon(attach)
            await _wait_launch(home)
            winner = ScriptedKernel(home.folder)
            await nursery.start(winner.serve)
        assert await links[0].request(InstancesList())
    assert _launches(home) == 1
    links[0].close()


@pytest.mark.clause("2.9")
async def test_a_killed_kernel_is_started_again_but_only_so_often(home: Home, launcher_of: LauncherOf, nursery: trio.Nursery) -> None:
    launcher = launcher_of("serve")
    with trio.fail_after(60):
        for _ in range(MAX_LAUNCHES):
            link = await launcher.attach(nursery, hello("view"))
            os.kill(await _pid_of(link), signal.SIGKILL)
            await link.wait_lost()
        with pytest.raises(KernelUnreachable) as refused:
            await launcher.attach(nursery, hello("view"))
    assert _launches(home) == MAX_LAUNCHES
    assert "ended by signal 9" in refused.value.detail["reason"]


@pytest.mark.clause("2.9")
async def test_a_kernel_that_is_killed_before_it_greets_is_started_once_more(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    launcher = launcher_of("killed-once")
    with trio.fail_after(30):
        link = await launcher.attach(nursery, hello("view"))
        await _stop(launcher, link)
    assert _launches(home) == 2


@pytest.mark.clause("2.9")
async def test_a_kernel_that_is_killed_twice_before_it_greets_is_given_up(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30), pytest.raises(KernelUnreachable) as refused:
        await launcher_of("killed").attach(nursery, hello("view"))
    assert (refused.value.code, refused.value.detail["reason"]) == ("kernel_unreachable", "ended by signal 9")
    assert _launches(home) == 2


@pytest.mark.clause("12")
async def test_a_kernel_that_refuses_to_start_gives_its_own_code_and_hint(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30), pytest.raises(KernelUnreachable) as refused:
        await launcher_of("corrupt").attach(nursery, hello("view"))
    assert (refused.value.code, refused.value.detail["hint"]) == ("store_corrupt", "restore a backup")


async def test_a_kernel_that_ends_without_a_word_is_explained_by_its_last_line_on_stderr(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    with trio.fail_after(30), pytest.raises(KernelUnreachable) as refused:
        await launcher_of("silent").attach(nursery, hello("admin"))
    assert (refused.value.code, refused.value.detail["hint"]) == ("sandbox_incomplete", "no user namespaces")
    assert refused.value.detail["reason"] == "ended with exit code 1"
    assert home.log_file.stat().st_mode & 0o777 == 0o600


async def test_a_log_that_cannot_be_opened_refuses_the_home(home: Home, launcher_of: LauncherOf, nursery: trio.Nursery) -> None:
    home.create()
    home.log_file.symlink_to("/dev/null")
    with trio.fail_after(30), pytest.raises(HomeRefused, match="cannot be opened"):
        await launcher_of("serve").attach(nursery, hello("view"))
    assert not (home.folder / "launches").exists()


async def test_a_log_that_has_grown_is_put_aside_once(home: Home, launcher_of: LauncherOf, nursery: trio.Nursery) -> None:
    home.create()
    home.log_file.write_bytes(b"\n" * (MAX_LOG_BYTES + 1))
    launcher = launcher_of("serve")
    with trio.fail_after(30):
        link = await launcher.attach(nursery, hello("view"))
        await _stop(launcher, link)
        link = await launcher.attach(nursery, hello("view"))
        await _stop(launcher, link)
    assert home.log_file.stat().st_size < MAX_LOG_BYTES
    assert home.log_file.with_name("kernel.log.1").stat().st_size == MAX_LOG_BYTES + 1


@pytest.mark.clause("10")
async def test_a_view_that_starts_its_kernel_says_what_it_can_do_as_one_that_attaches(
    launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    launcher = launcher_of("serve")
    with trio.fail_after(30):
        link = await launcher.attach(nursery, hello("view", providers=["notification.show"]))
        snapshot = await link.events.receive()
        assert isinstance(snapshot, Snapshot)
        assert snapshot.state["kernel"]["providers"] == ["notification.show"]
        await _stop(launcher, link)


@pytest.mark.clause("16")
async def test_how_long_things_are_kept_is_told_to_every_kernel_that_is_started_in_this_home(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery
) -> None:
    told = []
    for days in (None, 365, 30):
        if days is not None:
            home.keep_retention_days(days)
        launcher = launcher_of("serve")
        with trio.fail_after(30):
            link = await launcher.attach(nursery, hello("view"))
            told.append(_option_of(await _pid_of(link), b"--retention-days"))
            await _stop(launcher, link)
    assert told == [None, b"365", b"30"]
    assert stat.S_IMODE(home.retention_file.stat().st_mode) == 0o600


@pytest.mark.clause("16")
@pytest.mark.parametrize("said", ["", "0", "36501", "ninety", "\x00", "9" * 5_000])
async def test_a_number_of_days_that_is_none_starts_no_kernel_which_would_delete_by_its_own(
    home: Home, launcher_of: LauncherOf, nursery: trio.Nursery, said: str
) -> None:
    home.retention_file.write_text(said)
    with pytest.raises(HomeRefused, match=r"retention\.days"):
        await launcher_of("serve").attach(nursery, hello("view"))
    assert "launches" not in os.listdir(home.folder)
