"""The system calls of a sealed worker: one table of literals, compiled once in the zygote. x86_64.

Use: `compile_filter()` returns the BPF program; it runs while the zygote still sees the file system (the library needs a real file).
Rules:
1. Default deny: what has no row here kills the process (SIGSYS), which no handler can catch and nobody can mistake.
2. A soft denial is for what CPython does lazily: the app gets an ordinary exception, as on an empty machine.
3. Found by strace and then ablation: each row of ALLOWED is needed by trio or the interpreter, or is harmless and used by a signal
   handler or a lock with a timeout. Take a row out and run the tests before arguing with it.
4. Comparisons are exact on 64 bits where the row allows: high bits that the kernel would ignore do not match, and kill.
5. An unknown architecture (i386, x32) kills.
"""

from __future__ import annotations

import errno
import os
import platform
import tempfile
from typing import Any

MACHINE = "x86_64"

ALLOWED: tuple[str, ...] = (
    "brk",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "exit",
    "exit_group",
    "fstat",  # glibc 2.39 asks this for an fstat again, older ones the newfstatat below
    "futex",
    "getegid",
    "geteuid",
    "getgid",
    "getpid",
    "getppid",
    "getrandom",
    "getsockname",
    "gettid",
    "gettimeofday",
    "getuid",
    "mremap",
    "munmap",
    "nanosleep",
    "read",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_yield",
    "sigaltstack",
    "time",
    "write",
)

_PROT_EXEC = 4
_MAP_PRIVATE_ANONYMOUS = 0x22
_MAP_MASK = 0xFFFF_FFFF & ~(0x4000 | 0x20000)  # every flag but MAP_NORESERVE and MAP_STACK, which malloc may add
_AF_UNIX, _SOCK_STREAM_CLOEXEC = 1, 1 | 0x80000
_SOL_SOCKET, _SO_SNDBUF, _SO_RCVBUF, _IPPROTO_TCP = 1, 7, 8, 6
_FIONBIO, _TCGETS = 0x5421, 0x5401
_F_GETFD, _F_GETFL = 1, 3
_AT_EMPTY_PATH, _AT_SYMLINK_NOFOLLOW = 0x1000, 0x100

# (argument number, "==" value) or (argument number, mask, value): all of a row must hold.
Condition = tuple[int, int] | tuple[int, int, int]

RESTRICTED: tuple[tuple[str, tuple[Condition, ...]], ...] = (
    ("fcntl", ((1, _F_GETFD),)),
    ("fcntl", ((1, _F_GETFL),)),
    ("ioctl", ((1, _FIONBIO),)),
    ("madvise", ((2, 4),)),  # MADV_DONTNEED
    ("madvise", ((2, 8),)),  # MADV_FREE
    ("madvise", ((2, 14),)),  # MADV_HUGEPAGE
    ("mmap", ((2, _PROT_EXEC, 0), (3, _MAP_MASK, _MAP_PRIVATE_ANONYMOUS))),  # no code, no file, no fixed place, not shared
    ("mprotect", ((2, _PROT_EXEC, 0),)),
    ("newfstatat", ((3, _AT_EMPTY_PATH),)),  # glibc's fstat, by signal.set_wakeup_fd
    ("recvfrom", ((4, 0),)),  # the wake-up pair of trio, no addresses
    ("sendto", ((4, 0),)),
    ("setsockopt", ((1, _SOL_SOCKET), (2, _SO_RCVBUF), (4, 4))),
    ("setsockopt", ((1, _SOL_SOCKET), (2, _SO_SNDBUF), (4, 4))),
    ("socketpair", ((0, _AF_UNIX), (1, _SOCK_STREAM_CLOEXEC), (2, 0))),  # trio makes two
)

SOFT_DENIED: tuple[tuple[int, tuple[str, ...]], ...] = (
    (
        errno.EACCES,
        (
            "access", "chdir", "faccessat", "faccessat2", "getcwd", "getdents64", "lstat", "mkdir", "mkdirat", "open", "openat",
            "openat2", "readlink", "readlinkat", "rename", "stat", "statx", "unlink", "unlinkat",
        ),
    ),
    (
        errno.EPERM,
        (
            "accept4", "bind", "connect", "getpeername", "getsockopt", "listen", "recvmsg", "sendmsg", "shutdown", "socket",
        ),
    ),
    (errno.EAGAIN, ("clone", "clone3", "fork", "vfork")),  # "can't start new thread"
    (
        errno.ENOSYS,
        (
            "dup", "dup2", "dup3", "eventfd2", "getrlimit", "getrusage", "lseek", "memfd_create", "pipe2", "poll",
            "ppoll", "prlimit64", "rseq", "sched_getaffinity", "select", "set_robust_list", "sysinfo", "tgkill", "times", "uname",
        ),
    ),
)  # fmt: skip

SOFT_DENIED_ARGUMENTS: tuple[tuple[int, str, tuple[Condition, ...]], ...] = (
    (errno.EACCES, "mmap", ((2, _PROT_EXEC, _PROT_EXEC),)),
    (errno.EACCES, "mprotect", ((2, _PROT_EXEC, _PROT_EXEC),)),
    (errno.EACCES, "newfstatat", ((3, 0),)),
    (errno.EACCES, "newfstatat", ((3, _AT_SYMLINK_NOFOLLOW),)),
    (errno.ENOTTY, "ioctl", ((1, _TCGETS),)),
    (errno.EPERM, "setsockopt", ((1, _IPPROTO_TCP),)),  # trio tries TCP_NODELAY on a UNIX socket
)

_OPTIMIZE_BINARY_TREE = 2


def compile_filter() -> bytes:
    """Compile the table. Raises: OSError, ImportError (no libseccomp, or another machine than the table is written for)."""
    if platform.machine() != MACHINE:
        raise ImportError(f"the table is written for {MACHINE}, this machine is {platform.machine()}")
    try:
        import pyseccomp
    except RuntimeError as error:  # pyseccomp's way to say that the C library is missing
        raise ImportError("the library libseccomp.so.2 was not found") from error
    rules = pyseccomp.SyscallFilter(pyseccomp.KILL_PROCESS)
    rules.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)
    rules.set_attr(pyseccomp.Attr.CTL_OPTIMIZE, _OPTIMIZE_BINARY_TREE)
    for name in ALLOWED:
        rules.add_rule_exactly(pyseccomp.ALLOW, name)
    for name, conditions in RESTRICTED:
        rules.add_rule_exactly(pyseccomp.ALLOW, name, *_arguments(pyseccomp, conditions))
    for code, names in SOFT_DENIED:
        for name in names:
            rules.add_rule_exactly(pyseccomp.ERRNO(code), name)
    for code, name, conditions in SOFT_DENIED_ARGUMENTS:
        rules.add_rule_exactly(pyseccomp.ERRNO(code), name, *_arguments(pyseccomp, conditions))
    return _export(rules)


def _arguments(pyseccomp: Any, conditions: tuple[Condition, ...]) -> list[Any]:
    return [
        pyseccomp.Arg(c[0], pyseccomp.EQ, c[1]) if len(c) == 2 else pyseccomp.Arg(c[0], pyseccomp.MASKED_EQ, c[1], c[2]) for c in conditions
    ]


def _export(rules: Any) -> bytes:
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0, os.SEEK_SET)
        return file.read()
