"""THE table: everything that can happen to the kernel, who may say it, and who decides (STYLE 2).

Rules:
1. A command that is not here cannot happen. A speaker that is not in its row is refused capability_denied.
2. A worker also needs the grant of its own channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernel.core import (
    artifacts,
    calls,
    capabilities,
    deadlines,
    envelopes,
    inbox,
    instances,
    interactions,
    lifecycle,
    outbox,
    own_questions,
    parked,
    permissions,
    recovery,
    retention,
    routing,
    sessions,
    state,
    surfaces,
    switches,
    timeline,
    tools,
    ui,
    upkeep,
    views,
)
from kernel.core import events as e
from kernel.core.decision import Decision, Origin, Rejected, Speaker, Stamp, View
from kernel.protocol import agent as a
from kernel.protocol import host as h
from kernel.protocol import host_capabilities as hc
from kernel.protocol import host_interactions as hi
from kernel.protocol import host_sessions as hn
from kernel.protocol import host_surfaces as hs
from kernel.protocol import host_upkeep as u
from lineup_sdk.protocol import capability_messages as c
from lineup_sdk.protocol import interaction_messages as i
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import surface_messages as sm
from lineup_sdk.protocol import system_messages as y
from lineup_sdk.protocol.codes import Code

Decider = Callable[[View, Origin, Stamp, Any], Decision]

_WORKER = frozenset({Speaker.WORKER})
_AGENT = frozenset({Speaker.AGENT})
_PERSON = frozenset({Speaker.VIEW})
_KERNEL = frozenset({Speaker.KERNEL})
_DOORS = frozenset({Speaker.AGENT, Speaker.VIEW})


@dataclass(frozen=True, slots=True)
class Row:
    """Who may say a command, and which decider judges it."""

    speakers: frozenset[Speaker]
    decide: Decider


TABLE: Mapping[type, Row] = {
    # --- workers
    sm.ArtifactGet: Row(_WORKER, artifacts.get),
    e.ArtifactReceived: Row(_WORKER, artifacts.keep),  # artifact.put, once its bytes are durable
    c.CapabilityRequest: Row(_WORKER, capabilities.request),
    m.InboxAcknowledge: Row(_WORKER, inbox.acknowledge),
    m.InboxList: Row(_WORKER, inbox.list_rows),
    m.InboxSubscribe: Row(_WORKER, inbox.subscribe),
    m.LifecycleRequestBackground: Row(_WORKER, lifecycle.request_background),
    m.LifecycleRequestClose: Row(_WORKER, lifecycle.request_close),
    m.LifecycleRequestForeground: Row(_WORKER, lifecycle.request_foreground),
    m.LifecycleStarted: Row(_WORKER, instances.started),
    y.ConversationSendText: Row(_WORKER, timeline.app_sends_text),
    y.LifecycleRequestMode: Row(_WORKER, lifecycle.request_mode),
    y.TimelinePlace: Row(_WORKER, timeline.place),
    y.TimelineSubscribe: Row(_WORKER, timeline.subscribe),
    m.StateLoad: Row(_WORKER, state.load),
    m.StateSave: Row(_WORKER, state.save),
    sm.SurfaceClose: Row(_WORKER, surfaces.close),
    sm.SurfaceOpen: Row(_WORKER, surfaces.open_surface),
    sm.SurfaceRead: Row(_WORKER, surfaces.read),
    sm.SurfaceUpdate: Row(_WORKER, surfaces.update),
    m.ToolAccept: Row(_WORKER, tools.accept),
    m.ToolCancel: Row(_WORKER, tools.cancel),
    m.ToolCancelSeen: Row(_WORKER, tools.cancel_seen),
    m.ToolComplete: Row(_WORKER, tools.complete),
    m.ToolFail: Row(_WORKER, tools.fail),
    m.ToolProgress: Row(_WORKER, tools.progress),
    m.ToolsGet: Row(_WORKER, tools.get),
    m.ToolsSubscribe: Row(_WORKER, tools.subscribe),
    i.UiCancel: Row(_WORKER, ui.cancel),
    i.UiGet: Row(_WORKER, ui.get),
    i.UiRequest: Row(_WORKER, ui.request),
    i.UiSubscribe: Row(_WORKER, ui.subscribe),
    # --- the Agent
    a.AppMessageReceived: Row(_AGENT, inbox.receive),
    a.InteractionDismissAsked: Row(_AGENT, interactions.dismiss),
    a.InertMessage: Row(_AGENT, timeline.receive_inert),
    a.TaskUpdated: Row(_AGENT, timeline.receive_task),
    a.TextReceived: Row(_AGENT, timeline.receive_text),
    a.ToolCancelAsked: Row(_AGENT, calls.cancel_asked),
    a.ToolInvoke: Row(_AGENT, routing.invoke),
    h.OutboxAcknowledge: Row(_DOORS, outbox.acknowledge),
    hn.OutboxRefuse: Row(_DOORS, timeline.receiver_refuses),
    # --- the person
    u.BackupMake: Row(_PERSON, upkeep.make_backup),
    u.InboxDrop: Row(_PERSON, parked.drop),
    u.InboxRetry: Row(_PERSON, parked.retry),
    h.AppClose: Row(_PERSON, lifecycle.person_closes),
    h.AppDisable: Row(_PERSON, switches.disable),
    h.AppEnable: Row(_PERSON, switches.enable),
    hn.AppOpen: Row(_PERSON, sessions.open_app),
    hn.AppStartEmpty: Row(_PERSON, sessions.start_empty),
    hn.ModeRequest: Row(_PERSON, lifecycle.request_mode),
    hn.SessionsContinue: Row(_PERSON, sessions.go_on),
    h.CallCancel: Row(_PERSON, calls.person_cancels),
    h.CallInvoke: Row(_PERSON, routing.person_invokes),
    hc.ConsentAnswer: Row(_PERSON, capabilities.answer),
    h.FocusRaise: Row(_PERSON, lifecycle.person_raises),
    hi.InteractionAnswer: Row(_PERSON, own_questions.answer),
    hi.InteractionMove: Row(_PERSON, interactions.move),
    h.KernelStop: Row(_PERSON, recovery.stop),
    h.MessageSend: Row(_PERSON, timeline.send_text),
    hc.PermissionsReset: Row(_PERSON, permissions.reset),
    hc.PermissionsRevoke: Row(_PERSON, permissions.revoke),
    hi.PolicySet: Row(_PERSON, ui.set_policy),
    hc.ProviderResult: Row(_PERSON, capabilities.result),
    hs.SurfaceEvent: Row(_PERSON, surfaces.event),
    hs.SurfaceMount: Row(_PERSON, surfaces.mount),
    hs.SurfacePatch: Row(_PERSON, surfaces.patch),
    hs.SurfaceUnmount: Row(_PERSON, surfaces.unmount),
    # --- the kernel itself
    e.AgentAttached: Row(_AGENT, outbox.agent_attached),
    e.AgentLeft: Row(_AGENT, outbox.agent_left),
    e.ArtifactsLost: Row(_KERNEL, artifacts.lost),
    e.BackupEnded: Row(_KERNEL, upkeep.backup_ended),
    e.StateRestored: Row(_KERNEL, upkeep.state_restored),
    e.SweepBodies: Row(_KERNEL, retention.sweep),
    e.StoreRecovered: Row(_KERNEL, upkeep.store_recovered),
    e.Booted: Row(_KERNEL, recovery.booted),
    e.CallerLeft: Row(_KERNEL, outbox.caller_left),
    e.CompactSurface: Row(_KERNEL, surfaces.compact),
    e.EnvelopeRefused: Row(_AGENT, envelopes.refuse),
    e.DeniedRequest: Row(frozenset(), inbox.deliver),  # nobody may: the refusal is the point
    e.DeliverCalls: Row(_KERNEL, tools.deliver),
    e.DeliverMessages: Row(_KERNEL, inbox.deliver),
    e.NoticePresented: Row(_KERNEL, interactions.notice_presented),
    e.PresentInteraction: Row(_KERNEL, interactions.present),
    e.MemoryRanShort: Row(_KERNEL, lifecycle.memory_ran_short),
    e.RecoverCapabilities: Row(_KERNEL, capabilities.recover),
    e.RouteCall: Row(_KERNEL, routing.route),
    e.TimePassed: Row(_KERNEL, deadlines.time_passed),
    e.ViewAttached: Row(_PERSON, views.attached),
    e.ViewLeft: Row(_PERSON, views.left),
    e.WorkerExited: Row(_KERNEL, instances.worker_exited),
}


def decide(view: View, origin: Origin, stamp: Stamp, command: object) -> Decision:
    """Judge one command. Raises: Rejected; KeyError for a command that is not in the table (a kernel bug)."""
    row = TABLE[type(command)]
    if origin.speaker not in row.speakers:
        raise Rejected(Code.CAPABILITY_DENIED)
    if origin.speaker is Speaker.WORKER and type(command).TYPE not in origin.grants:  # type: ignore[attr-defined]
        raise Rejected(Code.CAPABILITY_DENIED)
    return row.decide(view, origin, stamp, command)


def name_of(command: object) -> str:
    """The command's name for audit and log: its wire type, or its class for the kernel's own."""
    return getattr(type(command), "TYPE", "") or type(command).__name__
