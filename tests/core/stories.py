"""Golden stories: what they look like and how one is played (tests/golden/<area>__<story>.json with `steps`).

    {"clause": "6.3", "rule": "<the sentence it shows>",
     "state": {"disabled": [name], "instances": [{"app", ...fields}], "focus": [app], "calls": [{"call_id", "tool_id", ...fields}],
               "inbox": [{"app", "message_id", ...fields}]},
     "steps": [{"wait_ms": 5} | {"by": who, "say": what, "with": {fields}, "then": {expected}}]}

Rules:
1. who = agent | demo | person | kernel | view-<n> | <app> (its worker) | <app>@<life> (the worker of that life). "@app" in a field is
   the id of its newest instance, "#call" the number of that call, "?call" the interaction that call is, "?@app" the App's newest question
   and "!call" (or "!@app") the digest of what it shows, "$app" the App's newest request for a capability and "$!app" the digest of what
   that shows, "~app" the App's surface; an agent's `message_id` makes an envelope; `revision` is the one in force unless it is given.
2. expected: code, audit, outbox, frames, processes are compared whole, and absent means nothing of it; calls, instances, interactions
   (by call, or @app), focus and value are compared where they are given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernel.core import events
from kernel.core.capability_records import CapabilityRequest
from kernel.core.decision import KillWorker, Origin, SendToWorker, StartWorker, StopWorker
from kernel.core.machines import CALL_OPEN, CallStatus, InboxState, InstanceState
from kernel.core.records import (
    AppSession,
    Deadline,
    FocusStack,
    InboxRow,
    Instance,
    Interaction,
    Key,
    OutboxRow,
    Record,
    Source,
    ToolCall,
    digest_of_parts,
    encode_body,
    encode_exact,
    key_digest,
)
from kernel.core.surface_effects import SendToView
from kernel.core.surface_records import Surface
from kernel.protocol import agent as a
from kernel.protocol.host import FROM_HOST
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import FROM_WORKER, JsonObject
from tests.core.dict_view import CONVERSATION
from tests.core.world import AGENT, DEMO, KERNEL, PERSON, Outcome, World, envelope

_SPEAKERS = {"agent": AGENT, "demo": DEMO, "person": PERSON, "kernel": KERNEL}
_ENUMS = {"state": InstanceState, "status": CallStatus, "source": Source, "death": events.Death, "error_code": Code}


def world_of(state: JsonObject, world: World | None = None) -> World:
    """A booted world in which all that is already so; a new one over a DictView unless another is given."""
    world = world or World()
    world.boot()
    for name in state.get("disabled", []):
        world.say(PERSON, FROM_HOST["app.disable"](name=name))  # type: ignore[call-arg]
    for given in state.get("instances", []):
        world.put(*_instance(world, **_typed(given)))
    world.put(FocusStack(instance_ids=tuple(id_of(world, app) for app in state.get("focus", []))))
    for given in state.get("calls", []):
        world.put(*_call(world, **_typed(given)))
    for given in state.get("inbox", []):
        world.put(_inbox_row(world, **given))
    return world


def _typed(given: JsonObject) -> JsonObject:
    return {name: _ENUMS[name](value) if name in _ENUMS else value for name, value in given.items()}


def _instance(world: World, app: str, **fields: Any) -> tuple[Record, ...]:
    manifest = world.view.manifests[app]
    session = AppSession(
        number=world.next_number, app_session_id=f"ses_{app}", app_scope=app, conversation_id=CONVERSATION, opened_at=world.now
    )
    instance = Instance(
        number=world.next_number + 1,
        instance_id=f"ins_{app}",
        app_scope=app,
        app_version=manifest.version,
        bundle_digest=manifest.bundle_digest,
        conversation_id=CONVERSATION,
        app_session_id=session.app_session_id,
        started_at=world.now,
        state=InstanceState.BACKGROUND,
        life=1,
        tools_subscribed=True,
        inbox_subscribed=True,
    )
    return session, replace(instance, **fields)


def _call(
    world: World, call_id: str, tool_id: str, *, given: JsonObject | None = None, deadline_ms: int = 60_000, **fields: Any
) -> tuple[Record, ...]:
    app = tool_id.partition(".")[0]
    descriptor = next(tool for tool in world.view.manifests[app].tools if tool.id == tool_id)
    input_cbor = encode_exact(given or {})
    call = ToolCall(
        number=world.next_number,
        call_id=call_id,
        tool_id=tool_id,
        inventory_revision=world.view.inventory.revision,
        descriptor_digest=descriptor.digest,
        source=Source.AGENT,
        app_scope=app,
        conversation_id=CONVERSATION,
        content_digest=digest_of_parts(tool_id, CONVERSATION, input_cbor),
        input_cbor=input_cbor,
        created_at=world.now,
        updated_at=world.now,
        status=CallStatus.RUNNING,
        instance_id=id_of(world, app) if world.view.current_instance(app) else None,
        delivered_life=1,
        deadline=world_deadline(world, deadline_ms),
    )
    call = replace(call, **fields)
    assert call.status in CALL_OPEN, "an ended call has its row: play it"
    key = Key(digest=key_digest("call", CONVERSATION, call_id), content_digest=call.content_digest, number=call.number)
    return call, key


def world_deadline(world: World, milliseconds: int) -> Deadline:
    """A deadline that much from now."""
    return Deadline(world.boot_id, world.boottime_ms + milliseconds)


def _inbox_row(world: World, app: str, message_id: str, *, body: JsonObject | None = None, **fields: Any) -> InboxRow:
    row = InboxRow(
        number=world.next_number,
        message_id=message_id,
        app_scope=app,
        conversation_id=CONVERSATION,
        instance_id=id_of(world, app),
        topic=f"{app}.note",
        body_cbor=encode_body(body or {}),
        created_at=world.now,
    )
    fields = {name: InboxState(value) if name == "state" else value for name, value in fields.items()}
    return replace(row, **fields)


def id_of(world: World, app: str) -> str:
    """The id of the App's newest instance."""
    found: list[str] = [one.instance_id for one in world.rows(Instance) if one.app_scope == app]
    return found[-1]


