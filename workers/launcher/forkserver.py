"""The life of the zygote after its birth: take a channel, fork, report, reap. One blocking loop, no threads, no signal handlers.

Rules:
1. The zygote reads nothing a worker wrote: the channel goes from the kernel to the child untouched.
2. The end of the control channel is the end of the zygote, and PID 1 takes every worker with it.
3. A child never returns into this loop: it is sealed, runs the guest and ends, or ends.
"""

from __future__ import annotations

import array
import os
import select
import socket
from typing import NoReturn

from lineup_sdk.protocol.control import (
    MAX_PACKET_BYTES,
    TO_ZYGOTE,
    ExitCode,
    Exited,
    NotSpawned,
    Ready,
    Spawn,
    Spawned,
    decode,
    encode,
)
from workers.launcher import guest, linux, seal
from workers.launcher.seal import SealPlan

_HOW = {os.CLD_EXITED: "exited", os.CLD_KILLED: "killed", os.CLD_DUMPED: "dumped"}


class ForkServer:
    """Owns the control channel, the prebuilt seal and a pidfd for every live child."""

    def __init__(self, control: socket.socket, plan: SealPlan) -> None:
        self._control = control
        self._plan = plan
        self._poll = select.poll()
        self._children: dict[int, tuple[int, int]] = {}  # pidfd → (spawn number, pid)

    def serve(self) -> None:
        """Say ready, then serve until the kernel closes the control channel."""
        own = os.pidfd_open(os.getpid())
        self._send(encode(Ready()), own)
        os.close(own)
        self._poll.register(self._control.fileno(), select.POLLIN)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != self._control.fileno():
                    self._reap(descriptor)
                elif not self._take_request():
                    return

    def _take_request(self) -> bool:
        packet, descriptors, _, _ = socket.recv_fds(self._control, MAX_PACKET_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return False
        message = decode(packet, TO_ZYGOTE)
        if isinstance(message, Spawn) and len(descriptors) == 1:
            self._spawn(message.number, descriptors[0])
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _spawn(self, number: int, channel_fd: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            self._send(encode(NotSpawned(number=number, errno=error.errno or 0)))
            return
        if pid == 0:
            _become_worker(self._plan, channel_fd)
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = (number, pid)
        self._poll.register(pidfd, select.POLLIN)
        self._send(encode(Spawned(number=number)), pidfd)

    def _reap(self, pidfd: int) -> None:
        ended = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
        if ended is None:
            return
        number, _ = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        self._send(encode(Exited(number=number, how=_HOW[ended.si_code], status=ended.si_status)))

    def _send(self, packet: bytes, descriptor: int | None = None) -> None:
        beside = [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        self._control.sendmsg([packet], beside)


def _become_worker(plan: SealPlan, channel_fd: int) -> NoReturn:
    try:
        linux.set_process_name("lineup-worker")
        seal.move_channel(channel_fd)
        seal.put_on(plan)
    except BaseException:  # whatever went wrong, an unsealed process must not go on
        os._exit(ExitCode.SEAL_FAILED)
    guest.run(seal.CHANNEL_FD)
