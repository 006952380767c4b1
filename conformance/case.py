"""What a case is: a number that is never reused, the clause it proves, one sentence it demands, and how it is tried.

Rules:
1. A case raises Broken when the demand is not kept, NotApplicable when the worker gives no occasion; else it passed.
2. `needs` names cases that must have passed: without them a failure would not be this case's. It is then `blocked`, never passed.
3. Numbers stand once in the whole suite (cases/__init__.py); one that is taken away is not given again.
4. Cases are made from the Manifest, so they all need that it fits its schema: MANIFEST_CASE judges that alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MANIFEST_CASE = 190
Try = Callable[[Any], Awaitable[None]]  # of a World (world.py), which stands above


class Broken(Exception):
    """The worker does not keep the demand. The text says what was seen."""


class NotApplicable(Exception):
    """This worker gives no occasion for the case. The text says what is missing."""


class Status(StrEnum):
    """How a case went."""

    PASSED = "passed"
    FAILED = "failed"
    BLOCKED = "blocked"  # a case it needs did not pass
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """See the head of the file."""

    number: int
    clause: str
    demand: str
    run: Try
    kind: str = ""
    needs: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The stable id."""
        return f"C-{self.number:03}"


def case(number: int, clause: str, run: Try, demand: str = "", *, needs: tuple[int, ...] = ()) -> Case:
    """A row of a table of cases. A demand that is not given is the first line of the docstring of `run`."""
    return Case(number=number, clause=clause, run=run, demand=demand or (run.__doc__ or "").splitlines()[0], needs=needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one case went, and why it did not pass."""

    case: Case
    status: Status
    reason: str = ""
    seconds: float = 0.0


def require(condition: object, seen: str) -> None:
    """Raises: Broken with what was seen, unless the condition holds."""
    if not condition:
        raise Broken(seen)
