"""What the passing of time ends: one command for every deadline there is (SPEC 6.6, 7.3). Each noun ends its own."""

from __future__ import annotations

from kernel.core import calls, capabilities, focus, interactions
from kernel.core.decision import Decision, Draft, Origin, Stamp, View
from kernel.core.events import TimePassed


def time_passed(view: View, origin: Origin, stamp: Stamp, command: TimePassed) -> Decision:
    """End what is due."""
    draft = Draft(view, origin, stamp)
    calls.end_due(draft)
    interactions.end_due(draft)
    capabilities.end_due(draft)
    focus.suspend_idle(draft)
    return draft.decision()
