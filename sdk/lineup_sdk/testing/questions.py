"""The questions FakeKernel keeps for its one instance, and what it answers to `ui.*` (SPEC 7.4).

Rules:
1. Refused capability_denied until the test allowed it, and for good when a Manifest was given that does not request it.
2. A request is judged by its kind alone; the kernel judges all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lineup_sdk.errors import Refused
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.interaction_messages import UiCancel, UiGet, UiRequest
from lineup_sdk.protocol.messages import JsonObject

STANDARD_INTERACTION = "standard-interaction"
KINDS = frozenset({"choice", "confirm", "input", "notice"})


@dataclass(slots=True, eq=False)
class FakeQuestion:
    """One question of the app. result is {outcome, answer?, code?} once it ended."""

    interaction_id: str
    kind: str
    request: JsonObject
    parent_call_id: str | None
    presentation: str | None
    expires_at: str | None
    result: JsonObject | None = None

    @property
    def status(self) -> str:
        """presented, or how it ended."""
        if self.result is None:
            return "presented"
        outcome = str(self.result["outcome"])
        return "submitted" if outcome in {"accepted", "answered"} else outcome


@dataclass(slots=True, eq=False)
class FakeQuestions:
    """All of them."""

    is_allowed: bool = False
    is_subscribed: bool = False
    kept: dict[str, FakeQuestion] = field(default_factory=dict)

    def require_allowed(self, requested: frozenset[str] | None) -> None:
        """Raises: Refused(capability_denied)."""
        if not self.is_allowed or (requested is not None and STANDARD_INTERACTION not in requested):
            raise Refused(Code.CAPABILITY_DENIED)

    def open(self, message: UiRequest) -> FakeQuestion:
        """Take a question. Raises: Refused(tool_input_invalid)."""
        request = dict(message.request)
        kind = request.pop("kind", None)
        if type(kind) is not str or kind not in KINDS:
            raise Refused(Code.TOOL_INPUT_INVALID, {"pointer": "/request", "expected": "a request of a known kind"})
        question = FakeQuestion(
            interaction_id=f"int_fake_{len(self.kept) + 1}",
            kind=kind,
            request=request,
            parent_call_id=message.parent_call_id,
            presentation=message.presentation,
            expires_at=message.expires_at,
        )
        self.kept[question.interaction_id] = question
        return question

    def get(self, message: UiGet) -> JsonObject:
        """The value of ui.get. Raises: Refused(interaction_not_found)."""
        question = self._own(message.interaction_id)
        facts: JsonObject = {"interaction_id": question.interaction_id, "kind": question.kind, "status": question.status}
        return {**facts, "result": question.result}

    def require_open(self, message: UiCancel) -> FakeQuestion:
        """Raises: Refused(interaction_not_found, interaction_already_final)."""
        question = self._own(message.interaction_id)
        if question.result is not None:
            raise Refused(Code.INTERACTION_ALREADY_FINAL)
        return question

    def _own(self, interaction_id: str) -> FakeQuestion:
        question = self.kept.get(interaction_id)
        if question is None:
            raise Refused(Code.INTERACTION_NOT_FOUND)
        return question
