"""What the kernel itself asks the person (SPEC 7.1, source runtime_policy): whether an App at work may be closed (SPEC 8.2).

    asked = own_questions.ask_to_close(draft, instance)      the person wants to close an App with open calls
    own_questions.answer(...)                                decides every answer; a yes to such a question closes the App

Rules:
1. It is an interaction like any other: durable, shown by every view, answered once, brought back by a start.
2. A yes closes the App in the turn of the answer, its open calls cancelled. No, and time running out, change nothing.
3. It is about the App session that the close would end, one question a session. When that closes or fails by another way, the
   question is taken back.
4. The kernel has its answer at once: what is answered is completed, and nothing waits to be acknowledged.
"""

from __future__ import annotations

from kernel.core import interaction_ends, interactions, runtime
from kernel.core.decision import Decision, Draft, Origin, Stamp, View
from kernel.core.instances import close, end_open_calls
from kernel.core.limits import CLOSE_QUESTION_MS
from kernel.core.machines import CallEvent, InstanceState
from kernel.core.records import Instance, Interaction, InteractionKind, InteractionSource, Place, replace
from kernel.protocol.host_interactions import InteractionAnswer
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import JsonObject


def ask_to_close(draft: Draft, instance: Instance) -> str:
    """Ask whether this App may be closed although it has open calls; gives the id of the question, the one that waits or a new one.

    Raises: Rejected(limit_exceeded) with too many questions open. Source: SPEC 8.2.
    """
    for waiting in draft.view.open_interactions():
        if waiting.source is InteractionSource.RUNTIME_POLICY and waiting.app_session_id == instance.app_session_id:
            return waiting.interaction_id
    interactions.require_room(draft.view)
    deadline = draft.stamp.deadline_in(CLOSE_QUESTION_MS)
    asked = interactions.new_interaction(draft, InteractionKind.CONFIRM, _request(draft, instance), wish=Place.DEFAULT, deadline=deadline)
    own = replace(
        asked,
        source=InteractionSource.RUNTIME_POLICY,
        owner_app_scope=runtime.SCOPE,
        app_session_id=instance.app_session_id,
    )
    interactions.open_interaction(draft, own)
    return own.interaction_id


def _request(draft: Draft, instance: Instance) -> JsonObject:
    title, count = draft.view.manifests[instance.app_scope].title, len(draft.view.open_calls(instance.instance_id))
    work = "1 call" if count == 1 else f"{count} calls"
    return {
        "title": f"Close {title}?",
        "prompt": f"{title} is at work on {work}. Closing it cancels what is not done.",
        "approve_label": "Cancel the work and close",
        "cancel_label": "Leave it open",
    }


def answer(view: View, origin: Origin, stamp: Stamp, command: InteractionAnswer) -> Decision:
    """The person answers a question, whoever asked it.

    Raises: Rejected(interaction_not_found, interaction_already_final, answer_invalid).
    """
    draft = Draft(view, origin, stamp)
    asked, given = interactions.take_answer(draft, command)
    if asked.source is InteractionSource.RUNTIME_POLICY:
        interaction_ends.acknowledge(draft, draft.interaction(asked.interaction_id) or asked)
        if given["approved"]:
            _close_asked_about(draft, asked)
    return draft.decision()


def _close_asked_about(draft: Draft, asked: Interaction) -> None:
    for instance in draft.view.current_instances():
        if instance.app_session_id == asked.app_session_id and instance.state is not InstanceState.STOPPING:
            end_open_calls(draft, instance, CallEvent.CANCEL, Code.CANCELLED)
            close(draft, draft.instance(instance.instance_id) or instance, "person")
