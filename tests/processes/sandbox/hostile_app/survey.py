"""Two searches from inside: the whole table of system calls, and the whole readable memory."""

from __future__ import annotations

import socket

from attacks import LONG, ctypes, errno, libc


def run(first, last, channel):
    """Make every call with six zeros, telling each outcome before the next; the last that was begun is the one that killed."""
    for number in range(first, last):
        channel.send({"type": "begun", "number": number})
        channel.flush()
        ctypes.set_errno(0)
        result = libc.syscall(LONG(number), *[LONG(0)] * 6)
        outcome = "returned" if result >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
        channel.send({"type": "ended", "number": number, "outcome": outcome})
        channel.flush()
    return "surveyed"


class _Probe:
    """Reads memory without faulting: write(2) answers EFAULT for what is not mapped, where a load would kill the process."""

    def __init__(self):
        self._in, self._out = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    def page(self, address):
        if libc.write(self._in.fileno(), ctypes.c_void_p(address), LONG(4096)) != 4096:
            return None
        data = b""
        while len(data) < 4096:
            data += self._out.recv(4096 - len(data))
        return data


def search_memory(head, tail):
    """Count head + tail around the heap, libc's data, the first stack and this code's own objects; they are never joined here."""
    probe = _Probe()
    head, tail = head.encode(), tail.encode()
    environ = ctypes.c_void_p.in_dll(libc, "environ")
    stack_end = ctypes.c_void_p.in_dll(libc, "__libc_stack_end")
    found, seen = 0, set()
    for start in (id(head), id(type), id(search_memory), ctypes.addressof(environ), environ.value, stack_end.value):
        for step in (4096, -4096):
            address = (start or 0) & ~4095
            while address not in seen and (data := probe.page(address)) is not None:
                seen.add(address)
                found += _count(data + (probe.page(address + 4096) or b"")[: len(head) + len(tail)], head, tail)
                address += step
    return f"{found} in {'many' if len(seen) > 1000 else len(seen)} pages"


def _count(data, head, tail):
    found, at = 0, data.find(head)
    while at >= 0:
        found += data.startswith(tail, at + len(head))
        at = data.find(head, at + 1)
    return found
