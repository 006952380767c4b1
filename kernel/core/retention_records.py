"""Bodies that are given up (SPEC 16): a part of kernel.core.records.Record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenCall:
    """The row of an ended call goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenInboxRow:
    """The row of a message that an App took over, or that the person dropped, goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMessage:
    """An entry of the timeline goes; its key stays."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenOutboxRow:
    """The row of an envelope that arrived, or was refused for good, goes."""

    number: int