# ------------------------------------------------------------------------------------ playing


def play(world: World, step: JsonObject) -> JsonObject | None:
    """Run one step; what was seen, in the form of `then`. None for a step that only lets time pass."""
    if "wait_ms" in step:
        world.wait(step["wait_ms"])
        return None
    if step["say"] == "boot":
        outcome = world.boot()
    else:
        fields = {name: _resolved(world, value) for name, value in step.get("with", {}).items()}
        outcome = world.say(_origin(world, step["by"]), _command(world, step["by"], step["say"], fields))
    return seen(world, outcome)


def _resolved(world: World, value: Any) -> Any:
    if isinstance(value, str) and value.startswith("#"):
        return world.call(value[1:]).number
    if isinstance(value, str) and value.startswith("~"):
        return [one for one in world.rows(Surface) if one.app_scope == value[1:]][-1].surface_id
    if isinstance(value, str) and value.startswith("$"):
        asked = [one for one in world.rows(CapabilityRequest) if one.app_scope == value.lstrip("$!")][-1]
        return asked.shown_digest.hex() if value.startswith("$!") else asked.request_id
    if isinstance(value, str) and value[:1] in {"?", "!"}:
        interaction = interaction_of(world, value[1:])
        return interaction.interaction_id if value[0] == "?" else interaction.shown_digest.hex()
    return id_of(world, value[1:]) if isinstance(value, str) and value.startswith("@") else value


def interaction_of(world: World, name: str) -> Interaction:
    """The interaction of a call, or an App's newest question (@app)."""
    found = [one for one in world.rows(Interaction) if _name_of(world, one) == name]
    newest: Interaction = found[-1]
    return newest


def _name_of(world: World, interaction: Interaction) -> str:
    call = world.view.call(interaction.call_number) if interaction.call_number is not None else None
    return call.call_id if call is not None else f"@{interaction.owner_app_scope}"


def _origin(world: World, who: str) -> Origin:
    if who.startswith("view-"):
        return replace(PERSON, view_id=who)
    if who in _SPEAKERS:
        return _SPEAKERS[who]
    app, _, life = who.partition("@")
    return world.worker(id_of(world, app), int(life) if life else None)


def _command(world: World, who: str, what: str, fields: JsonObject) -> object:
    if what == "ViewAttached":
        return events.ViewAttached(providers=frozenset(fields["providers"]))
    if what == "ViewLeft":
        return events.ViewLeft()
    match "person" if who.startswith("view-") else who:
        case "agent" | "demo":
            return _envelope_command(world, what, fields)
        case "person":
            return FROM_HOST[what](**fields)
        case "kernel":
            return getattr(events, what)(**_typed(fields))
        case _ if what == "ArtifactReceived":  # the port says it for the worker
            trouble = Code(fields.pop("trouble")) if "trouble" in fields else None
            return events.ArtifactReceived(trouble=trouble, **fields)
        case _:
            return FROM_WORKER[what](**fields)


