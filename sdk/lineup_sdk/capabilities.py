"""Capabilities: asking the host to do one thing for this App (SPEC 10). The person is asked first, by the host and not by the App.

    asked = await app.capabilities.request("clipboard.write", reason="Copy the invoice number", arguments={"text": number})
    result = await app.capabilities.wait_result(asked.request_id)

Rules:
1. A request is answered at once: refused, or asked. What became of it comes later as a message of topic `capability.result`.
2. `wait_result` is for this life of the process. An App for which the outcome matters after a crash registers
   `@app.on_message("capability.result")`: then the message waits until its handler returned. Without one it is acknowledged on arrival.
3. `unknown` means what it says: the host was asked, and nobody knows whether it acted. Asking again is a new request to the person.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import trio

from lineup_sdk.calls import ToolCall
from lineup_sdk.protocol.capability_messages import CAPABILITY_RESULT, CapabilityRequest
from lineup_sdk.protocol.messages import InboxDelivered, InboxSubscribe, JsonObject
from lineup_sdk.requests import Requests

_KEPT_RESULTS = 64  # of those nobody waits for yet; an App has far fewer requests open at one time


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityAsked:
    """An accepted request. status: `asked` (the person decides) or `granted` (a standing answer allows it)."""

    request_id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityResult:
    """How a request ended. status: done | failed | denied | cancelled | revoked | unknown; code and reason say more."""

    request_id: str
    capability: str
    status: str
    code: str | None = None
    reason: str | None = None

    @property
    def is_done(self) -> bool:
        """True when the host did it."""
        return self.status == "done"


class Capabilities:
    """See the head of the file."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._is_subscribed = False
        self._results: OrderedDict[str, CapabilityResult] = OrderedDict()
        self._arrived = trio.Event()

    async def request(self, capability: str, *, reason: str, arguments: JsonObject, call: ToolCall | None = None) -> CapabilityAsked:
        """Ask for one action. reason is what the person reads, 1 to 300 characters; call: the own call it is for, whose clock then
        stands still while the person is asked.

        Raises: Refused(capability_denied, capability_unsupported, lifecycle_denied, limit_exceeded, call_not_found, call_already_final).
        """
        if not self._is_subscribed:  # the result is a message
            self._is_subscribed = True
            await self._requests.post(InboxSubscribe())
        call_id = call.call_id if call is not None else None
        message = CapabilityRequest(capability=capability, reason=reason, arguments=arguments, parent_call_id=call_id)
        value = await self._requests.request(message)
        return CapabilityAsked(request_id=value["request_id"], status=value["status"])

    async def wait_result(self, request_id: str) -> CapabilityResult:
        """Wait until a request of this life has ended. It may take as long as the person does."""
        while request_id not in self._results:
            await self._arrived.wait()
        return self._results.pop(request_id)

    def begin(self, *, is_subscribed: bool) -> None:
        """A life of the process begins; is_subscribed: its session asks for messages by itself."""
        self._is_subscribed = is_subscribed
        self._results.clear()

    def take(self, delivered: InboxDelivered) -> None:
        """Note a result; messages of other topics are not for this door."""
        if delivered.topic != CAPABILITY_RESULT:
            return
        result = CapabilityResult(**delivered.body)
        self._results[result.request_id] = result
        while len(self._results) > _KEPT_RESULTS:
            self._results.popitem(last=False)
        self._arrived.set()
        self._arrived = trio.Event()
