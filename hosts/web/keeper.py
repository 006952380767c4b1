"""The web host's own hold on the kernel: one silent view that starts it, starts it again, and says how it stands (SPEC 2.9).

Use: `await nursery.start(keeper.run)`; pages and the demo Agent attach with `keeper.attach`, which never starts a kernel.
Rules:
1. Only this view starts kernels: ten pages that lose a kernel at once are one start, not ten.
2. A kernel that cannot be started again (limits, a refusal) leaves phase `failed` with its code; one that was stopped on purpose leaves
   `ended`. Both stay until the person asks for another try, `retry`, or until another host has a kernel running: it is looked for once
   in LOOK_SECONDS and joined, never started.
3. The first start is different: what goes wrong there is raised, and the command says it.
"""

from __future__ import annotations

from typing import Literal

import trio

from hosts.homes import Home, HomeRefused
from hosts.launch import Launcher
from hosts.link import Event, HostLink, KernelUnreachable, Refused, connect
from hosts.view import View
from kernel.protocol.host import HostHello, Snapshot
from lineup_sdk.protocol.codes import Code

Phase = Literal["connecting", "up", "ended", "failed"]

UNREACHABLE = "kernel_unreachable"
JOIN_PAUSE_SECONDS = 0.1  # between two looks at a kernel that this view holds and that does not answer others yet
LOOK_SECONDS = 1.0
LEAVE_SECONDS = 3.0  # for a kernel that was stopped to be gone: while it says goodbye to others it still takes who comes
GREET_SECONDS = 5.0  # for a kernel that was found to take this view


class Keeper:
    """See the head of the file."""

    def __init__(self, launcher: Launcher) -> None:
        self.phase: Phase = "connecting"
        self.code: str | None = None
        self.hint: str | None = None
        self.restarts = 0
        self._launcher = launcher
        self._view = self._new_view()
        self._changed = trio.Event()
        self._retry_wanted = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the kernel for life; started once it is up. Raises (in a group), only before that: as Launcher.attach."""
        was_up = False
        while True:
            try:
                async with trio.open_nursery() as nursery:
                    if was_up:
                        await self._view.run()  # not `start`: a kernel that was joined may be on its way out
                    else:
                        await nursery.start(self._view.run)
                        was_up = True
                        task_status.started()
            except* (KernelUnreachable, Refused) as group:
                if not was_up:
                    raise
                self._fail(group)
            except* HomeRefused:
                if not was_up:
                    raise
                self._stay("failed", Code.STORE_FOREIGN, "the home folder cannot be used any more")
            self._view = self._new_view()

    @property
    def home(self) -> Home:
        """The home of the kernel."""
        return self._launcher.home

    def retry(self) -> None:
        """Try again now, if there is a reason to."""
        self._retry_wanted.set()

    def heard(self, event: Event) -> None:
        """Of the silent view: it is attached when its snapshot is in."""
        if isinstance(event, Snapshot):
            self._move("up")

    def link_lost(self) -> None:
        """Of the silent view: the kernel died, or was stopped on purpose."""
        if self._view.phase == "ended":
            self._stay("ended", self._view.ended.code if self._view.ended else None)
            return
        self.restarts += 1
        self._move("connecting")

    async def attach(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink:
        """Return a link to the kernel of this home, waiting while none is up. Raises: Refused, KernelUnreachable (a foreign one)."""
        while True:
            while self.phase != "up":
                await self.wait_change()
            try:
                return await connect(nursery, self.home, greeting)
            except KernelUnreachable as error:
                if error.code != UNREACHABLE:
                    raise
            with trio.move_on_after(JOIN_PAUSE_SECONDS):
                await self.wait_change()

    async def wait_change(self) -> None:
        """Wait until the phase changes next."""
        await self._changed.wait()

    def _new_view(self) -> View:
        return View(_Hold(self), "web", watcher=self)

    async def hold(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink:
        """Return the link of the silent view: to a kernel started now if none runs, or as rule 2 says. Raises: as Launcher.attach."""
        if self.phase in ("ended", "failed"):
            joined = await self._join_another(nursery, greeting)
            if joined is not None:
                return joined
            self._launcher.forget_launches()
            self._move("connecting")
        return await self._launcher.attach(nursery, greeting)

    async def _join_another(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink | None:
        """Wait for a kernel of somebody else's; None when the person asks for another try first."""
        pause_seconds = LEAVE_SECONDS if self.phase == "ended" else LOOK_SECONDS
        while True:
            with trio.move_on_after(pause_seconds):
                await self._retry_wanted.wait()
                return None
            pause_seconds = LOOK_SECONDS
            with trio.move_on_after(GREET_SECONDS):
                try:
                    return await connect(nursery, self.home, greeting)
                except (KernelUnreachable, Refused, HomeRefused):
                    pass  # none, or none that takes us: what was said before still stands

    def _fail(self, group: BaseExceptionGroup[KernelUnreachable | Refused]) -> None:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, KernelUnreachable | Refused):
            self._stay("failed", error.code, str(error.detail.get("hint") or error.detail.get("reason") or ""))

    def _stay(self, phase: Phase, code: str | None = None, hint: str | None = None) -> None:
        self._retry_wanted = trio.Event()
        self._move(phase, code, hint)

    def _move(self, phase: Phase, code: str | None = None, hint: str | None = None) -> None:
        self.phase, self.code, self.hint = phase, code, hint
        self._changed.set()
        self._changed = trio.Event()


class _Hold:
    """The silent view's way to its kernel; that of the pages is Keeper.attach."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def attach(self, nursery: trio.Nursery, greeting: HostHello) -> HostLink:
        return await self._keeper.hold(nursery, greeting)
