"""Attacks by name. An attack returns text, or raises what the system answered; a killing one never returns.

ctypes is not importable; it is found through the object graph, as any native attacker would find another way.
"""

from __future__ import annotations

import errno
import os
import sys
import types


def _find_ctypes():
    for kind in object.__subclasses__():
        if kind.__name__ == "CDLL":
            return types.SimpleNamespace(**kind.__init__.__globals__, CDLL_found=kind)
    raise RuntimeError("no CDLL in the object graph")


ctypes = _find_ctypes()
LONG = ctypes.c_long
libc = ctypes.CDLL_found(None, use_errno=True)
libc.syscall.restype = LONG


def raw(number, *arguments):
    """One system call; its result, or the name of its errno."""
    ctypes.set_errno(0)
    result = libc.syscall(LONG(number), *[LONG(a) if isinstance(a, int) else a for a in arguments])
    return f"ret {result}" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


def text(value):
    return ctypes.c_char_p(value)


def zeros(size):
    return ctypes.create_string_buffer(size)


def executable_page():
    page = zeros(8192)
    return raw(10, (ctypes.addressof(page) + 4095) & ~4095, 4096, 7)


def modules_by_import(*names):
    found = []
    for name in names:
        try:
            __import__(name)
        except ImportError:
            continue
        found.append(name)
    return ",".join(found) or "none"


def open_descriptors():
    found = []
    for number in range(512):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return ",".join(map(str, found))


def fork_and_reap():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return "forked"


def clone_and_end():
    outcome = raw(56, 17, 0, 0, 0, 0)
    if outcome == "ret 0":  # the child, where it is allowed: it must not go on in the event loop it shares
        os._exit(0)
    return outcome


def bomb_of_memory():
    hoard = []
    try:
        while True:
            hoard.append(bytearray(1_000_000))
    except MemoryError:
        size = len(hoard)
        hoard.clear()
        return "bounded" if 150 < size <= 256 else f"{size} MB"


def endless_memory():
    hoard = []
    while True:
        hoard.append(bytearray(1_000_000))


def bomb_of_descriptors():
    import _socket

    hoard = []
    try:
        while len(hoard) < 200:
            hoard.append(_socket.socketpair(1, 1 | 0x80000, 0))
        return "returned"
    except OSError as error:
        size = len(hoard)
        hoard.clear()
        return f"{errno.errorcode[error.errno]} after {'few' if size <= 16 else size}"


def spin():
    while True:
        pass


def flood():
    block = b"x" * 65536
    while True:
        os.write(3, block)


def start_thread():
    import threading

    threading.Thread(target=int).start()


def pass_descriptor():
    import _socket

    sock = _socket.socket(1, 1, 0, fileno=3)
    try:
        sock.sendmsg([b"x"], [(1, 1, b"\x01\x00\x00\x00")])
    finally:
        sock.detach()


def make_socket(family, kind):
    import _socket

    _socket.socket(family, kind)


