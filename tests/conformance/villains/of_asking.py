"""Villains that break sections 3, 7, 10 and 11 of the specification: what they ask for, and the system App."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import trio
from asking import Refused
from good_worker import GoodWorker, die

from lineup_sdk.protocol.capability_messages import CapabilityRequest
from lineup_sdk.protocol.system_messages import ConversationSendText


class AsksForMore(GoodWorker):
    """Asks for a capability that its Manifest does not request."""

    clause = "10"
    fails = frozenset({163})

    def host_request(self, called: Any) -> Any:
        return CapabilityRequest(capability="clipboard.write", reason="It is done", arguments={"text": "x"})


class SaysNoReason(GoodWorker):
    """Asks without a reason."""

    clause = "10"
    fails = frozenset({164})

    def host_request(self, called: Any) -> Any:
        return CapabilityRequest(capability="notification.show", reason=" ", arguments={"title": "Done"})


class AsksForANeighbour(GoodWorker):
    """Asks on behalf of a call that is not its own."""

    clause = "10"
    fails = frozenset({165})

    def host_request(self, called: Any) -> Any:
        return CapabilityRequest(capability="notification.show", reason="x", arguments={"title": "x"}, parent_call_id="call_of_a_neighbour")


class AsksAgain(GoodWorker):
    """Asks again when it did not get what it wanted."""

    clause = "10"
    fails = frozenset({169, 170})

    async def host_answered(self, delivered: Any) -> None:
        if delivered.body["status"] != "done":
            self.post(CapabilityRequest(capability="notification.show", reason="Please", arguments={"title": "Done"}))


class LeavesTheRefused(GoodWorker):
    """Leaves a call whose capability or question was refused."""

    clause = "10"
    fails = frozenset({166, 167, 172})

    async def wait(self, ticket: Any) -> dict[str, Any]:
        try:
            return await super().wait(ticket)
        except Refused:
            if ticket.message.TYPE in {"capability.request", "ui.request"}:
                await trio.sleep_forever()
            raise


class MissesTheAnswer(GoodWorker):
    """Passes over what the person answered."""

    clause = "7.4"
    fails = frozenset({173, 174})

    async def take_over(self, delivered: Any) -> None:
        if delivered.topic != "interaction.result":
            await super().take_over(delivered)


class MissesTheResult(GoodWorker):
    """Passes over what became of its requests."""

    clause = "10"
    fails = frozenset({168, 169, 170})

    async def take_over(self, delivered: Any) -> None:
        if delivered.topic != "capability.result":
            await super().take_over(delivered)


class AsksWithoutAGrant(GoodWorker):
    """Asks the person although its Manifest does not request it (the test takes the request out)."""

    clause = "7.4"
    fails = frozenset({171})
    manifest = {"requested_capabilities": ["notification.show"]}  # noqa: RUF012 - read once


class SpeaksForThePerson(GoodWorker):
    """Sends a text into the conversation, which is for the system App."""

    clause = "3"
    fails = frozenset({175})

    async def do_fail(self, called: Any) -> dict[str, Any]:
        with suppress(Refused):
            await self.ask(ConversationSendText(text="It was not me."))
        return await super().do_fail(called)


class HasToolsOfAnother(GoodWorker):
    """Its Manifest names another scope than its tools."""

    clause = "4.1"
    fails = frozenset({190})
    manifest = {"app_scope": "another"}  # noqa: RUF012 - read once


class HasOtherBytes(GoodWorker):
    """Its Manifest names another digest than its file has."""

    clause = "4.1"
    fails = frozenset({191})
    manifest = {"entry": {"main": "app.py", "files": [{"name": "app.py", "size": 1, "sha256": "0" * 64}]}}  # noqa: RUF012 - read once


# --- of the system App


class DiesAtTheTimeline(GoodWorker):
    """Dies at what stands in the timeline."""

    clause = "9.3"
    fails = frozenset({176})
    is_for_system = True

    def on_timeline_changed(self, changed: Any) -> None:
        die()


class DiesAtACard(GoodWorker):
    """Dies at a question of the Agent."""

    clause = "7.2"
    fails = frozenset({177})
    is_for_system = True

    def on_interaction_presented(self, presented: Any) -> None:
        die()


class SendsATextTwice(GoodWorker):
    """Sends the person's text under a new key each time."""

    clause = "11.5"
    fails = frozenset({178})
    is_for_system = True

    sent = 0

    async def act(self, event: dict[str, Any]) -> None:
        self.sent += 1
        if event["name"] == "send":
            await self.ask(ConversationSendText(text=event["body"]["text"], key=f"key-{self.sent}"))


class KeepsToItsMode(GoodWorker):
    """Does not ask for the mode that the person wants."""

    clause = "3"
    fails = frozenset({179})
    is_for_system = True

    async def act(self, event: dict[str, Any]) -> None:
        if event["name"] != "mode":
            await super().act(event)
