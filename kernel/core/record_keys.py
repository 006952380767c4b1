"""By what the records of one turn are told apart: a later put of the same key takes the place of the earlier one (kernel.core.decision)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from kernel.core.capability_records import Acceptance, CapabilityRequest, Permission
from kernel.core.records import AppSession, InboxRow, Instance, Interaction, Key, OutboxRow, SavedState, TimelineMessage, ToolCall
from kernel.core.retention_records import Forgotten, ForgottenState
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot

_KEY_FIELDS: Mapping[type, str] = {
    AppendedPatch: "surface_number",  # a turn changes a surface once
    Acceptance: "app_scope",
    AppSession: "app_session_id",
    Artifact: "number",
    CapabilityRequest: "request_id",
    **dict.fromkeys(get_args(Forgotten), "number"),
    ForgottenState: "app_session_id",
    InboxRow: "number",
    Instance: "instance_id",
    Interaction: "interaction_id",
    Key: "digest",
    OutboxRow: "number",
    Permission: "number",
    SavedState: "app_session_id",
    Surface: "number",
    SurfaceSnapshot: "surface_number",
    TimelineMessage: "number",
    ToolCall: "number",
}


def key_of(record: Any) -> object:
    """The key of a record among those of its type; None for one of which there is only one."""
    name = _KEY_FIELDS.get(type(record))
    return getattr(record, name) if name else getattr(record, "name", None) or getattr(record, "digest", None)
