"""How the zygote comes to be: from a fresh interpreter under the kernel's uid to a bare PID 1 in an empty world, in ordered steps.

Use: `be_born(birth)` in the process the kernel started returns only in PID 1 of the new pid namespace, with every layer reported;
the outer process stays as a stub that waits for it.
Rules:
1. Each step is reported to the kernel as it is proved; the first that fails is reported with its hint and ends the process.
2. Everything that needs the file system (imports, the filter compiler, /proc) happens before the root is emptied.
3. No program is executed after the uid was dropped: an interpreter in a private folder could not be read any more.
4. Outside privileges are used for nothing but giving them up, so the same steps work for an unprivileged user.
"""

from __future__ import annotations

import fcntl
import gc
import os
import platform
import resource
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import NoReturn

from lineup_sdk.protocol.control import MAX_PACKET_BYTES, TO_KERNEL, Layer, decode, encode
from workers.launcher import linux, lockdown, seal, syscalls, warming
from workers.launcher.linux import LandlockRestriction, SyscallFilter
from workers.launcher.seal import SealPlan
from workers.launcher.steps import NotProved, Step, run_step

UNPRIVILEGED_ID = 65534
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "user", "uts")
_USER_NAMESPACE_HINT = (
    "allow user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0; in a container, a seccomp profile that permits unshare and mount"
)
_DEFECT_HINT = "this is a defect of the launcher; report it with the output of `lineup doctor`"

# Landlock: all rights of files that some version knows, by that version; what a version does not know must not be named.
_LANDLOCK_FILE_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_LANDLOCK_TCP = 3  # bind, connect; version 4
_LANDLOCK_SCOPES = 3  # abstract sockets, signals; version 6


@dataclass(slots=True)
class Birth:
    """What the steps hand on to each other."""

    control: socket.socket
    kernel_pid: int
    outside: dict[str, int] = field(default_factory=dict)  # inode of each namespace before it was left
    filter: SyscallFilter | None = None
    ruleset_fd: int = -1
    landlock_detail: str = ""

    def plan(self) -> SealPlan:
        """The prebuilt seal. Raises: NotProved when a step that prepares it was left out."""
        if self.filter is None or self.ruleset_fd < 0:
            raise NotProved("the seal was not prepared")
        return SealPlan(LandlockRestriction(self.ruleset_fd), self.landlock_detail, self.filter)


# --- before the namespaces


def _note_platform(birth: Birth) -> None:
    if platform.system() != "Linux" or platform.machine() != syscalls.MACHINE:
        raise NotProved(f"needs Linux on {syscalls.MACHINE}, this is {platform.system()} on {platform.machine()}")
    for name in _NAMESPACES:
        birth.outside[name] = os.stat(f"/proc/self/ns/{name}").st_ino
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # one descriptor a worker


def _prove_platform(_: Birth) -> str:
    return f"Linux {platform.release()} {platform.machine()}"


def _preload(_: Birth) -> None:
    lockdown.preload()
    warming.warm()


def _prove_preload(_: Birth) -> str:
    return f"{len(sys.modules)} modules"


def _compile_filter(birth: Birth) -> None:
    birth.filter = SyscallFilter(syscalls.compile_filter())


def _make_ruleset(birth: Birth) -> None:
    version = linux.landlock_abi()
    files = (1 << _LANDLOCK_FILE_BITS[min(version, max(_LANDLOCK_FILE_BITS))]) - 1
    tcp = _LANDLOCK_TCP if version >= 4 else 0
    scopes = _LANDLOCK_SCOPES if version >= 6 else 0
    made = linux.landlock_ruleset(files, tcp, scopes)
    birth.ruleset_fd = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, seal.HIGH_FD)  # out of the way of the channel's descriptor
    os.close(made)
    birth.landlock_detail = f"version {version}: files" + (", TCP" if tcp else "") + (", signals" if scopes else "")


def _drop_identity(_: Birth) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        os.setresuid(UNPRIVILEGED_ID, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        # A changed uid makes the process undumpable and /proc/self root's; the id maps below need it. Shut again by `undumpable`.
        linux.prctl(linux.PR_SET_DUMPABLE, 1)


def _prove_identity(_: Birth) -> str:
    if 0 in (*os.getresuid(), *os.getresgid()):
        raise NotProved("still root")
    return f"uid {os.getuid()}"


# --- the namespaces


def _leave_user_namespace(_: Birth) -> None:
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{UNPRIVILEGED_ID} {uid} 1"),  # inside, every worker is nobody, whoever runs the kernel
        ("gid_map", f"{UNPRIVILEGED_ID} {gid} 1"),
    ):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, text.encode())
        os.close(descriptor)


