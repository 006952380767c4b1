"""The console: what `lineup console` opens. It ties view, state, drawing and terminal together and decides nothing itself.

Rules:
1. One task reads keys, one draws, one watches the view, one hears signals; what a key asks of the kernel runs in a task of its own.
2. Drawing is at most FRAMES_PER_SECOND and only when something changed, or once a second while a question counts down.
3. A dead kernel is started again by the view; one that was stopped on purpose ends the console.
4. What no snapshot holds (sessions, parked messages) is read again when an instance changed, at most once in REREAD_SECONDS; ended
   questions once a snapshot, for the cards in the conversation.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import trio

from hosts.console_answers import take_loss, take_refusal, take_value
from hosts.console_draw import cursor_place, draw
from hosts.console_keys import KeyReader
from hosts.console_press import press
from hosts.console_state import ConsoleState, counts_down, follow, show_notification
from hosts.launch import Launcher
from hosts.link import LinkLost, Refused
from hosts.mirror import MAX_ENDED_INTERACTIONS, Mirror
from hosts.output import Exit
from hosts.providers import Notification, Providers, notification_line, save_into, terminal_clipboard
from hosts.terminal import Terminal
from hosts.view import View
from kernel.protocol.host_interactions import InteractionsList
from kernel.protocol.host_sessions import SessionsList
from kernel.protocol.host_upkeep import InboxParked
from lineup_sdk.protocol.messages import Message

FRAMES_PER_SECOND = 20
ESCAPE_SECONDS = 0.05  # how long the rest of an escape sequence may take
COUNTDOWN_SECONDS = 1.0
REREAD_SECONDS = 1.0


class ConsoleHost:
    """See the head of the file."""

    def __init__(self, launcher: Launcher, terminal: Terminal, save_folder: Path) -> None:
        self.state = ConsoleState()
        self._terminal = terminal
        able = {
            "artifact.save": save_into(save_folder),
            "clipboard.write": terminal_clipboard(terminal.send),
            "notification.show": notification_line(self._show_notification),
        }
        self._view = View(launcher, "console", Providers(able))
        self._dirty = trio.Event()
        self._left = trio.Event()

    async def run(self) -> Exit:
        """Run until the person leaves or the kernel is stopped. Raises (in a group): KernelUnreachable, Refused."""
        with self._terminal.full_screen():
            async with trio.open_nursery() as nursery:
                for task in (self._view.run, self._watch_view, self._reread, self._hear_signals, self._draw_frames):
                    nursery.start_soon(task)
                nursery.start_soon(self._read_keys, nursery)
                await self._left.wait()
                nursery.cancel_scope.cancel()
        return self.state.leaving if self.state.leaving is not None else Exit.OK

    def _show_notification(self, notification: Notification) -> None:
        show_notification(self.state, notification)
        self._touch()

    def _touch(self) -> None:
        self._dirty.set()
        if self.state.leaving is not None:
            self._left.set()

    def _stamp(self) -> None:
        self.state.ticks, self.state.wall = trio.current_time(), time.time()

    def _leave(self, code: Exit) -> None:
        self.state.leaving = code
        self._touch()

    async def _watch_view(self) -> None:
        view, state = self._view, self.state
        while True:
            state.mirror, state.phase, state.restarts, state.view_id = view.mirror, view.phase, view.restarts, view.view_id
            self._stamp()
            follow(state)
            if view.phase == "ended":
                self._leave(Exit.OK)
            self._touch()
            await view.wait_change()

    async def _reread(self) -> None:
        seen: object = None
        filled: Mirror | None = None  # a new snapshot makes a new mirror
        while True:
            mirror = self._view.mirror
            ended = [] if mirror is filled else [InteractionsList(state="ended", limit=MAX_ENDED_INTERACTIONS)]
            now = (self._view.restarts, sorted((one, instance["state"]) for one, instance in mirror.instances.items()))
            if (ended or now != seen) and self._view.phase == "up":
                seen, filled = now, mirror
                await self._ask([InboxParked(), SessionsList(), *ended])
                await trio.sleep(REREAD_SECONDS)
            else:
                await self._view.wait_change()

    async def _hear_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGWINCH, signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                if number == signal.SIGWINCH:
                    self._terminal.forget()
                    self._touch()
                else:
                    self._leave(Exit.INTERRUPTED)

    async def _draw_frames(self) -> None:
        while True:
            with trio.move_on_after(COUNTDOWN_SECONDS if counts_down(self.state) else float("inf")):
                await self._dirty.wait()
            self._dirty = trio.Event()
            self._stamp()
            width, height = self._terminal.size()
            await self._terminal.show(draw(self.state, width, height), cursor_place(self.state, width, height), width)
            await trio.sleep(1 / FRAMES_PER_SECOND)  # rule 2: what comes meanwhile is drawn at once, together

    async def _read_keys(self, nursery: trio.Nursery) -> None:
        reader = KeyReader()
        while True:
            data = b""
            with trio.move_on_after(ESCAPE_SECONDS if reader.is_waiting else float("inf")) as waited:
                data = await self._terminal.read()
            if not data and not waited.cancelled_caught:
                self._leave(Exit.INTERRUPTED)
                return
            self._stamp()
            for key in reader.feed(data) if data else reader.flush():
                if messages := press(self.state, key):
                    nursery.start_soon(self._ask, messages)
            self._touch()

    async def _ask(self, messages: list[Message]) -> None:
        """Ask one after the other; the first that is refused or lost ends it."""
        for message in messages:
            try:
                value = await self._view.request(message)
            except LinkLost:
                take_loss(self.state, message)
                break
            except Refused as refusal:
                take_refusal(self.state, message, refusal.code, refusal.detail)
                break
            take_value(self.state, message, value)
        self._touch()


async def run_console(launcher: Launcher, save_folder: Path) -> Exit:
    """Open the console on this process's terminal and return the exit code of the command. save_folder: where Apps may save files."""
    return await ConsoleHost(launcher, Terminal(0, 1), save_folder).run()
