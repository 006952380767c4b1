"""Is an inbound envelope for this kernel, and is it new? (SPEC 4, 11.2)

Rules:
1. An envelope of another conversation is refused, whatever it holds.
2. A message_id is unique for ever. Same bytes again: acknowledged again, nothing happens twice. Other bytes: refused.
"""

from __future__ import annotations

from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, View
from kernel.core.events import EnvelopeRefused
from kernel.core.records import Key, key_digest
from kernel.protocol.agent import Envelope
from lineup_sdk.protocol.codes import Code


def is_new(draft: Draft, envelope: Envelope) -> bool:
    """Take the envelope's id if it is new; False when the same bytes were accepted before.

    Raises: Rejected(capability_denied) for another conversation, Rejected(call_id_conflict) for other bytes under a used id.
    """
    view = draft.view
    if envelope.conversation_id != view.conversation_id:
        raise Rejected(Code.CAPABILITY_DENIED, Detail(pointer="/conversation_id", expected="this kernel's conversation"))
    digest = key_digest("message", view.conversation_id, envelope.message_id)
    known = view.key(digest)
    if known is None:
        draft.put(Key(digest=digest, content_digest=envelope.digest, number=draft.new_number()))
        return True
    if known.content_digest != envelope.digest:
        raise Rejected(Code.CALL_ID_CONFLICT, Detail(pointer="/message_id", expected="an id not used for other content"))
    return False


def refuse(view: View, origin: Origin, stamp: Stamp, command: EnvelopeRefused) -> Decision:
    """An envelope that the door could not read. Raises: Rejected, always."""
    raise Rejected(command.code, command.detail)