def _prove_left(birth: Birth, name: str) -> str:
    inode = os.stat(f"/proc/self/ns/{name}").st_ino
    if inode == birth.outside[name]:
        raise NotProved("still in the namespace of the kernel")
    return f"own ({inode})"


def _empty_root(_: Birth) -> None:
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("tmpfs", "/tmp", "tmpfs", flags, "size=4k,nr_inodes=2,mode=555")
    os.chdir("/tmp")
    linux.pivot_root(".", ".")
    linux.detach(".")
    os.chdir("/")
    linux.mount(None, "/", None, flags | linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY)


def _prove_empty_root(_: Birth) -> str:
    if os.listdir("/") or os.getcwd() != "/":
        raise NotProved("the root is not empty")
    try:
        os.mkdir("/x")
    except OSError:
        return "empty, read-only"
    raise NotProved("the root can be written")


# --- giving up the rest


def _drop_capabilities(_: Birth) -> None:
    linux.drop_capabilities()


def _prove_capabilities(_: Birth) -> str:
    if held := linux.held_capabilities():
        raise NotProved(f"{held} capabilities are left")
    return "none, bounding set empty"


def _forbid_new_privileges(_: Birth) -> None:
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)


def _prove_no_new_privileges(_: Birth) -> str:
    if linux.prctl(linux.PR_GET_NO_NEW_PRIVS) != 1:
        raise NotProved("not set")
    return "set"


def _leave_pid_namespace(birth: Birth) -> None:
    """Returns in PID 1 only."""
    pid = os.fork()
    if pid:
        _wait_as_stub(birth, pid)


def _wait_as_stub(birth: Birth, pid: int) -> NoReturn:
    """Hold the parent's place for PID 1: when the kernel ends, the stub ends, and takes the whole namespace with it."""
    linux.set_process_name("lineup-stub")
    _die_with_parent(birth)
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    if os.getppid() != birth.kernel_pid:
        os._exit(1)
    birth.control.close()  # its end must mean that PID 1 is gone
    os.close(birth.ruleset_fd)
    _, status = os.waitpid(pid, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0x7F)


def _prove_pid_namespace(_: Birth) -> str:
    if os.getpid() != 1 or os.getppid() != 0:
        raise NotProved("not the first process of a namespace")
    linux.set_process_name("lineup-zygote")
    os.setsid()
    return "PID 1"


def _die_with_parent(_: Birth) -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def _prove_parent_death(_: Birth) -> str:
    if linux.pdeath_signal() != signal.SIGKILL:
        raise NotProved("not set")
    return "SIGKILL"


def _forbid_dumps(_: Birth) -> None:
    linux.prctl(linux.PR_SET_DUMPABLE, 0)


def _prove_undumpable(_: Birth) -> str:
    if linux.prctl(linux.PR_GET_DUMPABLE) != 0:
        raise NotProved("still dumpable")
    return "memory closed to other processes"


def _clear_environment(_: Birth) -> None:
    os.environ.clear()


def _prove_environment(_: Birth) -> str:
    if os.environ:
        raise NotProved("not empty")
    return "empty"


def _lock_imports(_: Birth) -> None:
    lockdown.lock_imports()


def _prove_imports(_: Birth) -> str:
    try:
        __import__("lineup_unknown_module")
    except ModuleNotFoundError:
        return "only what is loaded"
    raise NotProved("an unknown module was found")


def _namespace(name: str, file: str, flag: int, reason: str) -> Step[Birth]:
    return Step(
        name=name,
        reason=reason,
        hint=_USER_NAMESPACE_HINT,
        apply=lambda _: linux.unshare(flag),
        prove=lambda birth: _prove_left(birth, file),
    )