ATTACKS = {
    # files
    "open a file": lambda: open("/etc/passwd").close(),
    "open own memory": lambda: open("/proc/self/mem", "r+b").close(),
    "open the environment of PID 1": lambda: raw(257, -100, text(b"/proc/1/environ"), 0),
    "open the root, old call": lambda: raw(2, text(b"/"), 0),
    "creat": lambda: raw(85, text(b"/x"), 0o600),
    "openat2": lambda: raw(437, -100, text(b"/"), zeros(24), 24),
    "list the root": lambda: os.listdir("/"),
    "stat the root": lambda: os.stat("/"),
    "getdents on the channel": lambda: raw(217, 3, zeros(100), 100),
    "open by handle": lambda: raw(304, 3, None, 0),
    "name to handle": lambda: raw(303, -100, text(b"/"), None, None, 0),
    "memfd_create": lambda: raw(319, text(b"a"), 0),
    "memfd_secret": lambda: raw(447, 0),
    # network and descriptors
    "socket INET": lambda: make_socket(2, 1),
    "socket UNIX": lambda: make_socket(1, 1),
    "socket NETLINK": lambda: make_socket(16, 3),
    "connect to an abstract name": lambda: raw(42, 3, text(b"\x01\x00\x00abc"), 6),
    "bind": lambda: raw(49, 3, text(b"\x01\x00\x00abc"), 6),
    "socketpair DGRAM": lambda: raw(53, 1, 2, 0, zeros(8)),
    "send a descriptor": pass_descriptor,
    "sendmsg": lambda: raw(46, 3, zeros(56), 0),
    "sendmmsg": lambda: raw(307, 3, zeros(64), 1, 0),
    "recvmsg": lambda: raw(47, 3, zeros(56), 0),
    "duplicate a descriptor": lambda: raw(72, 3, 0, 10),
    # processes
    "fork": fork_and_reap,
    "vfork": lambda: raw(58),
    "clone": clone_and_end,
    "clone3": lambda: raw(435, zeros(88), 88),
    "start a thread": start_thread,
    "execve": lambda: os.execv("/bin/sh", ["sh"]),
    "execveat": lambda: raw(322, 3, text(b""), None, None, 0x1000),
    "ptrace": lambda: raw(101, 16, 1, 0, 0),
    "read the memory of PID 1": lambda: raw(310, 1, None, 0, None, 0, 0),
    "write the memory of PID 1": lambda: raw(311, 1, None, 0, None, 0, 0),
    "signal PID 1": lambda: raw(62, 1, 0),
    "signal everybody": lambda: raw(62, -1, 0),
    "signal a thread": lambda: raw(234, 1, 1, 0),
    "queue a signal": lambda: raw(129, 1, 0, 0),
    "pidfd of PID 1": lambda: raw(434, 1, 0),
    "signal through a pidfd": lambda: raw(424, 3, 0, 0, 0),
    "take a descriptor of PID 1": lambda: raw(438, 3, 0, 0),
    "kcmp": lambda: raw(312, 1, 1, 0, 0, 0),
    # code
    "map executable memory": lambda: raw(9, 0, 4096, 7, 0x22, -1, 0),
    "make memory executable": executable_page,
    "make memory executable by key": lambda: raw(329, 0, 4096, 7, -1),
    "map a file": lambda: raw(9, 0, 4096, 1, 2, 3, 0),
    "share memory": lambda: raw(9, 0, 4096, 3, 0x21, -1, 0),
    "map at a fixed place": lambda: raw(9, 0x10000, 4096, 3, 0x32, -1, 0),
    "shmget": lambda: raw(29, 0, 4096, 0o1666),
    "personality": lambda: raw(135, 0x400000),
    "modify_ldt": lambda: raw(154, 0, None, 0),
    # the machine
    "io_uring": lambda: raw(425, 8, zeros(120)),
    "bpf": lambda: raw(321, 0, None, 0),
    "perf events": lambda: raw(298, None, 0, -1, -1, 0),
    "userfaultfd": lambda: raw(323, 1),
    "keyctl": lambda: raw(250, 0, -3, 0, 0, 0),
    "add_key": lambda: raw(248, None, None, None, 0, 0),
    "mount": lambda: raw(165, None, text(b"/"), text(b"tmpfs"), 0, None),
    "fsopen": lambda: raw(430, text(b"tmpfs"), 0),
    "new user namespace": lambda: raw(272, 0x10000000),
    "join a namespace": lambda: raw(308, 3, 0),
    "chroot": lambda: raw(161, text(b"/")),
    "pivot_root": lambda: raw(155, text(b"."), text(b".")),
    "prctl dumpable": lambda: raw(157, 4, 1, 0, 0, 0),
    "arch_prctl": lambda: raw(158, 0x1002, 0),
    "another filter": lambda: raw(317, 2, 0, None),
    "another Landlock": lambda: raw(444, None, 0, 1),
    "raise a limit": lambda: raw(302, 0, 7, None, None),
    "limits of PID 1": lambda: raw(302, 1, 7, None, None),
    "setuid": lambda: raw(105, 0),
    "capset": lambda: raw(126, None, None),
    "priority": lambda: raw(141, 0, 0, -20),
    "affinity": lambda: raw(203, 0, 8, zeros(8)),
    "interval timer": lambda: raw(38, 0, None, None),
    "uname": lambda: raw(63, zeros(400)),
    "reboot": lambda: raw(169, 0, 0, 0),
    "load a module": lambda: raw(175, None, 0, None),
    "kexec": lambda: raw(246, 0, 0, None, 0),
    "kernel log": lambda: raw(103, 3, None, 0),
    "type into a terminal": lambda: raw(16, 3, 0x5412, text(b"x")),
    "type into a terminal, high bits": lambda: raw(16, 3, 0x1_0000_5412, text(b"x")),
    "list interfaces": lambda: raw(16, 3, 0x8912, None),
    "own the signals of a descriptor": lambda: raw(72, 3, 8, 1),
    "asynchronous descriptor": lambda: raw(72, 3, 4, 0x2000),
    "splice": lambda: raw(275, 3, None, 3, None, 1, 0),
    "vmsplice": lambda: raw(278, 3, None, 0, 0),
    "an unknown call": lambda: raw(9999),
    "an x32 call": lambda: raw(0x40000000 + 39),
    # what is around
    "environment": lambda: str(dict(os.environ)),
    "arguments": lambda: f"{sys.argv} {sys.orig_argv} {sys.executable}",
    "own number and parent": lambda: f"{os.getpid() > 1},{os.getppid()}",
    "own user": lambda: f"{os.getuid()},{os.getgid()}",
    "descriptors": open_descriptors,
    "import of tools": lambda: modules_by_import("ctypes", "subprocess", "pyseccomp", "sqlite3", "ssl", "kernel", "workers.launcher.birth"),
    # bombs
    "bomb of memory": bomb_of_memory,
    "bomb of descriptors": bomb_of_descriptors,
    "endless memory": endless_memory,
    "spin": spin,
    "flood": flood,
    "leave with 7": lambda: os._exit(7),
    "crash": lambda: ctypes.string_at(0),
}

TRIED_AT_IMPORT = ("open a file", "socket INET", "fork", "stat the root", "environment", "descriptors", "memfd_create")


def attempt(name):
    """Try one attack: `returned …`, or the errno or kind of what was raised."""
    try:
        result = ATTACKS.get(name, lambda: "no such attack")()
    except MemoryError:
        raise
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return result if isinstance(result, str) else "returned"
