"""The HTTP seam of the web host: hypercorn's connections on a socket of ours, starlette's routes behind the guard.

Use: `await nursery.start(server.run)`; `await server.stop()`.
Rules:
1. Five routes and no other: the page, its files, its socket, a surface's document once, an artifact once.
2. The files of the page are a table made at the start (static_files.py): no path of a request is ever looked up on the disk.
3. A peer that stalls is cut (connection.py); hypercorn's own `serve` lends no way to its connections.
4. A socket is not compressed. hypercorn takes up permessage-deflate wherever it is offered, as every browser does, and inflates before
   it counts: one frame of 60 KB, from whoever reaches the port and has no key, took 185 MB for a moment.
5. What goes wrong in here is told as kind and place, never with what was sent.
"""

from __future__ import annotations

import math
import socket
import traceback
from collections.abc import Mapping
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from hosts.output import print_note
from hosts.web.asks import MAX_MESSAGE_BYTES
from hosts.web.connection import Connection
from hosts.web.guard import CONNECTION, ORIGIN, REFUSED_BODY, SOCKET_PATH, Guard
from hosts.web.headers import page_headers, refusal_headers
from hosts.web.page_socket import CLOSE_SECONDS, serve_page
from hosts.web.shared import Shared
from hosts.web.static_files import PAGE, StaticFile, read_static

HEAD_SECONDS = 5.0  # for the head of a request, and between two
MAX_CONNECTIONS = 128
_NOT_FOUND, _GONE = 404, 410


def refused(status: int) -> Response:
    """A refusal: one body for all."""
    return Response(REFUSED_BODY, status, refusal_headers())


class Routes:
    """See rule 1. Every answer has its whole headers from hosts.web.headers."""

    def __init__(self, shared: Shared, static: Mapping[str, StaticFile]) -> None:
        self._shared = shared
        self._static = static

    def app(self) -> Starlette:
        """Return the routes as an ASGI application."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{path:path}", self._file),
                Route("/s/{ticket}/", self._once),
                Route("/s/{ticket}", self._once),
                Route("/a/{ticket}", self._once),
                WebSocketRoute(SOCKET_PATH, self._socket),
                Route("/{path:path}", self._nothing),
            ]
        )

    async def _page(self, request: Request) -> Response:
        return self._send_file(request, PAGE)

    async def _file(self, request: Request) -> Response:
        return self._send_file(request, request.url.path)

    def _send_file(self, request: Request, name: str) -> Response:
        file = self._static.get(name)
        if file is None:
            return refused(_NOT_FOUND)
        headers = page_headers(request.scope["state"][ORIGIN]) | {"Content-Type": file.media_type}
        return Response(file.body, headers=headers)

    async def _once(self, request: Request) -> Response:
        content = self._shared.tickets.take(request.url.path.rstrip("/"))
        site = request.headers.get("sec-fetch-site")
        wanted = request.headers.get("sec-fetch-dest", "")
        if content is None or site != "same-origin" or (content.destinations and wanted not in content.destinations):
            return refused(_GONE)
        return Response(content.body, headers=dict(content.headers))

    async def _nothing(self, _: Request) -> Response:
        return refused(_NOT_FOUND)

    async def _socket(self, socket: WebSocket) -> None:
        await serve_page(socket, socket.scope["state"][ORIGIN], self._shared)


class _Uncompressed(ASGIWrapper):
    """The application as hypercorn calls it, with what a socket was offered forgotten before it is answered (rule 4)."""

    async def __call__(self, scope: Any, receive: Any, send: Any, sync_spawn: Any, call_soon: Any) -> None:
        if scope["type"] == "websocket":
            send.__self__.handshake.extensions = None  # hypercorn's WSStream; another one's lack of it refuses the socket
        await super().__call__(scope, receive, send, sync_spawn, call_soon)


class _Log:
    """hypercorn's log: a bug becomes its kind and place, the rest is nothing to a person."""

    def __init__(self, config: Config) -> None:
        pass

    async def access(self, *_: Any) -> None:
        """Nothing: paths of tickets are not written anywhere."""

    async def exception(self, *_: Any, **__: Any) -> None:
        """A bug of ours."""
        trace = traceback.format_exc().splitlines()
        places = [line.strip().partition(", in ")[0] for line in trace if line.strip(" |+-").startswith("File ")]
        print_note(f"lineup: a page met a mistake of this program: {places[-1] if places else 'unknown place'}")

    async def debug(self, *_: Any, **__: Any) -> None:
        """Not said."""

    critical = error = info = log = warning = debug


class Server:
    """See the head of the file. Owns the listening socket and every connection."""

    def __init__(self, listening: socket.socket, origins: Mapping[bytes, str], shared: Shared) -> None:
        self._listening = listening
        self._shared = shared
        self._app = _Uncompressed(Guard(Routes(shared, read_static()).app(), origins))  # type: ignore[arg-type]  # two words for one ASGI
        self._connections: set[Connection] = set()
        self._context = WorkerContext(None)
        self._room = trio.Semaphore(MAX_CONNECTIONS)
        self._accepting = trio.CancelScope()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop`."""
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(self._listening))
        async with listener, trio.open_nursery() as nursery:
            with self._accepting:
                task_status.started()
                while True:
                    await self._room.acquire()
                    nursery.start_soon(self._serve_one, await self._accept(listener))

    async def stop(self) -> None:
        """Let pages say goodbye, then end every connection."""
        self._accepting.cancel()
        self._shared.closing.set()
        with trio.move_on_after(2 * CLOSE_SECONDS):
            await self._shared.wait_no_pages()
        await self._context.terminated.set()
        for connection in self._connections:
            connection.cut()

    async def _accept(self, listener: trio.SocketListener) -> trio.SocketStream:
        pause_seconds = 0.05
        while True:
            try:
                return await listener.accept()
            except OSError:  # too many open files: wait until some are closed
                await trio.sleep(pause_seconds)

    async def _serve_one(self, accepted: trio.SocketStream) -> None:
        connection = Connection(accepted)
        self._connections.add(connection)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connection.cut_when_idle)
                await TCPServer(self._app, _config(), self._context, ConnectionState({CONNECTION: connection}), connection)  # type: ignore[arg-type]
                nursery.cancel_scope.cancel()
        finally:
            self._connections.discard(connection)
            self._room.release()


def _config() -> Config:
    config = Config()
    config.include_date_header = config.include_server_header = False
    config.keep_alive_timeout = math.ceil(HEAD_SECONDS)
    config.logger_class = _Log  # type: ignore[assignment]
    config.websocket_max_message_size = MAX_MESSAGE_BYTES
    return config
