"""The zygote as the kernel sees it: layers, missing layers, deaths."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import trio

from kernel import launch
from kernel.doctor import examine
from kernel.spares import Spares, spawn_ready
from kernel.zygote import Exit, SandboxIncomplete, SpawnFailed, Zygote
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.control import LAYERS, ExitCode
from tests.descriptors import open_descriptors
from tests.processes.sandbox.cage import HERE, capture, open_spares, open_zygote, weakened_command

NOT_BY_LEAVING_OUT = {"pid_namespace", "limits", "landlock", "descriptors", "system_calls", "capabilities"}


async def test_every_layer_is_reported_in_order_and_proved():
    async with open_zygote() as zygote:
        assert [layer.name for layer in zygote.layers] == list(LAYERS)
        assert all(layer.ok and layer.detail for layer in zygote.layers)


@pytest.mark.parametrize("layer", [name for name in LAYERS if name not in NOT_BY_LEAVING_OUT])
async def test_a_zygote_that_leaves_out_a_layer_in_silence_is_refused(layer):
    async with trio.open_nursery() as nursery:
        with pytest.raises(SandboxIncomplete) as refused:
            await Zygote.start(nursery, weakened_command(layer))
    # A later layer may be the first to miss it: without its own user namespace, for one, no mount namespace can be had.
    assert LAYERS.index(refused.value.layer) >= LAYERS.index(layer)
    assert refused.value.code == Code.SANDBOX_INCOMPLETE


# A machine that lacks a layer, made by a filter put on before the kernel side starts: the system call that layer needs is refused.
MISSING = [
    ("landlock", "landlock_create_ruleset", "ENOSYS", "-"),
    ("landlock", "landlock_restrict_self", "EPERM", "-"),
    ("user_namespace", "unshare", "EPERM", "-"),
    ("mount_namespace", "unshare", "EPERM", "0x20000"),
    ("network_namespace", "unshare", "EPERM", "0x40000000"),
    ("ipc_namespace", "unshare", "EPERM", "0x8000000"),
    ("uts_namespace", "unshare", "EPERM", "0x4000000"),
    ("cgroup_namespace", "unshare", "EPERM", "0x2000000"),
    ("pid_namespace", "unshare", "EPERM", "0x20000000"),
    ("empty_root", "mount", "EPERM", "-"),
    ("empty_root", "pivot_root", "EPERM", "-"),
    ("capabilities", "capset", "EPERM", "-"),
    ("no_new_privileges", "prctl", "EINVAL", "38"),
    ("parent_death", "prctl", "EINVAL", "2"),
    ("undumpable", "prctl", "EINVAL", "3"),
    ("limits", "prlimit64", "EPERM", "limits"),
    ("descriptors", "close_range", "ENOSYS", "-"),
    ("system_calls", "seccomp", "ENOSYS", "-"),
]


@pytest.mark.parametrize(("layer", "call", "error", "argument"), MISSING, ids=str)
async def test_a_machine_without_a_layer_runs_no_worker_and_says_which_and_how_to_mend_it(layer, call, error, argument):
    with trio.fail_after(60):
        ran = await trio.run_process(
            [sys.executable, str(HERE / "poor_machine.py"), call, error, argument], capture_stdout=True, capture_stderr=True, check=False
        )
    assert ran.returncode == 0, ran.stderr.decode()
    told = json.loads(ran.stdout)
    assert told["layer"] == layer
    assert told["reason"]
    assert told["hint"]
    assert told["children"] == 0


async def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(launch, "LIBRARIES", ("lineup_sdk", "library_that_is_not_there"))
    async with trio.open_nursery() as nursery:
        with pytest.raises(SandboxIncomplete) as refused:
            await Zygote.open(nursery)
    assert refused.value.layer == "preload"
    assert "library_that_is_not_there" in refused.value.reason


async def test_the_ends_of_processes_are_told_apart():
    async with open_zygote() as zygote, open_spares(zygote, 2) as spares:
        ends = {}
        for name in ("leave with 7", "crash", "mount"):
            captive = await capture(spares)
            await captive.ask(name)
            ends[name] = await captive.end()
        captive = await capture(spares)
        ends["closed"] = await captive.end()
        captive = await capture(spares)
        captive.process.kill()
        ends["killed"] = await captive.end()
        captive.process.kill()  # of an ended process: nothing
    assert ends["leave with 7"] == Exit("exited", 7)
    assert ends["crash"].kind in {"killed", "dumped"}
    assert ends["crash"].status == signal.SIGSEGV
    assert ends["mount"] == Exit("sigsys", signal.SIGSYS)
    assert ends["closed"] == Exit("exited", 0)
    assert ends["closed"].code is ExitCode.DONE
    assert ends["killed"] == Exit("killed", signal.SIGKILL)


@pytest.mark.parametrize("victim", ["stub", "inner"])
@pytest.mark.invariant("42")
async def test_the_death_of_either_zygote_process_ends_every_worker_and_is_told(victim):
    async with open_zygote() as zygote:
        captives = [await capture(zygote) for _ in range(3)]
        pids = [c.process.pid for c in captives] + [zygote.inner_pid, zygote.pid]
        os.kill(zygote.pid if victim == "stub" else zygote.inner_pid, signal.SIGKILL)
        with trio.fail_after(30):
            await zygote.wait_dead()
            assert {(await c.process.wait_exited()).kind for c in captives} == {"lost"}
        assert not zygote.is_alive
        with pytest.raises(SpawnFailed, match="zygote_dead"):
            await zygote.spawn()
        assert not [pid for pid in pids if _lives(pid)]
        for captive in captives:
            captive.channel.close()


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.invariant("42")
async def test_kill_9_of_the_launching_process_leaves_no_process():
    launcher = _launch()
    line = await trio.to_thread.run_sync(launcher.stdout.readline)
    told = json.loads(line)
    pidfds = [os.pidfd_open(pid) for pid in told["pids"]]
    assert len(pidfds) == 2 + 5  # stub, zygote; 3 workers, 2 spares
    inode = _pid_namespace(told["pids"][1])
    assert inode is None or len(_processes_in(inode)) == 6
    launcher.kill()
    with trio.fail_after(30):
        for pidfd in pidfds:
            await trio.lowlevel.wait_readable(pidfd)
            os.close(pidfd)
    launcher.wait()
    launcher.stdout.close()
    assert inode is None or _processes_in(inode) == []


def _launch() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(HERE / "launching.py")], stdout=subprocess.PIPE)


def _pid_namespace(pid: int) -> str | None:
    """The inode of a namespace; None for an unprivileged user, who may not look into undumpable processes."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except PermissionError:
        return None


