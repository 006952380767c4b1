"""What every rule of the model stands on: one kernel, and ways to point at what there is.

A place is a small number; it points at a thing counted from the newest, around and around, so that every number points somewhere.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from kernel.core.decision import Origin, Speaker
from kernel.core.records import Instance, Interaction, Source, ToolCall
from kernel.protocol.host import OutboxAcknowledge
from kernel.turns import Outcome
from lineup_sdk.protocol import interaction_messages as i
from lineup_sdk.protocol import messages as m
from lineup_sdk.protocol import system_messages as y
from tests.invariants import check_after_a_turn, check_all, check_trace
from tests.model.kernel import ModelKernel
from tests.model.memory import left_undone, unlike_the_rows
from tests.trace import Drained

_Thing = TypeVar("_Thing")

APPS = st.sampled_from(["board", "notes", "asker", "chat"])
PLACES = st.integers(0, 5)
MOST = 4  # places below it point at what is open
ADMIN = Origin(speaker=Speaker.VIEW, source=Source.PERSON, channel=-1, request_id=1, view_id="view-0-admin")
_MEMORY = Path("/dev/shm")  # where a sync costs nothing


def require_none(broken: list[str]) -> None:
    """Raises: AssertionError with the promises that are broken."""
    if broken:
        raise AssertionError("\n".join(broken))


class Model(RuleBasedStateMachine):
    """One run: from a new home to the end of all faults."""

    make_kernel: ClassVar[Callable[[Path], ModelKernel]] = ModelKernel

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="lineup-model-", dir=_MEMORY if _MEMORY.is_dir() else None))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)  # of whoever goes without a teardown, too
        self.kernel = type(self).make_kernel(self.folder)
        self.made = 0
        self.lives: list[Origin] = []  # channels of every life there was
        self._looked_at = 0  # how much of the trace

    # ------------------------------------------------------------------ pointing

    def new_id(self) -> str:
        """An id that nobody used before."""
        self.made += 1
        return f"x{self.made}"

    @staticmethod
    def at(place: int, things: Sequence[_Thing]) -> _Thing | None:
        """The thing at a place; None when there is nothing."""
        return things[place % len(things)] if things else None

    @property
    def view(self) -> Any:
        """The view of the store that is open now."""
        return self.kernel.store.view

    def call(self, place: int) -> ToolCall | None:
        """A call: an open one for most places, any of the newest for the others."""
        return self._newest(place, self.view.calls)

    def question(self, place: int) -> Interaction | None:
        """A question or notice, as `call` points."""
        return self._newest(place, self.view.interactions)

    def _newest(self, place: int, listed: Callable[..., Sequence[Any]]) -> Any:
        found = listed(state="open", limit=4) if place < MOST else ()
        return self.at(place, found or listed(limit=6))

    def call_id(self, place: int) -> str:
        """The id of a call, or one that no call has."""
        call = self.call(place)
        return call.call_id if call is not None else "nothing"

    def instance(self, app: str) -> Instance | None:
        """The App's instance of now."""
        found: Instance | None = self.view.current_instance(app)
        return found

    def a_view(self, place: int = 0) -> Origin:
        """A view that is attached, or the admin channel, which is always there."""
        return self.at(place, [*self.kernel.views.values(), ADMIN]) or ADMIN

    def come_up(self, app: str, subscribes: bool = True) -> Origin | None:
        """The App's process gets its instance, subscribes and says that it started; who speaks on its channel."""
        instance = self.instance(app)
        origin = self.kernel.come_up(instance.instance_id) if instance is not None else None
        if origin is not None and origin not in self.lives:
            self.lives.append(origin)
            asked = [m.ToolsSubscribe(), m.InboxSubscribe(), y.TimelineSubscribe() if app == "chat" else i.UiSubscribe()]
            self.kernel.say(origin, *(asked if subscribes else []), m.LifecycleStarted())
        return origin

    def tell(self, app: str, *messages: object) -> list[Outcome]:
        """Messages of the App's worker, which comes up for it if it can."""
        origin = self.come_up(app)
        return self.kernel.say(origin, *messages) if origin is not None else []

    def tell_of(self, call: ToolCall | None, *messages: object) -> list[Outcome]:
        """Messages of the worker that has a call."""
        worker = self.kernel.worker(call.instance_id) if call is not None and call.instance_id else None
        return self.kernel.say(worker, *messages) if worker is not None else []

    # ------------------------------------------------------------------ checking

    def check(self) -> None:
        """What holds after every step that left something."""
        if len(self.kernel.trace.events) == self._looked_at:
            return
        self._looked_at = len(self.kernel.trace.events)
        require_none(check_after_a_turn(self.kernel.store._db._connection))
        require_none(unlike_the_rows(self.kernel.store))
        require_none(left_undone(self.kernel.store))

    def teardown(self) -> None:
        """Faults stop, time runs out, receivers take what waits: then every promise is looked at, over rows and over the trace."""
        try:
            self.kernel.die_at = None
            self.kernel.free_the_disk()
            self.kernel.reap()
            self.kernel.pass_time(25 * 3_600_000)
            self.kernel.reap()
            assert list(self.view.due_calls(self.kernel.clock.boottime, 1_000)) == []  # L2: every call with a clock has ended
            for source in (Source.AGENT, Source.DEMO):
                self.drain(source)
            self.check()
            require_none(check_all(self.kernel.store._db._connection))
            require_none(check_trace(self.kernel.trace))
        finally:
            self.kernel.end()
            shutil.rmtree(self.folder, ignore_errors=True)

    def drain(self, source: Source) -> None:
        """An Agent comes and takes over everything that waits for it (L3)."""
        self.kernel.attach(source)
        while self.kernel.door is not None and self.kernel.door.rows:
            self.acknowledge(len(self.kernel.door.rows))
        assert not self.view.outbox_pending(source, 0, 1)
        self.kernel.trace.add(Drained(destination=source))

    def acknowledge(self, count: int) -> None:
        """The Agent at the door acknowledges the oldest rows it has."""
        door, origin = self.kernel.door, self.kernel.agent()
        if door is None or origin is None:
            return
        for message_id in list(door.rows)[:count]:
            del door.rows[message_id]
            self.kernel.say(origin, OutboxAcknowledge(message_id=message_id))
