"""What the SDK raises to an author's code."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """The kernel refused a request. `code` is one of lineup_sdk.protocol.codes.Code; `detail` says where and what was expected."""

    def __init__(self, code: str, detail: dict[str, Any] | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail or {}


class ToolFailed(Exception):
    """Raise it in a tool handler to end the call as failed. `reason` is a short token ([a-z0-9_], at most 64), not a sentence.

    `message` is for people; over 1,000 characters it is cut, so that the failure itself always arrives.
    """

    def __init__(self, reason: str, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message
