"""Messages of capabilities on a worker channel (SPEC 10); messages.py has the others and the registries.

The result is no message of its own: it is an inbox row of topic CAPABILITY_RESULT, so that it outlives the process. Its body:
  {request_id, capability, status: done | failed | denied | cancelled | revoked | unknown, code?, reason?}
unknown = the host was asked and nobody knows whether it acted; it is not asked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from lineup_sdk.protocol.message import JsonObject, Message

CAPABILITY_RESULT: Final = "capability.result"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityRequest(Message):
    """Ask for one action of the host. reason is what the person reads. parent_call_id: an own open call it belongs to.

    Value: {request_id, status}: `asked` when the person is asked first, `granted` when a standing answer allows it. The result follows.
    Refused: capability_denied (not in the Manifest, refused by policy, arguments), capability_unsupported (no host can), lifecycle_denied
    (not in this state), limit_exceeded (too many open, reason, inbox full), call_not_found, call_already_final, artifact_not_found.
    """

    TYPE: ClassVar[str] = "capability.request"
    EXPECTS_REPLY: ClassVar[bool] = True
    capability: str
    reason: str
    arguments: JsonObject
    parent_call_id: str | None = None
