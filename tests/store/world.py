"""A small home with a store in it, records to put there, and turns to write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import apsw

from kernel.core.builtin import RUNTIME
from kernel.core.decision import AuditEntry, Decision, Origin, Speaker, Stamp
from kernel.core.inventory import Enablement, publish
from kernel.core.machines import CallStatus, InstanceState, InteractionStatus
from kernel.core.manifest import Manifest, parse_manifest
from kernel.core.records import (
    AppSession,
    InboxRow,
    Instance,
    Interaction,
    InteractionKind,
    InteractionSource,
    Key,
    OutboxKind,
    OutboxRow,
    PublishedInventory,
    Record,
    Source,
    TimelineMessage,
    ToolCall,
    encode_body,
    key_digest,
)
from kernel.database import load_checksums
from kernel.store import Store

NOW = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
AGENT = Origin(speaker=Speaker.AGENT, source=Source.AGENT)
_GOLDEN = Path(__file__).parents[1] / "golden" / "manifest__valid.json"


def golden_manifest(**changes: Any) -> Manifest:
    """The golden Manifest, changed at its top level."""
    return parse_manifest(json.loads(_GOLDEN.read_text("utf-8"))["manifest"] | changes)


def two_apps() -> dict[str, Manifest]:
    """The kernel's own Manifest and the golden one."""
    golden = golden_manifest()
    return {RUNTIME.app_scope: RUNTIME, golden.app_scope: golden}


