"""A kernel's life: who keeps it, who ends it, what it refuses to start on (SPEC 2.8, 2.9, 12)."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import psutil
import pytest
import trio

from kernel import migrations
from kernel.database import CHECKSUM_VFS, load_checksums
from kernel.home import Home
from kernel.protocol.host import KernelStatus, MessageSend
from tests.processes.conftest import Starter
from tests.processes.kernel_under_test import ROOT, KernelUnderTest, opened_folder

IDLE_SECONDS = 1.0


@pytest.mark.clause("2.9")
async def test_a_kernel_outlives_its_launcher_and_ends_when_the_last_view_and_agent_are_gone(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start(idle_seconds=IDLE_SECONDS)
    launcher = await kernel.first_view(nursery)
    agent = await kernel.agent(nursery)
    launcher.close()
    await launcher.wait_closed()
    with trio.move_on_after(2 * IDLE_SECONDS) as patience:
        await kernel.wait_exited()
    assert patience.cancelled_caught, "it ended although the Agent was there"
    view = await kernel.join(nursery)
    agent.close()
    await agent.wait_closed()
    with trio.move_on_after(2 * IDLE_SECONDS) as patience:
        await kernel.wait_exited()
    assert patience.cancelled_caught, "it ended although a view was there"
    assert (await view.ask(KernelStatus()))["views"] == 1
    tree = kernel.tree()
    view.close()
    assert await kernel.wait_exited() == 0
    await tree.wait_gone()


@pytest.mark.clause("2.8")
@pytest.mark.clause("2.9")
async def test_a_command_is_no_view_and_yet_keeps_the_kernel(start: Starter, nursery: trio.Nursery) -> None:
    kernel = start(idle_seconds=IDLE_SECONDS)
    launcher = await kernel.first_view(nursery)
    command = await kernel.join(nursery, role="admin")
    assert (await command.ask(KernelStatus()))["views"] == 1
    launcher.close()
    await launcher.wait_closed()
    with trio.move_on_after(2 * IDLE_SECONDS) as patience:
        await kernel.wait_exited()
    assert patience.cancelled_caught, "it ended although somebody waits for an answer"
    assert (await command.ask(KernelStatus()))["views"] == 0
    command.close()
    assert await kernel.wait_exited() == 0


@pytest.mark.clause("2.9")
async def test_a_kernel_nobody_ever_greets_ends_by_itself(start: Starter) -> None:
    kernel = start(idle_seconds=IDLE_SECONDS)
    assert await kernel.wait_exited() == 0


@pytest.mark.clause("2.9")
async def test_a_second_kernel_on_the_same_home_is_told_that_it_is_locked(start: Starter, nursery: trio.Nursery) -> None:
    first = start()
    person = await first.first_view(nursery)
    second = start()
    told = await second.first_view(nursery)
    assert told.goodbye == "store_locked"
    assert await second.wait_exited() == 8
    assert (await person.ask(KernelStatus()))["views"] == 1
    await first.kill_all()
    third = start()
    assert not (await third.first_view(nursery)).is_closed


def flip_a_byte(database: Path) -> None:
    """In the middle of a page that is in use."""
    connection = apsw.Connection(str(database))
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'tool_call'").get
    connection.close()
    data = bytearray(database.read_bytes())
    data[(page - 1) * 4096 + 2048] ^= 0xFF
    database.write_bytes(data)


def be_newer(database: Path) -> None:
    load_checksums()
    connection = apsw.Connection(str(database), vfs=CHECKSUM_VFS)  # whatever it writes has to pass the checks of pages
    connection.pragma("user_version", migrations.latest_version() + 1)
    connection.close()


def be_foreign(database: Path) -> None:
    database.write_bytes(b"this is somebody's letter" * 100)
    database.with_name("audit.head").unlink()


def lose_it(database: Path) -> None:
    database.unlink()


def be_a_link(database: Path) -> None:
    database.rename(database.with_name("elsewhere.db"))
    database.symlink_to("elsewhere.db")


@pytest.mark.clause("12")
@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (flip_a_byte, "store_corrupt"),
        (be_newer, "store_newer"),
        (be_foreign, "store_foreign"),
        (lose_it, "store_corrupt"),
        (be_a_link, "store_foreign"),
    ],
)
async def test_a_home_that_may_not_be_used_is_refused_and_left_as_it_is(
    start: Starter, nursery: trio.Nursery, damage: Callable[[Path], None], code: str
) -> None:
    kernel = start()
    person = await kernel.first_view(nursery)
    await person.ask(MessageSend(text="something to lose"))
    await kernel.kill_all()
    database = kernel.home / "kernel.db"
    connection = apsw.Connection(str(database))
    connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    damage(database)
    before = _bytes_of(kernel.home)

    refused = start()
    told = await refused.first_view(nursery)
    assert told.goodbye == code
    assert told.of_type("goodbye")[0]["detail"]["hint"]
    assert await refused.wait_exited() == 1
    line = json.loads(kernel.log.read_text().splitlines()[-1])
    assert line["code"] == code
    assert _bytes_of(kernel.home) == before


def _bytes_of(home: Path) -> dict[str, bytes]:
    """Every file that holds anything: an empty log beside the database says as much as none."""
    return {path.name: data for path in home.iterdir() if path.is_file() and (data := path.read_bytes())}


@pytest.mark.clause("4.1")
async def test_a_bad_manifest_is_refused_with_its_place(start: Starter, nursery: trio.Nursery, apps: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "manifest.json").write_text('{"app_scope": "Bad Name"}')
    apps.append(bad)
    try:
        kernel = start()
    finally:
        apps.remove(bad)
    told = await kernel.first_view(nursery)
    assert told.goodbye == "manifest_invalid"
    assert await kernel.wait_exited() == 1
    line = json.loads(kernel.log.read_text().splitlines()[-1])
    assert line["code"] == "manifest_invalid"
    assert told.of_type("goodbye")[0]["detail"].items() >= {"pointer": line["pointer"], "expected": line["expected"]}.items()
    assert "Bad Name" not in kernel.log.read_text()


@pytest.mark.clause("2.8")
@pytest.mark.skipif(os.getuid() != 0, reason="another user can be tried by root only")
async def test_another_user_is_not_admitted_even_where_the_folder_lets_it_in(warm: KernelUnderTest, nursery: trio.Nursery) -> None:
    folders = [warm.home / "run", warm.home, *warm.home.parents]
    sock = warm.home / "run" / "kernel.sock"
    modes = {path: path.stat().st_mode for path in [sock, *folders]}
    try:
        for path, mode in modes.items():
            path.chmod(mode | 0o711)
        sock.chmod(0o777)
        program = (
            "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
            "s.settimeout(30); print(repr(s.recv(100)))"
        )
        done = await trio.run_process([sys.executable, "-c", program, str(sock)], cwd=ROOT, capture_stdout=True, check=True)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done.stdout == b"b''\n"
    assert "host.foreign_uid" in warm.log.read_text()
    assert not (await warm.join(nursery)).is_closed


@pytest.mark.clause("2.8")
async def test_home_and_socket_are_for_their_owner_alone(warm: KernelUnderTest) -> None:
    for folder in (warm.home, warm.home / "run"):
        assert folder.stat().st_mode & 0o777 == 0o700
    for file in (path for folder in (warm.home, warm.home / "run") for path in folder.iterdir() if not path.is_dir()):
        assert file.stat().st_mode & 0o077 == 0, file.name


@pytest.mark.clause("2.8")
async def test_many_who_knock_and_say_nothing_do_not_end_the_kernel(start: Starter, nursery: trio.Nursery) -> None:
    """They hold as many descriptors as there are places, no more; those who came before are served on."""
    kernel = start()
    person = await kernel.first_view(nursery)
    silent: list[socket.socket] = []
    try:
        while len(silent) < 64 + 17 + 16:
            silent.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            silent[-1].setblocking(False)
            with opened_folder(kernel.home / "run") as folder, suppress(BlockingIOError):  # the backlog is full
                silent[-1].connect(f"/proc/self/fd/{folder}/kernel.sock")
            assert (await person.ask(KernelStatus()))["views"] == 1
        assert psutil.Process(kernel.pid).num_fds() < 64 + 40
    finally:
        for sock in silent:
            sock.close()
    assert not (await kernel.join(nursery)).is_closed


@pytest.mark.clause("8.3")
async def test_without_a_whole_sandbox_nothing_starts(reaping: None, tmp_path: Path, nursery: trio.Nursery) -> None:
    """The kernel started where a step of the seal cannot be taken (tests/processes/lame_kernel.py)."""
    program = ("-m", "tests.processes.lame_kernel")
    kernel = KernelUnderTest.start(tmp_path / "home", tmp_path / "kernel.log", program=program)
    told = await kernel.first_view(nursery)
    assert told.goodbye == "sandbox_incomplete"
    assert await kernel.wait_exited() == 1
    line = json.loads(kernel.log.read_text().splitlines()[-1])
    assert line["code"] == "sandbox_incomplete"
    assert line["layer"]
    assert line["hint"]
    assert told.of_type("goodbye")[0]["detail"] == {name: line[name] for name in ("hint", "layer", "reason")}
    kernel.close()


@pytest.mark.clause("2.9")
def test_a_kernel_that_any_host_starts_again_has_the_apps_of_before(tmp_path: Path) -> None:
    folder = tmp_path / "apps" / "mine"
    folder.mkdir(parents=True)
    home = Home(tmp_path / "home")
    assert home.app_folders([folder]) == [folder]
    home.close()
    again = Home(tmp_path / "home")
    assert again.app_folders([]) == [folder]
    folder.rmdir()
    assert again.app_folders([]) == []
    again.close()
