"""Interactions as hosts see them (kernel.protocol.host_interactions). Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from kernel.core.decision import Detail, Rejected
from kernel.core.machines import InteractionStatus
from kernel.core.records import Interaction, decode_body
from kernel.drafts import Drafts
from kernel.projection import fitting, time_text
from kernel.protocol.host_interactions import InteractionsList
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject

_STATES = frozenset({"open", "ended", *InteractionStatus})


def interaction_summary(view: StoreView, drafts: Drafts, interaction: Interaction) -> JsonObject:
    """InteractionSummary."""
    call = view.call(interaction.call_number) if interaction.call_number is not None else None
    summary = {
        "number": interaction.number,
        "interaction_id": interaction.interaction_id,
        "kind": interaction.kind.value,
        "source": interaction.source.value,
        "owner_app_scope": interaction.owner_app_scope,
        "owner_instance_id": interaction.owner_instance_id,
        "call_id": call.call_id if call is not None else None,
        "app_session_id": interaction.app_session_id,
        "request": decode_body(interaction.request_cbor),
        "shown_digest": interaction.shown_digest.hex(),
        "place": interaction.place.value,
        "status": interaction.status.value,
        "result": decode_body(interaction.result_cbor) if interaction.result_cbor is not None else None,
        "answered_by": interaction.answered_by_view,
        "error_code": interaction.error_code.value if interaction.error_code is not None else None,
        "draft": drafts.of(interaction.interaction_id),
        "expires_at": time_text(interaction.expires_at) if interaction.expires_at is not None else None,
        "created_at": time_text(interaction.created_at),
        "updated_at": time_text(interaction.updated_at),
    }
    return {name: value for name, value in summary.items() if value is not None}


def open_summaries(view: StoreView, drafts: Drafts) -> list[JsonObject]:
    """What a snapshot shows: the newest open ones that fit a frame, oldest first; `interactions.list` has the rest."""
    return _fitting(view, drafts, reversed(view.open_interactions()))[::-1]


def listed(view: StoreView, drafts: Drafts, query: InteractionsList) -> JsonObject:
    """The value of interactions.list. Raises: Rejected(interaction_not_found) for a state there is not."""
    if query.state is not None and query.state not in _STATES:
        raise Rejected(Code.INTERACTION_NOT_FOUND, Detail(pointer="/state", expected="open, ended or an interaction status"))
    found = view.interactions(state=query.state, before=query.before, limit=query.limit + 1)
    page = _fitting(view, drafts, found[: query.limit])
    return {"interactions": page, "more": len(found) > len(page)}


def _fitting(view: StoreView, drafts: Drafts, found: Iterable[Interaction]) -> list[JsonObject]:
    return fitting(interaction_summary(view, drafts, one) for one in found)