STEPS: tuple[Step[Birth], ...] = (
    Step("platform", "the table of system calls fits one machine", "run on Linux, x86_64", _note_platform, _prove_platform),
    Step("preload", "while files can be read", "install the locked requirements", _preload, _prove_preload),
    Step("system_calls", "the compiler needs the file system", "apt install libseccomp2", _compile_filter, None),
    Step("landlock", "one ruleset serves all children", seal.STEPS[1].hint, _make_ruleset, None),
    Step("identity", "before the namespaces: they then belong to nobody, not to root", _DEFECT_HINT, _drop_identity, _prove_identity),
    Step(
        "user_namespace",
        "first of them: it gives an unprivileged user the right to the others",
        _USER_NAMESPACE_HINT,
        _leave_user_namespace,
        lambda birth: _prove_left(birth, "user"),
    ),
    _namespace("mount_namespace", "mnt", linux.CLONE_NEWNS, "for an own root"),
    _namespace("network_namespace", "net", linux.CLONE_NEWNET, "no interface, no abstract socket of the machine"),
    _namespace("ipc_namespace", "ipc", linux.CLONE_NEWIPC, "no shared memory of the machine"),
    _namespace("uts_namespace", "uts", linux.CLONE_NEWUTS, "an own host name"),
    _namespace("cgroup_namespace", "cgroup", linux.CLONE_NEWCGROUP, "no view of the machine's groups"),
    Step("empty_root", "the last use of /proc is behind us", _USER_NAMESPACE_HINT, _empty_root, _prove_empty_root),
    Step(
        "pid_namespace",
        "takes effect at the fork below; needs the capabilities dropped next",
        _USER_NAMESPACE_HINT,
        lambda _: linux.unshare(linux.CLONE_NEWPID),
        None,
    ),
    Step("capabilities", "the mounts were the last use", _DEFECT_HINT, _drop_capabilities, _prove_capabilities),
    Step("no_new_privileges", "filter and Landlock ask for it", _DEFECT_HINT, _forbid_new_privileges, _prove_no_new_privileges),
    Step("pid_namespace", "with nothing left to misuse", _USER_NAMESPACE_HINT, _leave_pid_namespace, _prove_pid_namespace),
    Step("parent_death", "a change of credentials would have cleared it", _DEFECT_HINT, _die_with_parent, _prove_parent_death),
    Step("undumpable", "a changed uid had to be dumpable for the id maps", _DEFECT_HINT, _forbid_dumps, _prove_undumpable),
    Step("environment", "nothing reads it any more", _DEFECT_HINT, _clear_environment, _prove_environment),
    Step("imports", "nothing is imported any more", _DEFECT_HINT, _lock_imports, _prove_imports),
)


def be_born(birth: Birth) -> SealPlan:
    """Run every step, then try the seal in one child. Returns in PID 1. Ends the process at the first layer that is missing."""
    _die_with_parent(birth)
    for step in STEPS:
        _report(birth, run_step(step, birth))
    plan = birth.plan()
    gc.collect()
    gc.freeze()  # what all children share stays shared
    for layer in _try_seal(plan):
        _report(birth, layer)
    return plan


def _report(birth: Birth, layer: Layer | None) -> None:
    if layer is None:
        return
    birth.control.send(encode(layer))
    if not layer.ok:
        os._exit(1)


def _try_seal(plan: SealPlan) -> list[Layer]:
    """Seal one child that tries each layer. The filter is proved by the child's death: SIGSYS at a call outside the table."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        seal.move_channel(theirs.fileno())
        seal.prove(plan, seal.CHANNEL_FD)
        os._exit(0)
    theirs.close()
    layers: list[Layer] = []
    while packet := ours.recv(MAX_PACKET_BYTES):
        layer = decode(packet, TO_KERNEL)
        if isinstance(layer, Layer):
            layers.append(layer)
    ours.close()
    ended = os.waitid(os.P_PID, pid, os.WEXITED)
    return _judge(layers, plan, was_killed=ended is not None and ended.si_status == signal.SIGSYS and ended.si_code != os.CLD_EXITED)


def _judge(layers: list[Layer], plan: SealPlan, *, was_killed: bool) -> list[Layer]:
    """Add the report of the layer whose proof is the death of the child."""
    if layers and not layers[-1].ok:
        return layers
    last = seal.STEPS[-1].name
    reported = {layer.name for layer in layers}
    missing = [step.name for step in seal.STEPS if step.name not in reported]
    if was_killed and missing == [last]:
        return [*layers, Layer(name=last, ok=True, detail=f"{plan.filter.instructions} instructions, SIGSYS at a refused call")]
    return [*layers, *(seal.not_proved(name) for name in missing[:1])]
