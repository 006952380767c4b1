"""The small doors of a MiniApp that only ask: lifecycle, saved state, log. Each call is one message the kernel decides about.

Rules:
1. A MiniApp requests; it never changes focus, closes itself or writes a store (SPEC 8.2).
2. The saved state is replaced whole; with its surface and artifacts it is all an App remembers (SPEC 8.5).
"""

from __future__ import annotations

from lineup_sdk.protocol.limits import MAX_LOG_TEXT_BYTES
from lineup_sdk.protocol.messages import (
    JsonObject,
    LifecycleRequestBackground,
    LifecycleRequestClose,
    LifecycleRequestForeground,
    LogWrite,
    StateLoad,
    StateSave,
)
from lineup_sdk.protocol.system_messages import LifecycleRequestMode
from lineup_sdk.requests import Requests


class Lifecycle:
    """Requests about the own instance. Source: SPEC 8.2."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def request_foreground(self) -> None:
        """Ask to come to the front. Raises: Refused(lifecycle_denied) unless the person acted on this App a moment ago."""
        await self._requests.request(LifecycleRequestForeground())

    async def request_background(self) -> None:
        """Ask to go to the background. Raises: Refused."""
        await self._requests.request(LifecycleRequestBackground())

    async def request_mode(self, mode: str) -> None:
        """The system App asks for a mode of the conversation. Raises: Refused(mode_unavailable) for audio and video."""
        await self._requests.request(LifecycleRequestMode(mode=mode))

    async def request_close(self, reason: str | None = None) -> None:
        """Ask to be closed. Raises: Refused(lifecycle_denied) while own calls are open."""
        await self._requests.request(LifecycleRequestClose(reason=reason))


class SavedState:
    """The JSON object the kernel keeps for this App session across crash, suspend and restart. Source: SPEC 8.4, 8.5."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def save(self, state: JsonObject) -> None:
        """Replace the saved state; when this returns it is durable. Raises: Refused(limit_exceeded) over 32 KiB, Unsendable."""
        await self._requests.request(StateSave(state=state))

    async def load(self) -> JsonObject | None:
        """Return what was saved last, or None for an App session that saved nothing yet."""
        value = await self._requests.request(StateLoad())
        state: JsonObject | None = value["state"]
        return state


class Log:
    """Lines for the bounded ring the person can read. They never leave the machine. Source: SPEC 2.10."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def debug(self, text: str) -> None:
        """Write one line for whoever mends the App."""
        self._write("debug", text)

    def info(self, text: str) -> None:
        """Write one line about something that went as it should."""
        self._write("info", text)

    def warning(self, text: str) -> None:
        """Write one line about something odd."""
        self._write("warning", text)

    def error(self, text: str) -> None:
        """Write one line about something that went wrong."""
        self._write("error", text)

    def _write(self, level: str, text: str) -> None:
        line = f"{level}: {text}\n".encode(errors="replace")[:MAX_LOG_TEXT_BYTES]
        self._requests.send(LogWrite(stream="log", text=line.decode(errors="ignore")))
