"""A page without a browser: a WebSocket by hand on the web host's port, so that everything a page may say can be said, and more."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Message, Ping, RejectConnection, Request, TextMessage

SECONDS = 60


class Refused(Exception):
    """The handshake was refused, with a status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Closed(Exception):
    """The host closed the socket, with a code; 1006 = without a word."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class RawPage:
    """One socket. Every wait is bounded by the test's own deadline."""

    def __init__(self, stream: trio.SocketStream, origin: str) -> None:
        self.origin = origin
        self.heard: list[dict[str, Any]] = []
        self._stream = stream
        self._ws = WSConnection(ConnectionType.CLIENT)
        self._parts: list[str] = []
        self._next_id = 1

    async def handshake(self, host: str, target: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
        await self._stream.send_all(self._ws.send(Request(host=host, target=target, extra_headers=list(headers))))
        await self._next(AcceptConnection)

    async def send_text(self, *texts: str) -> None:
        """Send messages, all in one piece."""
        await self._stream.send_all(b"".join(self._ws.send(TextMessage(data=text)) for text in texts))

    async def send_bytes(self, data: bytes) -> None:
        await self._stream.send_all(self._ws.send(BytesMessage(data=data)))

    async def send(self, **message: Any) -> None:
        await self.send_text(json.dumps(message))

    async def receive(self) -> dict[str, Any]:
        """The next message of the host. Raises: Closed."""
        while True:
            event = await self._next(Message)
            self._parts.append(event.data)
            if event.message_finished:
                whole, self._parts = "".join(self._parts), []
                message: dict[str, Any] = json.loads(whole)
                self.heard.append(message)
                return message

    async def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that fits, of those not looked at yet."""
        while True:
            message = await self.receive()
            if wanted(message):
                return message

    async def wait_op(self, op: str, **fields: Any) -> dict[str, Any]:
        return await self.wait(lambda message: message["op"] == op and fields.items() <= message.items())

    async def wait_closed(self) -> int:
        """Read to the end; returns the close code."""
        try:
            while True:
                await self.receive()
        except Closed as closed:
            return closed.code

    async def auth(self, token: str) -> dict[str, Any]:
        await self.send(op="auth", token=token)
        return await self.wait_op("welcome")

    async def op(self, op: str, **fields: Any) -> dict[str, Any]:
        """Ask and wait for the answer; messages in between stay in `heard`."""
        ask_id, self._next_id = self._next_id, self._next_id + 1
        await self.send(op=op, id=ask_id, **fields)
        return await self.wait_op("reply", id=ask_id)

    async def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        return await self.op("ask", type=kind, **fields)

    def close(self) -> None:
        self._stream.socket.close()

    async def _next(self, kind: type) -> Any:
        while True:
            for event in self._ws.events():
                match event:
                    case RejectConnection(status_code=status):
                        raise Refused(status)
                    case CloseConnection(code=code):
                        raise Closed(int(code))
                    case Ping():
                        await self._stream.send_all(self._ws.send(event.response()))
                    case _ if isinstance(event, kind):
                        return event
            try:
                data = await self._stream.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                raise Closed(1006)
            self._ws.receive_data(data)


@asynccontextmanager
async def open_page(
    url: str, *, origin: str | None = "", host: str | None = None, target: str = "/ws", more: Sequence[tuple[bytes, bytes]] = ()
) -> AsyncIterator[RawPage]:
    """Open a socket on a host. origin: "" = the right one, None = none at all. Raises: Refused."""
    parts = urlsplit(url)
    own = f"{parts.scheme}://{parts.netloc}"
    async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 0) as stream:
        page = RawPage(stream, own)
        headers = [] if origin is None else [(b"origin", (origin or own).encode())]
        await page.handshake(host or parts.netloc, target, [*headers, *more])
        yield page


@asynccontextmanager
async def attached(url: str, token: str) -> AsyncIterator[RawPage]:
    """A page that is let in and has its first snapshot as the last thing heard."""
    async with open_page(url) as page:
        await page.auth(token)
        await page.wait_op("snapshot")
        yield page


def changes(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [change["value"] for change in message.get("changes", []) if change["kind"] == kind]


async def wait_change(page: RawPage, what: str, **fields: Any) -> dict[str, Any]:
    """The newest summary of a kind that has these fields, of those told since the last snapshot, or the next one."""
    last = max(place for place, message in enumerate(page.heard) if message["op"] == "snapshot")
    told = page.heard[last]["state"].get(f"{what}s", []) + [one for message in page.heard[last:] for one in changes(message, what)]
    while not (found := [one for one in told if fields.items() <= one.items()]):
        told = changes(await page.receive(), what)
    return found[-1]


def fetch(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, {}, refused.read()
