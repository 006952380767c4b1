"""A World with an App that may ask hosts to act, and views that can: for the tests of the gateway and of permissions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernel.core import events
from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Origin, Speaker
from kernel.core.machines import CapabilityStatus
from kernel.core.records import InboxRow, Source, decode_body
from kernel.core.surface_effects import SendToView
from kernel.protocol import host_capabilities as hc
from lineup_sdk.protocol import capability_messages as c
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.messages import JsonObject
from tests.core.dict_view import MANIFESTS, DictView, manifest_of
from tests.core.world import Outcome, World

ASKED_FOR = ["clipboard.write", "notification.show", "microphone", "camera", "clipboard.read", "file.pick", "telepathy"]
TEXT = {"text": "hello"}
NOTICE = {"title": "Done", "body": "The drawing is ready"}


@dataclass
class Desk(World):
    """A World with an App in front that may ask for things, and views that can do them. It keeps every frame to a host, in order."""

    frames: list[tuple[str, m.Message]] = field(default_factory=list)

    def say(self, origin: Origin, command: object) -> Outcome:
        outcome = super().say(origin, command)
        for effect in outcome.effects:
            if isinstance(effect, SendToView):
                self.frames.append((effect.view_id, effect.message))
        return outcome

    @property
    def executed(self) -> list[tuple[str, str]]:
        """(view, request id) of every frame that asks a host to act."""
        return [(view_id, message.request_id) for view_id, message in self.frames if isinstance(message, hc.CapabilityExecute)]

    def attach(self, view_id: str, *providers: str) -> None:
        assert self.say(view(view_id), events.ViewAttached(providers=frozenset(providers))).code is None

    def leave(self, view_id: str) -> Outcome:
        return self.say(view(view_id), events.ViewLeft())

    def ask(
        self, capability: str = "clipboard.write", arguments: JsonObject | None = None, reason: str = "to paste it", **more: Any
    ) -> Outcome:
        """The worker of board asks."""
        asked = c.CapabilityRequest(capability=capability, reason=reason, arguments=TEXT if arguments is None else arguments, **more)
        return self.tell(self.current("board").instance_id, asked)

    def asked(self, *args: Any, **more: Any) -> str:
        outcome = self.ask(*args, **more)
        assert outcome.code is None, outcome
        assert outcome.value is not None
        return str(outcome.value["request_id"])

    def request(self, request_id: str) -> CapabilityRequest:
        found = self.view.capabilities.request(request_id)
        assert found is not None
        return found

    def answer(self, request_id: str, decision: str, by: str = "view-1") -> Outcome:
        shown = self.request(request_id).shown_digest.hex()
        return self.say(view(by), hc.ConsentAnswer(request_id=request_id, decision=decision, shown=shown))

    def report(self, request_id: str, status: str = "done", by: str = "view-1", reason: str | None = None) -> Outcome:
        return self.say(view(by), hc.ProviderResult(request_id=request_id, status=status, reason=reason))

    def results(self) -> list[JsonObject]:
        """The bodies of every capability.result there ever was."""
        return [decode_body(row.body_cbor) for row in self.rows(InboxRow) if row.topic == "capability.result"]

    def status(self, request_id: str) -> CapabilityStatus:
        return self.request(request_id).status


def view(view_id: str) -> Origin:
    return Origin(speaker=Speaker.VIEW, source=Source.PERSON, view_id=view_id)


def manifests(**changes: Any) -> dict[str, Any]:
    return MANIFESTS | {"board": manifest_of("board", **({"requested_capabilities": ASKED_FOR} | changes))}


MANIFESTS_HERE = manifests()


def desk(*, views: bool = True, app: bool = True) -> Desk:
    world = Desk(view=DictView(MANIFESTS_HERE))
    world.boot()
    if views:
        world.attach("view-1", "clipboard.write", "notification.show")
    if app:
        world.running("c0", "board.open")
    return world
