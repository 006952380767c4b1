"""Questions, requests for capabilities, surfaces, artifacts and saved states go after their time too (SPEC 16)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import Decision
from kernel.core.events import ArtifactReceived
from kernel.core.machines import InteractionStatus
from kernel.core.records import AppSession, Interaction, Key, OutboxRow, SavedState, TimelineMessage, ToolCall, key_digest
from kernel.core.surface_effects import DropBytes
from kernel.core.surface_records import AppendedPatch, Artifact, Surface, SurfaceSnapshot
from kernel.protocol.agent import INTERACTION_CARD
from kernel.protocol.host_interactions import InteractionAnswer, PolicySet
from kernel.protocol.host_sessions import AppOpen, SessionsContinue
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UiRequest
from lineup_sdk.protocol.surface_messages import ArtifactPut, SurfaceOpen, SurfaceUpdate
from tests.core.capability_desk import desk
from tests.core.dict_view import CONVERSATION
from tests.core.stories import interaction_of, world_of
from tests.core.test_retention import DAY_MS, acknowledge_all, sweep
from tests.core.world import PERSON, World

pytestmark = pytest.mark.clause("16")
CONFIRM = {"title": "Sure?", "prompt": "Say."}
SHA = "a" * 64


def answer(world: World, name: str) -> Interaction:
    asked = interaction_of(world, name)
    shown = asked.shown_digest.hex()
    said = InteractionAnswer(interaction_id=asked.interaction_id, answer={"approved": True}, shown_digest=shown)
    assert world.say(PERSON, said).code is None
    return asked


def key_of(world: World, kind: str, ident: str) -> Key | None:
    return world.view.key(key_digest(kind, CONVERSATION, ident))


@pytest.mark.invariant("23")
def test_the_agents_question_goes_with_its_call_and_its_card_after_it() -> None:
    world = World()
    world.boot()
    world.invoke("c1", "interaction.confirm", CONFIRM)
    world.invoke("c2", "interaction.confirm", CONFIRM)
    asked = answer(world, "c1")
    acknowledge_all(world)
    world.wait(91 * DAY_MS)
    sweep(world)
    assert [one.call_id for one in world.rows(ToolCall)] == ["c2"]  # that one still waits
    assert [one.status for one in world.rows(Interaction)] == [InteractionStatus.PRESENTED]
    assert not [row for row in world.rows(OutboxRow) if row.kind == "final"]
    key = key_of(world, "interaction", asked.interaction_id)
    assert key is not None
    assert (key.number, key.outcome) == (asked.number, "completed")
    sweep(world)
    assert [entry.type for entry in world.rows(TimelineMessage)] == [INTERACTION_CARD]  # of the one that waits
    late = InteractionAnswer(interaction_id=asked.interaction_id, answer={"approved": True}, shown_digest="00")
    assert world.say(PERSON, late).code is Code.INTERACTION_ALREADY_FINAL
    assert sweep(world).value == {"swept": 0}


def test_an_apps_question_stays_until_its_owner_has_the_answer() -> None:
    world = world_of({"instances": [{"app": "asker"}]})
    world.say(PERSON, PolicySet(name="standard-interaction:asker", allowed=True))
    world.tell("ins_asker", UiRequest(request={"kind": "confirm"} | CONFIRM))
    answer(world, "@asker")
    world.wait(91 * DAY_MS)
    sweep(world)
    [waiting] = world.rows(Interaction)
    assert waiting.status is InteractionStatus.SUBMITTED
    [row] = world.view.inbox_rows("ins_asker", 0, 9)
    world.tell("ins_asker", m.InboxAcknowledge(message_id=row.message_id))
    world.wait(91 * DAY_MS)
    sweep(world)
    assert world.rows(Interaction) == []


def test_a_request_for_a_capability_goes_and_its_outcome_stays() -> None:
    world = desk()
    asked = world.asked()
    world.answer(asked, "deny")
    world.wait(91 * DAY_MS)
    waiting = world.asked()
    sweep(world)
    assert [one.request_id for one in world.rows(CapabilityRequest)] == [waiting]
    key = key_of(world, "capability", asked)
    assert key is not None
    assert key.outcome == "denied capability_denied"


def worked_in(world: World) -> str:
    """An App that remembers, shows and made something, closed; its session."""
    opened = world.say(PERSON, AppOpen(app_scope="notes")).value
    assert opened is not None
    instance_id = opened["instance_id"]
    world.start(instance_id)
    world.tell(instance_id, m.StateSave(state={"kept": 1}))
    world.tell(instance_id, SurfaceOpen())
    world.tell(instance_id, SurfaceUpdate(base_version=0, patch={"a": 1}))
    origin = replace(world.worker(instance_id), grants=frozenset({ArtifactPut.TYPE}))
    assert world.say(origin, ArtifactReceived(sha256=SHA, size=1, media_type="image/png")).code is None
    world.close(instance_id)
    world.die(instance_id)
    return world.instance(instance_id).app_session_id


def bodies(world: World) -> list[int]:
    return [len(world.rows(kind)) for kind in (SavedState, Surface, SurfaceSnapshot, AppendedPatch, Artifact)]


def dropped(decisions: tuple[Decision, ...]) -> list[DropBytes]:
    return [effect for decision in decisions for effect in decision.effects if isinstance(effect, DropBytes)]


def test_what_a_closed_session_held_goes_and_the_session_stays() -> None:
    world = World()
    world.boot()
    name = worked_in(world)
    world.wait(89 * DAY_MS)
    sweep(world)
    assert bodies(world) == [1, 1, 1, 1, 1]
    world.wait(2 * DAY_MS)
    outcome = sweep(world)
    assert bodies(world) == [0, 0, 0, 0, 0]
    assert dropped(outcome.decisions) == [DropBytes(sha256s=(SHA,))]
    [session] = [one for one in world.rows(AppSession) if one.app_scope == "notes"]
    again = world.say(PERSON, SessionsContinue(app_session_id=session.app_session_id)).value
    assert again is not None
    world.start(again["instance_id"])
    assert world.tell(again["instance_id"], m.StateLoad()).value == {"state": None}
    assert name == session.app_session_id


def test_what_an_open_session_goes_on_with_is_kept_however_far_back() -> None:
    world = World()
    world.boot()
    first = worked_in(world)
    second = world.say(PERSON, SessionsContinue(app_session_id=first)).value
    assert second is not None
    world.close(second["instance_id"])
    world.die(second["instance_id"])
    third = world.say(PERSON, SessionsContinue(app_session_id=second["app_session_id"])).value
    assert third is not None
    world.wait(91 * DAY_MS)
    sweep(world)
    assert len(world.rows(Artifact)) == 1
    world.close(third["instance_id"])
    world.die(third["instance_id"])
    world.wait(91 * DAY_MS)
    sweep(world)
    assert bodies(world) == [0, 0, 0, 0, 0]
