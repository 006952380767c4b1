"""Bodies that are given up (SPEC 16): a part of kernel.core.records.Record. Where there is a key of the id, it stays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenArtifact:
    """The row of an artifact goes; its bytes follow when no other artifact has the same."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenCall:
    """The row of an ended call goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenCapabilityRequest:
    """The row of a request for a capability that has ended goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenInboxRow:
    """The row of a message that an App took over, or that the person dropped, goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenInteraction:
    """The row of a question that has ended goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMessage:
    """An entry of the timeline goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenOutboxRow:
    """The row of an envelope that arrived, or was refused for good, goes."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenPatches:
    """The patches of a closed surface go."""

    number: int  # of the surface, as for the next two


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenSnapshot:
    """The state of a closed surface goes."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenSurface:
    """The row of a closed surface goes."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenState:
    """What the App of a closed session remembered goes; the session stays, as one that remembers nothing."""

    app_session_id: str


Forgotten = (
    ForgottenArtifact
    | ForgottenCall
    | ForgottenCapabilityRequest
    | ForgottenInboxRow
    | ForgottenInteraction
    | ForgottenMessage
    | ForgottenOutboxRow
    | ForgottenPatches
    | ForgottenSnapshot
    | ForgottenState
    | ForgottenSurface
)
