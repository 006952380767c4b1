"""The system calls the launcher needs and Python does not offer, through libc's syscall(2). Linux on x86_64.

Rules:
1. Every call here raises OSError with its own errno; nothing is retried and nothing is ignored.
2. What a forked child calls on its way into the seal takes prebuilt arguments: the child builds no ctypes objects.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long

_NR_CAPSET = 126
_NR_PIVOT_ROOT = 155
_NR_PRCTL = 157
_NR_MOUNT = 165
_NR_UMOUNT2 = 166
_NR_UNSHARE = 272
_NR_SECCOMP = 317
_NR_CLOSE_RANGE = 436
_NR_LANDLOCK_CREATE_RULESET = 444
_NR_LANDLOCK_RESTRICT_SELF = 446
_NR_CAPGET = 125

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_GET_PDEATHSIG = 2
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_SECCOMP_SET_MODE_FILTER = 1
_LANDLOCK_CREATE_RULESET_VERSION = 1
_CAPABILITY_VERSION_3 = 0x2008_0522
_MAX_CAPABILITY = 63


def call(number: int, *arguments: Any) -> int:
    """Make one system call; int arguments are passed as longs. Raises: OSError."""
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(_syscall(ctypes.c_long(number), *longs))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _text(value: str | None) -> ctypes.c_char_p | None:
    return None if value is None else ctypes.c_char_p(value.encode())


def unshare(flags: int) -> None:
    """Leave the namespaces named by CLONE_NEW* flags. Raises: OSError."""
    call(_NR_UNSHARE, flags)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2). Raises: OSError."""
    call(_NR_MOUNT, _text(source), _text(target), _text(kind), flags, _text(data))


def pivot_root(new_root: str, put_old: str) -> None:
    """pivot_root(2). Raises: OSError."""
    call(_NR_PIVOT_ROOT, _text(new_root), _text(put_old))


def detach(target: str) -> None:
    """umount2(2) with MNT_DETACH. Raises: OSError."""
    call(_NR_UMOUNT2, _text(target), MNT_DETACH)


def prctl(option: int, a: Any = 0, b: Any = 0) -> int:
    """prctl(2). Raises: OSError."""
    return call(_NR_PRCTL, option, a, b, 0, 0)


def pdeath_signal() -> int:
    """The signal this process gets when its parent ends, 0 for none."""
    value = ctypes.c_int(0)
    prctl(PR_GET_PDEATHSIG, ctypes.byref(value))
    return int(value.value)


def set_process_name(name: str) -> None:
    """Name this process for `ps`; at most 15 bytes."""
    prctl(PR_SET_NAME, _text(name))


def known_capabilities() -> list[int]:
    """Numbers of the capabilities this kernel has."""
    known = []
    for number in range(_MAX_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_READ, number)
        except OSError:  # EINVAL: past the last one
            break
        known.append(number)
    return known


def drop_capabilities() -> None:
    """Empty the bounding, ambient, effective, permitted and inheritable sets. Raises: OSError."""
    for number in known_capabilities():
        prctl(PR_CAPBSET_DROP, number)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    call(_NR_CAPSET, ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0)), ctypes.create_string_buffer(24))


def held_capabilities() -> int:
    """Number of capabilities left in any set of this process, the bounding set included. Raises: OSError."""
    data = ctypes.create_string_buffer(24)
    call(_NR_CAPGET, ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0)), data)
    held = sum(int(word).bit_count() for word in struct.unpack("6I", data.raw))
    return held + sum(prctl(PR_CAPBSET_READ, number) for number in known_capabilities())


def landlock_abi() -> int:
    """Version of Landlock this kernel offers. Raises: OSError (ENOSYS: not built in, EOPNOTSUPP: not switched on)."""
    return call(_NR_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_RULESET_VERSION)


def landlock_ruleset(files: int, network: int, scoped: int) -> int:
    """Make a ruleset that denies every right named and allows nothing. Returns its descriptor. Raises: OSError.

    Older kernels know a shorter structure; the fields they do not know must then be 0 and are not sent.
    """
    words = (files, network, scoped) if scoped else (files, network) if network else (files,)
    packed = struct.pack(f"{len(words)}Q", *words)
    return call(_NR_LANDLOCK_CREATE_RULESET, ctypes.create_string_buffer(packed, len(packed)), len(packed), 0)


class DescriptorClosing:
    """close_range from a number upwards with its arguments prebuilt (rule 2). os.closerange would fall back to a loop of a billion."""

    def __init__(self, first: int) -> None:
        self._arguments = (ctypes.c_long(_NR_CLOSE_RANGE), ctypes.c_long(first), ctypes.c_long(2**32 - 1), ctypes.c_long(0))

    def apply(self) -> None:
        """Close everything from there on. Raises: OSError (ENOSYS before Linux 5.9)."""
        if _syscall(*self._arguments) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))


class LandlockRestriction:
    """restrict_self with its arguments prebuilt (rule 2)."""

    def __init__(self, ruleset_fd: int) -> None:
        self._arguments = (ctypes.c_long(_NR_LANDLOCK_RESTRICT_SELF), ctypes.c_long(ruleset_fd), ctypes.c_long(0))

    def apply(self) -> None:
        """Put this process under the ruleset for good. Raises: OSError."""
        if _syscall(*self._arguments) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))


class _FilterProgram(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class SyscallFilter:
    """A compiled filter program, ready to be loaded (rule 2)."""

    def __init__(self, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._program = _FilterProgram(len(program) // 8, ctypes.addressof(self._buffer))
        self._arguments = (
            ctypes.c_long(_NR_SECCOMP),
            ctypes.c_long(_SECCOMP_SET_MODE_FILTER),
            ctypes.c_long(0),
            ctypes.byref(self._program),
        )
        self.instructions = len(program) // 8

    def load(self) -> None:
        """Put this process under the filter for good. Raises: OSError."""
        if _syscall(*self._arguments) < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
