"""A named step of the way into the seal, and how it is tried. The lists of steps stand in birth.py and seal.py.

Rules:
1. A step that was applied is proved at once: the proof asks the system, it does not remember what was asked for.
2. A step that fails names its layer, the reason and the mend, and ends the launch; there is no step that may fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lineup_sdk.protocol.control import Layer

Work = TypeVar("Work")


class NotProved(Exception):
    """The step was applied, and yet the system does not behave as it should."""


@dataclass(frozen=True, slots=True)
class Step(Generic[Work]):
    """name = its layer; reason = why it is there and why at this place; hint = how a person mends the machine."""

    name: str
    reason: str
    hint: str
    apply: Callable[[Work], None]
    prove: Callable[[Work], str] | None  # returns the detail shown by doctor; None = proved by a later step of that name


def run_step(step: Step[Work], work: Work) -> Layer | None:
    """Apply and prove one step. Returns its report; None when a later step of the same name is to report."""
    try:
        step.apply(work)
        if step.prove is None:
            return None
        return Layer(name=step.name, ok=True, detail=step.prove(work))
    except (OSError, NotProved, ImportError) as error:
        return Layer(name=step.name, ok=False, detail=describe(error), hint=step.hint)


def describe(error: Exception) -> str:
    """A reason in a few words."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} (errno {error.errno})"
    return str(error)
