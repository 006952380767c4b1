"""The seal a forked child puts on itself, as an ordered list of named steps. After the last one the process can only compute and
talk over descriptor 3.

Rules:
1. The order is the code: each step says why it stands where it stands. Nothing of an app is read before the last step.
2. `put_on` is the way of every worker and does not look back; `prove` is the way of one child at start, which tries each layer.
3. No step can be left out, made optional or relaxed by an argument, a setting or the environment.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
from dataclasses import dataclass

from lineup_sdk.protocol.control import Layer, encode
from workers.launcher.linux import DescriptorClosing, LandlockRestriction, SyscallFilter
from workers.launcher.steps import NotProved, Step, run_step

CHANNEL_FD = 3
FIRST_FREE_FD = CHANNEL_FD + 1
_ALL_BUT_CHANNEL = DescriptorClosing(FIRST_FREE_FD)
HIGH_FD = 64  # descriptors of the zygote that a child needs until it is sealed are kept above this one

_MIB = 1024 * 1024

# Hard and soft are the same: nothing can be raised again. Memory is the whole address space, so no trick with mappings passes it.
LIMITS: tuple[tuple[str, int, int], ...] = (
    ("RLIMIT_AS", resource.RLIMIT_AS, 256 * _MIB),
    ("RLIMIT_CORE", resource.RLIMIT_CORE, 0),
    ("RLIMIT_CPU", resource.RLIMIT_CPU, 4 * 3600),  # of a whole life, a ceiling only: the kernel's watchdog is the real bound
    ("RLIMIT_FSIZE", resource.RLIMIT_FSIZE, 0),
    ("RLIMIT_MEMLOCK", resource.RLIMIT_MEMLOCK, 0),
    ("RLIMIT_MSGQUEUE", resource.RLIMIT_MSGQUEUE, 0),
    ("RLIMIT_NOFILE", resource.RLIMIT_NOFILE, 32),
    ("RLIMIT_NPROC", resource.RLIMIT_NPROC, 0),
    ("RLIMIT_STACK", resource.RLIMIT_STACK, 8 * _MIB),
)


@dataclass(frozen=True, slots=True)
class SealPlan:
    """What a child needs to seal itself, prebuilt in the zygote."""

    landlock: LandlockRestriction
    landlock_detail: str
    filter: SyscallFilter


def _limit(_: SealPlan) -> None:
    for _name, number, value in LIMITS:
        resource.setrlimit(number, (value, value))


def _prove_limits(_: SealPlan) -> str:
    for name, number, value in LIMITS:
        if resource.getrlimit(number) != (value, value):
            raise NotProved(f"{name} is not {value}")
    try:
        pid = os.fork()
    except BlockingIOError:
        return f"{len(LIMITS)} limits, memory 256 MiB, no fork"
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    raise NotProved("fork works although no process is allowed")


def _restrict_files(plan: SealPlan) -> None:
    plan.landlock.apply()


def _prove_landlock(plan: SealPlan) -> str:
    try:
        os.listdir("/")
    except PermissionError:
        return plan.landlock_detail
    raise NotProved("the root can still be listed")


def _close_descriptors(_: SealPlan) -> None:
    _ALL_BUT_CHANNEL.apply()


def _prove_descriptors(_: SealPlan) -> str:
    for number in range(FIRST_FREE_FD, 4 * HIGH_FD):
        try:
            os.fstat(number)
        except OSError as error:
            if error.errno == errno.EBADF:
                continue
        raise NotProved(f"descriptor {number} is still open")
    return "channel and /dev/null only"


def _load_filter(plan: SealPlan) -> None:
    plan.filter.load()


def _prove_filter(plan: SealPlan) -> str:
    try:
        socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError as error:
        raise NotProved("a refused call came back instead of killing") from error
    raise NotProved(f"a socket was made under {plan.filter.instructions} instructions")


STEPS: tuple[Step[SealPlan], ...] = (
    Step(
        name="limits",
        reason="first: every later step then runs in the small world it seals, and a failed one leaves a harmless process",
        hint="raise the hard limits of the user that runs the kernel (see ulimit -aH)",
        apply=_limit,
        prove=_prove_limits,
    ),
    Step(
        name="landlock",
        reason="while its ruleset descriptor is still open; denies files, TCP and signals even if a hole is found in the filter",
        hint="boot with landlock in the list lsm= (kernel 5.13 or newer, CONFIG_SECURITY_LANDLOCK)",
        apply=_restrict_files,
        prove=_prove_landlock,
    ),
    Step(
        name="descriptors",
        reason="after Landlock took its ruleset, before the filter: nothing of the zygote (its control channel) is left to use",
        hint="use a kernel of Linux 5.9 or newer; in a container, a seccomp profile that permits close_range",
        apply=_close_descriptors,
        prove=_prove_descriptors,
    ),
    Step(
        name="system_calls",
        reason="last: it forbids what the steps above needed; from here on any other system call kills the process",
        hint="install libseccomp2 (apt install libseccomp2) and use a kernel with CONFIG_SECCOMP_FILTER",
        apply=_load_filter,
        prove=_prove_filter,
    ),
)


def move_channel(channel_fd: int) -> None:
    """Put the channel on descriptor 3, above /dev/null on 0, 1 and 2."""
    if channel_fd == CHANNEL_FD:
        os.set_inheritable(CHANNEL_FD, False)
    else:
        os.dup2(channel_fd, CHANNEL_FD, inheritable=False)


def put_on(plan: SealPlan) -> None:
    """Seal this process for good. Raises: OSError; the caller ends the process then."""
    for step in STEPS:
        step.apply(plan)


def prove(plan: SealPlan, report_fd: int) -> None:
    """Put on and try each step, writing one packet a layer to report_fd; the last step proves itself by killing this process."""
    for step in STEPS:
        layer = run_step(step, plan)
        if layer is not None:
            os.write(report_fd, encode(layer))
        if layer is not None and not layer.ok:
            return


def not_proved(name: str) -> Layer:
    """The report of a step whose proof never came."""
    step = next(s for s in STEPS if s.name == name)
    return Layer(name=name, ok=False, detail="the process that tried it ended before it could tell", hint=step.hint)
