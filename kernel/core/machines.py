"""The state machines as tables (SPEC 6.2, 7.1, 8.1, 11.3). All transitions live here; nobody assigns a status.

Rules:
1. A machine is `{state: {event: state}}`; a missing entry is the refusal. A final state maps to {}.
2. `step` is the only reader. A refused step raises NoSuchTransition and changes nothing; deciders turn it into a code.
3. A call's outcome states (submitted, failed, cancelled, expired, rejected) are entered only together with its audit row and its
   one final outbox row. submitted -> completed only by the acknowledgement of that row.
4. A call leaves `running` for `waiting_for_app` only because the worker that had it died.
5. At most one instance is `foreground`: the top valid entry of the focus stack. `stopped` and `failed` are final for an instance id.
6. An interaction that belongs to a call leaves pending or presented in the decision that ends the call, by the event of the same name.
7. A request for a capability is granted once, and a grant is never given back: from `granted` it only ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar


class CallStatus(StrEnum):
    """Where a tool call stands."""

    RECEIVED = "received"
    ROUTING = "routing"
    WAITING_FOR_APP = "waiting_for_app"
    RUNNING = "running"
    SUBMITTED = "submitted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REJECTED = "rejected"


class CallEvent(StrEnum):
    """What can happen to a tool call."""

    ROUTE = "route"  # the kernel takes it up
    REJECT = "reject"  # refused before any effect
    ASSIGN = "assign"  # an instance is chosen
    ACCEPT = "accept"  # the worker began
    PRESENT = "present"  # interactive: the interaction is open
    SUBMIT = "submit"  # a validated result is fixed
    FAIL = "fail"
    CANCEL = "cancel"
    EXPIRE = "expire"
    REDELIVER = "redeliver"  # its worker died
    ACKNOWLEDGE = "acknowledge"  # the receiver has the result


class InstanceState(StrEnum):
    """Where an instance stands. The App sees only the first four."""

    STARTING = "starting"
    FOREGROUND = "foreground"
    BACKGROUND = "background"
    SUSPENDED = "suspended"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


class InstanceEvent(StrEnum):
    """What can happen to an instance."""

    TO_FRONT = "to_front"
    TO_BACK = "to_back"
    CRASH = "crash"  # an unplanned death within the restart limit
    FAIL = "fail"
    SUSPEND = "suspend"  # idle, memory, boot
    REVIVE = "revive"
    CLOSE = "close"
    CLOSED = "closed"  # the process is gone after a close


class OutboxState(StrEnum):
    """Where a row for a receiver stands."""

    PENDING = "pending"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"  # the relay refused it for good


class OutboxEvent(StrEnum):
    """What can happen to an outbox row."""

    ACKNOWLEDGE = "acknowledge"
    REFUSE = "refuse"
    RESEND = "resend"  # the receiver asked again


class InboxState(StrEnum):
    """Where a message for an App stands."""

    DELIVERABLE = "deliverable"
    PARKED = "parked"
    ACKNOWLEDGED = "acknowledged"


class InboxEvent(StrEnum):
    """What can happen to an inbox row."""

    DELIVER = "deliver"
    ACKNOWLEDGE = "acknowledge"
    PARK = "park"
    RETRY = "retry"
    DROP = "drop"


class InteractionStatus(StrEnum):
    """Where a standard interaction stands."""

    PENDING = "pending"
    PRESENTED = "presented"
    SUBMITTED = "submitted"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"


class InteractionEvent(StrEnum):
    """What can happen to a standard interaction."""

    PRESENT = "present"  # its card is durable
    SUBMIT = "submit"  # answered, or a notice accepted
    CANCEL = "cancel"  # dismissed by its asker, or its asker is gone
    EXPIRE = "expire"
    FAIL = "fail"
    ACKNOWLEDGE = "acknowledge"  # the asker has the result


class CapabilityStatus(StrEnum):
    """Where one request for a capability of the host stands (SPEC 10)."""

    ASKED = "asked"
    GRANTED = "granted"
    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    REVOKED = "revoked"
    UNKNOWN = "unknown"


class CapabilityEvent(StrEnum):
    """What can happen to a request for a capability."""

    GRANT = "grant"  # the one use is durable; the host is asked after that
    DENY = "deny"
    FINISH = "finish"  # the host says it is done
    FAIL = "fail"  # the host says it could not, or no host is there any more
    CANCEL = "cancel"  # its App is gone or off
    REVOKE = "revoke"  # the person took the permission back
    LOSE = "lose"  # the host that was asked is gone or late: nobody knows


class PermissionState(StrEnum):
    """Whether a standing answer of the person counts."""

    ACTIVE = "active"
    REVOKED = "revoked"
    LAPSED = "lapsed"
    REPLACED = "replaced"


class PermissionEvent(StrEnum):
    """What can happen to a standing answer."""

    REVOKE = "revoke"
    LAPSE = "lapse"  # the instance it was for has ended, or the App is another than the one it was given to
    REPLACE = "replace"  # by a newer answer


_S, _E = CallStatus, CallEvent
CALL: Mapping[CallStatus, Mapping[CallEvent, CallStatus]] = {
    _S.RECEIVED: {_E.ROUTE: _S.ROUTING, _E.REJECT: _S.REJECTED},
    _S.ROUTING: {
        _E.ASSIGN: _S.WAITING_FOR_APP,
        _E.CANCEL: _S.CANCELLED,
        _E.EXPIRE: _S.EXPIRED,
        _E.FAIL: _S.FAILED,
        _E.PRESENT: _S.RUNNING,  # interactive
        _E.REJECT: _S.REJECTED,
        _E.SUBMIT: _S.SUBMITTED,  # runtime.*
    },
    _S.WAITING_FOR_APP: {
        _E.ACCEPT: _S.RUNNING,
        _E.CANCEL: _S.CANCELLED,
        _E.EXPIRE: _S.EXPIRED,
        _E.FAIL: _S.FAILED,
    },
    _S.RUNNING: {
        _E.CANCEL: _S.CANCELLED,
        _E.EXPIRE: _S.EXPIRED,
        _E.FAIL: _S.FAILED,
        _E.REDELIVER: _S.WAITING_FOR_APP,
        _E.SUBMIT: _S.SUBMITTED,
    },
    _S.SUBMITTED: {_E.ACKNOWLEDGE: _S.COMPLETED},
    _S.COMPLETED: {},
    _S.FAILED: {},
    _S.CANCELLED: {},
    _S.EXPIRED: {},
    _S.REJECTED: {},
}

_I, _V = InstanceState, InstanceEvent
INSTANCE: Mapping[InstanceState, Mapping[InstanceEvent, InstanceState]] = {
    _I.STARTING: {
        _V.CLOSE: _I.STOPPING,
        _V.CRASH: _I.STARTING,
        _V.FAIL: _I.FAILED,
        _V.SUSPEND: _I.SUSPENDED,
        _V.TO_BACK: _I.BACKGROUND,
        _V.TO_FRONT: _I.FOREGROUND,
    },
    _I.FOREGROUND: {
        _V.CLOSE: _I.STOPPING,
        _V.CRASH: _I.STARTING,
        _V.FAIL: _I.FAILED,
        _V.SUSPEND: _I.SUSPENDED,
        _V.TO_BACK: _I.BACKGROUND,
    },
    _I.BACKGROUND: {
        _V.CLOSE: _I.STOPPING,
        _V.CRASH: _I.STARTING,
        _V.FAIL: _I.FAILED,
        _V.SUSPEND: _I.SUSPENDED,
        _V.TO_FRONT: _I.FOREGROUND,
    },
    _I.SUSPENDED: {_V.CLOSE: _I.STOPPED, _V.REVIVE: _I.STARTING},  # a suspended instance has no process to wait for
    _I.STOPPING: {_V.CLOSED: _I.STOPPED, _V.SUSPEND: _I.SUSPENDED},  # found at boot: a close cut off did not happen
    _I.STOPPED: {},
    _I.FAILED: {},
}

OUTBOX: Mapping[OutboxState, Mapping[OutboxEvent, OutboxState]] = {
    OutboxState.PENDING: {
        OutboxEvent.ACKNOWLEDGE: OutboxState.ACKNOWLEDGED,
        OutboxEvent.REFUSE: OutboxState.REFUSED,
        OutboxEvent.RESEND: OutboxState.PENDING,
    },
    OutboxState.ACKNOWLEDGED: {OutboxEvent.RESEND: OutboxState.PENDING},
    OutboxState.REFUSED: {},
}

INBOX: Mapping[InboxState, Mapping[InboxEvent, InboxState]] = {
    InboxState.DELIVERABLE: {
        InboxEvent.ACKNOWLEDGE: InboxState.ACKNOWLEDGED,
        InboxEvent.DELIVER: InboxState.DELIVERABLE,
        InboxEvent.PARK: InboxState.PARKED,
    },
    InboxState.PARKED: {InboxEvent.DROP: InboxState.ACKNOWLEDGED, InboxEvent.RETRY: InboxState.DELIVERABLE},
    InboxState.ACKNOWLEDGED: {},
}

_N, _A = InteractionStatus, InteractionEvent
_OUTCOMES: Mapping[InteractionEvent, InteractionStatus] = {
    _A.CANCEL: _N.CANCELLED,
    _A.EXPIRE: _N.EXPIRED,
    _A.FAIL: _N.FAILED,
    _A.SUBMIT: _N.SUBMITTED,
}
INTERACTION: Mapping[InteractionStatus, Mapping[InteractionEvent, InteractionStatus]] = {
    _N.PENDING: {**_OUTCOMES, _A.PRESENT: _N.PRESENTED},
    _N.PRESENTED: _OUTCOMES,
    _N.SUBMITTED: {_A.ACKNOWLEDGE: _N.COMPLETED},
    _N.COMPLETED: {},
    _N.CANCELLED: {},
    _N.EXPIRED: {},
    _N.FAILED: {},
}

_C, _D = CapabilityStatus, CapabilityEvent
CAPABILITY: Mapping[CapabilityStatus, Mapping[CapabilityEvent, CapabilityStatus]] = {
    _C.ASKED: {_D.CANCEL: _C.CANCELLED, _D.DENY: _C.DENIED, _D.FAIL: _C.FAILED, _D.GRANT: _C.GRANTED},
    _C.GRANTED: {_D.FAIL: _C.FAILED, _D.FINISH: _C.DONE, _D.LOSE: _C.UNKNOWN, _D.REVOKE: _C.REVOKED},
    _C.DONE: {},
    _C.FAILED: {},
    _C.DENIED: {},
    _C.CANCELLED: {},
    _C.REVOKED: {},
    _C.UNKNOWN: {},
}

PERMISSION: Mapping[PermissionState, Mapping[PermissionEvent, PermissionState]] = {
    PermissionState.ACTIVE: {
        PermissionEvent.LAPSE: PermissionState.LAPSED,
        PermissionEvent.REPLACE: PermissionState.REPLACED,
        PermissionEvent.REVOKE: PermissionState.REVOKED,
    },
    PermissionState.REVOKED: {},
    PermissionState.LAPSED: {},
    PermissionState.REPLACED: {},
}

MACHINES: Mapping[str, Mapping[Any, Mapping[Any, StrEnum]]] = {
    "capability request": CAPABILITY,
    "inbox row": INBOX,
    "instance": INSTANCE,
    "interaction": INTERACTION,
    "outbox row": OUTBOX,
    "permission": PERMISSION,
    "tool call": CALL,
}

CALL_OPEN = frozenset({_S.RECEIVED, _S.ROUTING, _S.WAITING_FOR_APP, _S.RUNNING})
CAPABILITY_OPEN = frozenset({_C.ASKED, _C.GRANTED})
INTERACTION_OPEN = frozenset({_N.PENDING, _N.PRESENTED})
INSTANCE_LIVE = frozenset({_I.STARTING, _I.FOREGROUND, _I.BACKGROUND, _I.STOPPING})  # has, or will have, a process
INSTANCE_FINAL = frozenset({_I.STOPPED, _I.FAILED})


_State = TypeVar("_State", bound=StrEnum)
_Event = TypeVar("_Event", bound=StrEnum)


class NoSuchTransition(Exception):
    """The machine has no such step from here."""


def step(machine: Mapping[_State, Mapping[_Event, _State]], state: _State, event: _Event) -> _State:
    """Return the state after an event. Raises: NoSuchTransition."""
    try:
        return machine[state][event]
    except KeyError:
        raise NoSuchTransition(f"{state} has no {event}") from None
