"""More promises that a trace shows: instances, their processes, the inventory. Rules: invariants_of_traces.py."""

from __future__ import annotations

from kernel.core.events import Death, WorkerExited
from kernel.core.machines import INSTANCE_FINAL, InstanceState
from kernel.core.records import (
    AppSession,
    Instance,
    Interaction,
    InteractionSource,
    PublishedInventory,
    ToolCall,
    decode_body,
)
from kernel.core.surface_records import Surface
from kernel.protocol.host import AppClose, OutboxAcknowledge
from kernel.protocol.host_interactions import InteractionAnswer
from lineup_sdk.protocol import messages as m
from tests.trace import Decided, Opened, Processed, Trace

_CRASHES = 3
_WINDOW_MS = 60_000
_AT_WORK = frozenset({InstanceState.BACKGROUND, InstanceState.FOREGROUND, InstanceState.STARTING})


def check_inv_36(trace: Trace) -> list[str]:
    """A start leaves no instance starting or stopping that was so before: suspended first, and then perhaps revived into a new life."""
    found: list[str] = []
    for decided, instances in trace.known_before(Instance, "instance_id"):
        if decided.name != "Booted":
            continue
        put = {one.instance_id: one for one in decided.puts_of(Instance)}
        for old in instances.values():
            if old.state in {InstanceState.STARTING, InstanceState.STOPPING}:
                new = put.get(old.instance_id)
                is_over = new is not None and (new.state in {InstanceState.SUSPENDED, *INSTANCE_FINAL} or new.life > old.life)
                found += [] if is_over else [f"INV-36: a start left {old.instance_id} {old.state}"]
    return found


def check_inv_38(trace: Trace) -> list[str]:
    """No instance id of the kernel is ever given twice, not even over a restored backup."""
    created = [entry.instance_id for decided in trace.decided() for entry in decided.decision.audit if entry.event == "instance.created"]
    return [f"INV-38: {name} was given twice" for name in set(created) if created.count(name) > 1]


def check_inv_39(trace: Trace) -> list[str]:
    """No instance changes its state without a decision that is in the audit; open calls are cancelled by a close after a yes only."""
    found = _closed_in_silence(trace)
    for decided, instances in trace.known_before(Instance, "instance_id"):
        for one in decided.puts_of(Instance):
            old = instances.get(one.instance_id)
            if (old is None or old.state is not one.state) and not decided.decision.audit:
                found.append(f"INV-39: {decided.name} moved an instance unseen")
    return found


def _was(instance: Instance | None, states: set[InstanceState]) -> bool:
    return instance is not None and instance.state in states


def _closed_in_silence(trace: Trace) -> list[str]:
    """What the person's close, or an answer, did to Apps at work without a yes to the kernel's question."""
    found: list[str] = []
    over = {InstanceState.STOPPING, *INSTANCE_FINAL}
    for decided, before in trace.known_before(Instance, "instance_id"):
        closed = [one for one in decided.puts_of(Instance) if one.state in over and not _was(before.get(one.instance_id), over)]
        if isinstance(decided.command, AppClose) and closed and decided.puts_of(ToolCall):
            found.append("INV-39: an App at work was closed without a question")
        if isinstance(decided.command, InteractionAnswer) and closed:
            answered = [one for one in decided.puts_of(Interaction) if one.source is InteractionSource.RUNTIME_POLICY]
            answers = [decode_body(one.result_cbor or b"").get("answer") for one in answered]
            if answers != [{"approved": True}]:
                found.append("INV-39: an answer closed an App that was not asked about")
    return found


_ENDINGS = (m.ToolCancel, m.ToolComplete, m.ToolFail)


def check_inv_40(trace: Trace) -> list[str]:
    """The end of a call closes no App, no surface and no App session."""
    found: list[str] = []
    for decided in trace.decided():
        is_ending = isinstance(decided.command, (*_ENDINGS, OutboxAcknowledge)) or decided.name == "TimePassed"
        closed = [one for one in decided.puts_of(AppSession, Surface) if one.closed_at is not None]
        closed += [one for one in decided.puts_of(Instance) if one.state in {*INSTANCE_FINAL, InstanceState.STOPPING}]
        if is_ending and closed:
            found.append(f"INV-40: {decided.name} closed something")
    return found


def check_inv_41(trace: Trace) -> list[str]:
    """The 4th crash within 60 s fails its instance, an earlier one does not, and no other instance fails with it."""
    found: list[str] = []
    crashes: dict[tuple[str, str], list[int]] = {}
    for decided, instances in trace.since_restore().known_before(Instance, "instance_id"):
        command, now = decided.command, decided.stamp.boottime_ms
        if not isinstance(command, WorkerExited):
            continue
        failed = {one.instance_id for one in decided.puts_of(Instance) if one.state is InstanceState.FAILED}
        if failed - {command.instance_id}:
            found.append("INV-41: another instance failed with it")
        known = instances.get(command.instance_id)
        if known is None or command.death is not Death.CRASH or known.state not in _AT_WORK or not decided.puts_of(Instance):
            continue
        boot_id = decided.stamp.boot_id
        before = known.crashes_ms if known.crash_boot_id == boot_id else ()  # for one that a backup brought
        counted = crashes.setdefault((command.instance_id, boot_id), list(before))
        counted.append(now)
        in_window = [at for at in counted if now - at < _WINDOW_MS]
        if (len(in_window) > _CRASHES) != (command.instance_id in failed):
            found.append(f"INV-41: {len(in_window)} crashes within a minute and the instance is not what it should be")
    return found


def check_inv_53(trace: Trace) -> list[str]:
    """A revision stands for one content for ever, and numbers rise within an epoch."""
    found: list[str] = []
    contents: dict[tuple[str, int], str] = {}
    newest: dict[str, int] = {}
    epochs: set[str] = set()
    for event in trace.events:
        if isinstance(event, Opened):
            if event.is_restored and event.epoch in epochs:
                found.append(f"INV-53: epoch {event.epoch} goes on over a restored backup")
            epochs.add(event.epoch)
        for one in event.puts_of(PublishedInventory) if isinstance(event, Decided) else []:
            key = (one.epoch, one.number)
            if key in contents:
                found.append(f"INV-53: revision {key} was published twice")
            if one.number <= newest.get(one.epoch, 0):
                found.append(f"INV-53: revision {key} goes back")
            contents[key] = one.digest
            newest[one.epoch] = one.number
    return found


def check_inv_54(trace: Trace) -> list[str]:
    """The inventory changes by a start or by the person's switch, by nothing else."""
    may = {"Booted", "RecoverCapabilities", "app.disable", "app.enable"}
    changes = [one for one in trace.decided() if one.puts_of(PublishedInventory)]
    return [f"INV-54: {one.name} changed the inventory" for one in changes if one.name not in may]


def check_processes(trace: Trace) -> list[str]:
    """A life has one process, and is started once."""
    started = [(one.instance_id, one.life) for one in trace.since_restore().events if isinstance(one, Processed) and one.verb == "start"]
    return [f"8.1: {name} {life} was started twice" for name, life in {one for one in started if started.count(one) > 1}]