@dataclass
class World:
    """One home. `open` and `close` are starts and ends of a kernel; `turn` writes in a transaction of its own."""

    folder: Path
    manifests: Mapping[str, Manifest] = field(default_factory=two_apps)
    boot_id: str = "boot-1"
    boottime_ms: int = 1_000
    now: datetime = NOW

    def __post_init__(self) -> None:
        epochs = count(1)
        self.make_epoch: Callable[[], str] = lambda: f"e{next(epochs)}"
        self._store: Store | None = None

    @property
    def path(self) -> Path:
        return self.folder / "kernel.db"

    @property
    def wal_path(self) -> Path:
        return self.folder / "kernel.db-wal"

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = Store.open(
                self.path,
                manifests=self.manifests,
                make_epoch=self.make_epoch,
                make_id=lambda kind, epoch: f"{kind}_{epoch}_00",
                now=lambda: self.now,
            )
        return self._store

    def crash(self) -> None:
        """End without a tidy close: the log stays as it is."""
        store, self._store = self.store, None
        store.abandon()

    def close(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            store.close()

    def reopen(self) -> Store:
        self.close()
        return self.store

    def stamp(self) -> Stamp:
        self.now += timedelta(milliseconds=1)
        self.boottime_ms += 1
        return Stamp(now=self.now, boot_id=self.boot_id, boottime_ms=self.boottime_ms, token="0" * 32, first_number=self.store.next_number)

    def apply(self, *puts: Record, audit: tuple[AuditEntry, ...] = (), removed: tuple[int, ...] = (), numbers: int = 0) -> None:
        decision = Decision(puts=puts, audit=audit, removed_rows=removed, numbers_used=numbers)
        self.store.apply(decision, stamp=self.stamp(), origin=AGENT, command="test.turn")

    def turn(self, *puts: Record, audit: tuple[AuditEntry, ...] = (), removed: tuple[int, ...] = (), numbers: int = 0) -> None:
        self.store.begin()
        self.apply(*puts, audit=audit, removed=removed, numbers=numbers)
        self.store.commit()

    def count(self, times: int) -> None:
        """Commit that many turns of one timeline message each, numbered on."""
        for _ in range(times):
            number = self.store.next_number
            self.turn(message(number), audit=(AuditEntry(event="message.stored", number=number),), numbers=1)

    def publish(self, disabled: frozenset[str] = frozenset()) -> PublishedInventory:
        """The row of the inventory that follows from these switches."""
        view = self.store.view
        is_known = view.fingerprint(view.inventory.revision) is not None
        new = publish(view.inventory, view.epoch, view.manifests, Enablement(disabled)) if is_known else view.inventory
        return PublishedInventory(number=new.number, epoch=new.epoch, digest=new.digest, fingerprint_cbor=encode_body(new.fingerprint()))


def open_raw(path: Path) -> apsw.Connection:
    """A connection for looking at, or spoiling, a database that no kernel has open."""
    load_checksums()
    connection = apsw.Connection(str(path), vfs="cksmvfs")
    connection.pragma("locking_mode", "exclusive")
    return connection


def flip_bit(path: Path, offset: int, bit: int = 0) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


# --------------------------------------------------------------------------------- records


def call(number: int, status: CallStatus = CallStatus.RECEIVED, **changes: Any) -> ToolCall:
    facts: dict[str, Any] = {
        "number": number,
        "call_id": f"call-{number}",
        "tool_id": "task-dashboard.open",
        "inventory_revision": "e1.1",
        "descriptor_digest": "d" * 64,
        "source": Source.AGENT,
        "app_scope": "task-dashboard",
        "conversation_id": "conversation_e1_00",
        "content_digest": b"c" * 32,
        "input_cbor": encode_body({"task": number}),
        "created_at": NOW,
        "updated_at": NOW,
        "status": status,
    }
    return ToolCall(**(facts | changes))


def instance(number: int, state: InstanceState = InstanceState.STARTING, **changes: Any) -> Instance:
    facts: dict[str, Any] = {
        "number": number,
        "instance_id": f"ins_e1_{number:02x}",
        "app_scope": "task-dashboard",
        "app_version": "1.0.0",
        "bundle_digest": "b" * 64,
        "conversation_id": "conversation_e1_00",
        "app_session_id": "ses_e1_01",
        "started_at": NOW,
        "state": state,
    }
    return Instance(**(facts | changes))


def session(number: int, **changes: Any) -> AppSession:
    facts: dict[str, Any] = {
        "number": number,
        "app_session_id": f"ses_e1_{number:02x}",
        "app_scope": "task-dashboard",
        "conversation_id": "conversation_e1_00",
        "opened_at": NOW,
    }
    return AppSession(**(facts | changes))


def inbox_row(number: int, **changes: Any) -> InboxRow:
    facts: dict[str, Any] = {
        "number": number,
        "message_id": f"in-{number}",
        "app_scope": "task-dashboard",
        "conversation_id": "conversation_e1_00",
        "instance_id": "ins_e1_01",
        "topic": "tasks",
        "body_cbor": encode_body({"n": number}),
        "created_at": NOW,
    }
    return InboxRow(**(facts | changes))


def outbox_row(number: int, kind: OutboxKind = OutboxKind.MESSAGE, **changes: Any) -> OutboxRow:
    facts: dict[str, Any] = {
        "number": number,
        "message_id": f"msg_e1_{number:02x}",
        "destination": Source.AGENT,
        "conversation_id": "conversation_e1_00",
        "kind": kind,
        "envelope_cbor": encode_body({"n": number}),
        "created_at": NOW,
    }
    return OutboxRow(**(facts | changes))


def message(number: int, **changes: Any) -> TimelineMessage:
    facts: dict[str, Any] = {
        "number": number,
        "message_id": f"text-{number}",
        "conversation_id": "conversation_e1_00",
        "author": Source.AGENT,
        "type": "lineup.v1.message.text",
        "body_cbor": encode_body({"text": f"number {number}"}),
        "created_at": NOW,
    }
    return TimelineMessage(**(facts | changes))


def interaction(number: int, status: InteractionStatus = InteractionStatus.PRESENTED, **changes: Any) -> Interaction:
    facts: dict[str, Any] = {
        "number": number,
        "interaction_id": f"int_e1_{number:02x}",
        "kind": InteractionKind.CONFIRM,
        "source": InteractionSource.AGENT_TOOL,
        "owner_app_scope": "chat",
        "owner_instance_id": None,
        "conversation_id": "conversation_e1_00",
        "call_number": None,
        "parent_call_number": None,
        "app_session_id": None,
        "request_cbor": encode_body({"title": "Send?", "prompt": "Send it."}),
        "shown_digest": b"s" * 32,
        "created_at": NOW,
        "status": status,
        "updated_at": NOW,
    }
    return Interaction(**(facts | changes))


def key_of(record: ToolCall) -> Key:
    digest = key_digest("call", record.conversation_id, record.call_id)
    return Key(digest=digest, content_digest=record.content_digest, number=record.number)


MakeWorld = Callable[[], World]
