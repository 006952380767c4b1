"""The control channel between kernel and zygote: one CBOR map a SOCK_SEQPACKET packet, descriptors beside it. Pure.

Use: `encode(message)` gives the bytes of one packet; `decode(bytes, TO_KERNEL)` or `decode(bytes, TO_ZYGOTE)` gives the message back.
Rules:
1. The zygote first reports every layer of LAYERS, then says ready; a layer that is not ok is its last word, and no worker runs.
2. A packet is small and whole: no parts, no reply without a number, at most one descriptor with each.
3. The kernel checks that every name of LAYERS was reported as ok. The list stands here so that both ends hold the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar

import cbor2

from lineup_sdk.protocol.framing import ProtocolViolation, decode_item

MAX_PACKET_BYTES = 16 * 1024

# Every layer between a worker and the machine, in the order in which it is put on.
LAYERS: tuple[str, ...] = (
    "platform",
    "preload",
    "identity",
    "user_namespace",
    "mount_namespace",
    "network_namespace",
    "ipc_namespace",
    "uts_namespace",
    "cgroup_namespace",
    "empty_root",
    "capabilities",
    "no_new_privileges",
    "pid_namespace",
    "parent_death",
    "undumpable",
    "environment",
    "imports",
    "limits",
    "landlock",
    "descriptors",
    "system_calls",
)


class ExitCode(IntEnum):
    """How a sealed process ends by itself; anything else is the app's own doing."""

    DONE = 0  # serve() returned, or the kernel closed the channel.
    SEAL_FAILED = 70  # A step of the seal failed in this process; nothing of the app ran.
    SOURCE_INVALID = 71  # The source is not what welcome announced (name, size or digest).
    IMPORT_FAILED = 72  # The entry module raised while it was imported.
    NO_APP = 73  # The entry module has no `app` with a serve method.
    APP_FAILED = 74  # serve() raised.
    WIRE_BROKEN = 75  # The kernel's frames made no sense to the guest.
    OUT_OF_MEMORY = 76  # The memory budget is used up.


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    """Kernel → zygote, with the worker's end of a new channel: fork and seal one process. Answer: spawned or not_spawned."""

    TYPE: ClassVar[str] = "spawn"
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Zygote → kernel: one layer was put on and tried (ok), or is missing: why, and how to mend the machine."""

    TYPE: ClassVar[str] = "layer"
    name: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Zygote → kernel, with a pidfd of the zygote itself (PID 1 of its namespace): spawn requests are served from now on."""

    TYPE: ClassVar[str] = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawned:
    """Zygote → kernel, with the pidfd of the new process."""

    TYPE: ClassVar[str] = "spawned"
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSpawned:
    """Zygote → kernel: the machine refused the fork. errno is the system's."""

    TYPE: ClassVar[str] = "not_spawned"
    number: int
    errno: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """Zygote → kernel: a process was reaped. how = exited | killed | dumped; status = exit code or signal number."""

    TYPE: ClassVar[str] = "exited"
    number: int
    how: str
    status: int


ControlMessage = Spawn | Layer | Ready | Spawned | NotSpawned | Exited

TO_ZYGOTE: Mapping[str, type[ControlMessage]] = {Spawn.TYPE: Spawn}
TO_KERNEL: Mapping[str, type[ControlMessage]] = {c.TYPE: c for c in (Exited, Layer, NotSpawned, Ready, Spawned)}

_KINDS: Mapping[str, type] = {"str": str, "int": int, "bool": bool}


def encode(message: ControlMessage) -> bytes:
    """Turn a message into the bytes of one packet."""
    body: dict[str, Any] = {"type": message.TYPE}
    body.update((field.name, getattr(message, field.name)) for field in fields(message))
    return cbor2.dumps(body)


def decode(packet: bytes, registry: Mapping[str, type[ControlMessage]]) -> ControlMessage:
    """Turn one packet back into its message. Raises: ProtocolViolation."""
    body = decode_item(packet)
    kind = registry.get(str(body.pop("type", "")))
    if kind is None:
        raise ProtocolViolation("unknown_type")
    expected = {field.name: _KINDS[str(field.type)] for field in fields(kind)}
    if body.keys() != expected.keys() or any(type(body[name]) is not expected[name] for name in expected):
        raise ProtocolViolation("fields")
    return kind(**body)