def _envelope_command(world: World, what: str, fields: JsonObject) -> object:
    outer = None
    if "message_id" in fields:
        conversation_id = fields.pop("conversation_id", CONVERSATION)
        scope, instance_id = fields.get("app_scope"), fields.get("instance_id")
        content = repr(sorted((name, value) for name, value in fields.items() if name != "revision"))
        message_id = fields.pop("message_id")
        outer = envelope(message_id, what, conversation_id=conversation_id, content=content, app_scope=scope, instance_id=instance_id)
    match what:
        case "tool.call":
            revision = fields.pop("revision", world.view.inventory.revision)
            fields.setdefault("input", {})
            return a.ToolInvoke(envelope=outer, inventory_revision=revision, **fields)
        case "tool.cancel":
            return a.ToolCancelAsked(envelope=outer, call_id=fields["call_id"])
        case "outbox.acknowledge":
            return FROM_HOST[what](message_id=_message_id_of_call(world, fields["final_of"]))  # type: ignore[call-arg]
        case "attached":
            return events.AgentAttached()
    assert outer is not None, "this needs a message_id"
    match what:
        case "interaction.dismiss":
            named = {name: fields.get(name) for name in ("interaction_id", "call_id")}
            return a.InteractionDismissAsked(envelope=outer, **named)
        case "app.message":
            return a.AppMessageReceived(envelope=outer, topic=fields["topic"], body=fields.get("body", {}))
        case "message.text":
            return a.TextReceived(envelope=outer, text=fields["text"])
        case "inert":
            return a.InertMessage(envelope=outer, payload=fields["payload"], code=Code(fields["code"]))
    raise AssertionError(f"no agent says {what}")


def _message_id_of_call(world: World, call_id: str) -> str:
    row = world.view.final_row(world.call(call_id).number)
    assert row is not None
    return row.message_id


def seen(world: World, outcome: Outcome) -> JsonObject:
    """What an outcome shows, in the words of a story."""
    return {
        "code": outcome.code.value if outcome.code else None,
        "value": outcome.value,
        "audit": outcome.audit,
        "outbox": [_row_words(row, message) for row, message in zip(_rows(outcome), outcome.outbox, strict=True)],
        "frames": [_frame_words(world, effect) for effect in outcome.effects if isinstance(effect, SendToView | SendToWorker)],
        "processes": [
            _process_words(world, effect) for effect in outcome.effects if isinstance(effect, KillWorker | StartWorker | StopWorker)
        ],
        "calls": {call.call_id: call.status.value for call in world.rows(ToolCall)},
        "interactions": {_name_of(world, one): one.status.value for one in world.rows(Interaction)},
        "instances": {one.app_scope: one.state.value for one in world.rows(Instance)},
        "focus": [_app(world, instance_id) for instance_id in world.view.focus().instance_ids],
    }


def _frame_words(world: World, effect: SendToView | SendToWorker) -> str:
    receiver = effect.view_id if isinstance(effect, SendToView) else _app(world, effect.instance_id)
    return f"{receiver} {effect.message.TYPE}"


def _rows(outcome: Outcome) -> list[OutboxRow]:
    return [record for record in outcome.puts if isinstance(record, OutboxRow)]


def _row_words(row: OutboxRow, message: JsonObject) -> str:
    payload = message["payload"]
    words = [row.destination.value, row.kind.value, payload.get("status"), payload.get("code"), payload.get("report", {}).get("cancel")]
    if "percent" in payload:
        words.append(f"{payload['percent']}%")
    if row.state.value != "pending":
        words.append(row.state.value)
    return " ".join(word for word in words if word)


def _app(world: World, instance_id: str) -> str:
    return world.instance(instance_id).app_scope


def _process_words(world: World, effect: KillWorker | StartWorker | StopWorker) -> str:
    verb = type(effect).__name__.removesuffix("Worker").lower()
    delay = f" after {effect.delay_ms} ms" if isinstance(effect, StartWorker) and effect.delay_ms else ""
    return f"{verb} {_app(world, effect.instance_id)}{delay}"
