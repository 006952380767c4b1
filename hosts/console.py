"""The console: what `lineup run` opens. It ties view, state, drawing and terminal together and decides nothing itself.

Rules:
1. One task reads keys, one draws, one watches the view, one hears signals; actions run each in their own task and end as a notice.
2. Drawing is at most FRAMES_PER_SECOND and only when something changed.
3. A dead kernel is started again by the view; one that was stopped on purpose ends the console.
"""

from __future__ import annotations

import signal
from pathlib import Path

import trio

from hosts.console_draw import cursor_place, draw
from hosts.console_keys import KeyReader
from hosts.console_state import Action, CancelCall, CloseApp, ConsoleState, RaiseApp, ReadLogs, Say, ask_to_close, notify, press, show_notification
from hosts.launch import Launcher
from hosts.link import LinkLost, Refused
from hosts.output import Exit
from hosts.providers import Notification, Providers, notification_line, save_into, terminal_clipboard
from hosts.terminal import Terminal
from hosts.view import View
from kernel.protocol.host import AppClose, CallCancel, FocusRaise, LogsRead, MessageSend
from lineup_sdk.protocol.codes import Code
from lineup_sdk.protocol.messages import Message

FRAMES_PER_SECOND = 20
ESCAPE_SECONDS = 0.05  # how long the rest of an escape sequence may take


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
                for task in (self._view.run, self._watch_view, self._hear_signals, self._draw_frames):
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

    def _leave(self, code: Exit) -> None:
        self.state.leaving = code
        self._touch()

    async def _watch_view(self) -> None:
        while True:
            self.state.mirror, self.state.phase, self.state.restarts = self._view.mirror, self._view.phase, self._view.restarts
            if self._view.phase == "ended":
                self._leave(Exit.OK)
            self._touch()
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
            await self._dirty.wait()
            self._dirty = trio.Event()
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
            for key in reader.feed(data) if data else reader.flush():
                for action in press(self.state, key):
                    nursery.start_soon(self._act, action)
            self._touch()

    async def _act(self, action: Action) -> None:
        try:
            value = await self._view.request(_request_of(action))
        except LinkLost:
            notify(self.state, "The kernel went away before it answered; see whether it was done.")
        except Refused as refusal:
            self._explain(action, refusal)
        else:
            if isinstance(action, ReadLogs):
                self.state.log_text, self.state.page, self.state.scroll = str(value["text"]), "logs", 0
        self._touch()

    def _explain(self, action: Action, refusal: Refused) -> None:
        if isinstance(action, CloseApp) and refusal.code == Code.LIFECYCLE_DENIED and not action.cancel_calls:
            ask_to_close(self.state, action.instance_id)  # a call came in between drawing and closing
            return
        hint = refusal.detail.get("hint") or refusal.detail.get("expected") or ""
        notify(self.state, f"Refused: {refusal.code}. {hint}".rstrip())


def _request_of(action: Action) -> Message:
    match action:
        case Say():
            return MessageSend(text=action.text)
        case CancelCall():
            return CallCancel(call_id=action.call_id)
        case CloseApp():
            return AppClose(instance_id=action.instance_id, cancel_calls=action.cancel_calls)
        case RaiseApp():
            return FocusRaise(instance_id=action.instance_id)
        case ReadLogs():
            return LogsRead(instance_id=action.instance_id)


async def run_console(launcher: Launcher, save_folder: Path) -> Exit:
    """Open the console on this process's terminal and return the exit code of the command. save_folder: where Apps may save files."""
    return await ConsoleHost(launcher, Terminal(0, 1), save_folder).run()
