"""What the person typed into a question and did not send (SPEC 7.3): kept in memory, for every view to see.

Rules:
1. Never written: not to the store, not to a log. A restart of the kernel forgets it; a page that is loaded again does not.
2. One draft an open interaction, bounded; it is forgotten with the interaction's end.
"""

from __future__ import annotations

from collections.abc import Sequence

import cbor2

from kernel.core.decision import Detail, Rejected
from kernel.core.machines import INTERACTION_OPEN
from kernel.core.records import Interaction, Record
from kernel.store_view import StoreView
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.limits import MAX_BODY_BYTES
from lineup_sdk.protocol.messages import JsonObject


class Drafts:
    """See the head of the file."""

    def __init__(self, view: StoreView) -> None:
        self._view = view
        self._drafts: dict[str, JsonObject] = {}

    def save(self, interaction_id: str, draft: JsonObject) -> None:
        """Keep one in place of the last; an empty one is forgotten.

        Raises: Rejected(interaction_not_found, interaction_already_final, limit_exceeded).
        """
        interaction = self._view.interaction(interaction_id)
        if interaction is None:
            raise Rejected(Code.INTERACTION_NOT_FOUND)
        if interaction.status not in INTERACTION_OPEN:
            raise Rejected(Code.INTERACTION_ALREADY_FINAL)
        size = len(cbor2.dumps(draft))
        if size > MAX_BODY_BYTES:
            expected = f"at most {MAX_BODY_BYTES} bytes as CBOR"
            raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/draft", expected=expected, got_type="object", got_size=size))
        self._drafts.pop(interaction_id, None)
        if draft:
            self._drafts[interaction_id] = draft

    def of(self, interaction_id: str) -> JsonObject | None:
        """What is typed so far."""
        return self._drafts.get(interaction_id)

    def follow(self, records: Sequence[Record]) -> None:
        """Forget what belongs to an interaction that ended."""
        for record in records:
            if isinstance(record, Interaction) and record.status not in INTERACTION_OPEN:
                self._drafts.pop(record.interaction_id, None)