def _processes_in(inode: str) -> list[int]:
    found = []
    for pid in psutil.pids():
        try:
            if os.readlink(f"/proc/{pid}/ns/pid") == inode and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except (OSError, psutil.NoSuchProcess):
            continue
    return found


async def test_closing_a_zygote_leaves_no_process_and_no_descriptor():
    before, known = len(open_descriptors()), _children()
    for _ in range(3):
        async with open_zygote() as zygote, open_spares(zygote, 2):
            captive = await capture(zygote)
            await captive.end()
    assert len(open_descriptors()) == before
    assert [child for child in _children() - known if child.name().startswith("lineup")] == []


def _children() -> set[psutil.Process]:
    """All below this process: other tests of the run may have kernels of theirs, and ends that nobody took yet."""
    return set(psutil.Process().children(recursive=True))


def _workers_of(zygote: Zygote) -> set[int]:
    return {child.pid for child in psutil.Process(zygote.pid).children(recursive=True) if child.name() == "lineup-worker"}


async def test_an_asker_that_gives_up_leaves_no_process():
    async with open_zygote() as zygote:
        for _ in range(5):
            with trio.CancelScope() as scope:
                scope.cancel()
                await zygote.spawn()
        ready = await spawn_ready(zygote)
        with trio.fail_after(30):
            while _workers_of(zygote) - {ready.process.pid}:
                await trio.lowlevel.checkpoint()
        ready.channel.close()
        await ready.process.wait_exited()


async def test_a_spare_that_died_while_it_waited_is_not_handed_out():
    async with open_zygote() as zygote, trio.open_nursery() as nursery:
        spares = Spares(zygote)
        nursery.start_soon(spares.run)
        with trio.fail_after(30):
            while spares._get.statistics().current_buffer_used < 2:  # both wait, hello read
                await trio.lowlevel.checkpoint()
        waiting = _workers_of(zygote)
        for pid in waiting:
            os.kill(pid, signal.SIGKILL)
        with trio.fail_after(30):
            while any(_lives(pid) or psutil.pid_exists(pid) for pid in waiting):  # until reaped, and so told
                await trio.lowlevel.checkpoint()
            ready = await spares.take()
        assert ready.process.pid not in waiting
        ready.channel.close()
        assert (await ready.process.wait_exited()).kind == "exited"
        nursery.cancel_scope.cancel()


async def test_taking_from_a_dead_zygote_says_so():
    async with open_zygote() as zygote, open_spares(zygote, 2) as spares:
        zygote.close()
        await zygote.wait_dead()
        with trio.fail_after(30), pytest.raises(SpawnFailed) as failed:
            await _take_all(spares)
        assert failed.value.reason in {"zygote_dead", "hello_missing"}


async def _take_all(spares: Spares) -> None:
    while True:
        (await spares.take()).channel.close()


@pytest.mark.skipif(os.getuid() != 0, reason="the whole suite already runs unprivileged")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv to become an unprivileged user")
async def test_an_unprivileged_user_has_every_layer_too():
    # dac_read_search only lets it read an interpreter that stands in root's own folder; it gives no right to any namespace.
    become = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "--inh-caps=-all,+dac_read_search"]
    become += ["--ambient-caps=+dac_read_search", "--bounding-set=-all,+dac_read_search"]
    with trio.fail_after(60):
        ran = await trio.run_process([*become, sys.executable, str(HERE / "poor_machine.py")], capture_stdout=True)
    assert json.loads(ran.stdout) == {"complete": True}


async def test_doctor_shows_every_layer_and_the_cost_of_the_processes():
    diagnosis = await examine()
    assert diagnosis.is_complete
    assert [layer.name for layer in diagnosis.layers] == list(LAYERS)
    assert [facts.role for facts in diagnosis.processes] == ["zygote", "worker"]
    assert diagnosis.spawn_ms is not None
    assert all(facts.rss_bytes > 0 for facts in diagnosis.processes)


def test_the_program_of_the_zygote_is_where_the_kernel_looks_for_it():
    assert Path(launch.launch_command()[-1]).is_file()
    assert launch.launch_command()[1:4] == ["-I", "-S", "-X"]
