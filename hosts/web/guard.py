"""What stands before every route of the web host: a pure ASGI guard (THREATS 3.6).

A request passes only when all of this holds, and is refused before anything else looks at it:
1. HTTP/1.1, GET of a path (not of a whole URL, as of a proxy), no body, no query; a socket only at /ws, nothing but a socket there.
2. Host is exactly one of our names: a name that was rebound to us, another writing of our address, or none, is not ours.
3. Origin, where it is sent, is the origin of that name; at a socket it must be sent.
4. Sec-Fetch-Site, where it is sent, says that our own page or the person asks. From another site only the bare page may be navigated to:
   it holds no secret and changes nothing.
5. Every refusal has one status and one body: they tell nobody what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hosts.web.headers import refusal_headers

REFUSED_STATUS = 403
REFUSED_BODY = b"refused\n"
SOCKET_PATH = "/ws"
# In scope["state"]: the origin under which the request came, and the connection it came on.
ORIGIN = "lineup.origin"
CONNECTION = "lineup.connection"

_OWN_SITES = frozenset({b"none", b"same-origin"})


def as_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI wants them."""
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


class Guard:
    """See the head of the file. origins: the Host texts that are ours, each with its origin."""

    def __init__(self, app: ASGIApp, origins: Mapping[bytes, str]) -> None:
        self._app = app
        self._origins = dict(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            return
        origin = self._origin_of(scope)
        if origin is None:
            await _refuse(scope, receive, send)
            return
        with scope["state"][CONNECTION].at_work():
            await self._app({**scope, "state": {ORIGIN: origin}}, receive, send)

    def _origin_of(self, scope: Scope) -> str | None:
        headers = _single(scope["headers"])
        if headers is None or not _is_plain(scope, headers):
            return None
        origin = self._origins.get(headers.get(b"host", b""))
        if origin is None or not _is_from_us(scope, headers, origin.encode()):
            return None
        return origin


_ONCE = (b"host", b"origin", b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site")


def _single(pairs: list[tuple[bytes, bytes]]) -> dict[bytes, bytes] | None:
    """The headers by name; None when one that decides here is there twice."""
    names = [name.lower() for name, _ in pairs]
    if any(names.count(name) > 1 for name in _ONCE):
        return None
    return dict(zip(names, (value for _, value in pairs), strict=True))


def _is_plain(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    is_socket = scope["type"] == "websocket"
    has_body = b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
    is_get = is_socket or scope["method"] == "GET"
    is_in_place = (scope["path"] == SOCKET_PATH) is is_socket
    is_path = scope["path"].startswith("/")
    return scope["http_version"] == "1.1" and is_get and is_path and is_in_place and not has_body and not scope["query_string"]


def _is_from_us(scope: Scope, headers: Mapping[bytes, bytes], origin: bytes) -> bool:
    if headers.get(b"origin", b"" if scope["type"] == "websocket" else origin) != origin:
        return False
    site = headers.get(b"sec-fetch-site", b"none")
    is_navigation = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
    return site in _OWN_SITES or (is_navigation and scope["path"] == "/" and b"origin" not in headers)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()  # its connect comes first; a body may never come
    await answer(scope, send, REFUSED_STATUS, refusal_headers(), REFUSED_BODY)


async def answer(scope: Scope, send: Send, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Send one whole response, also in the place of a socket that is refused."""
    prefix = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    sized = {**headers, "Content-Length": str(len(body))}
    start: Message = {"type": f"{prefix}.start", "status": status, "headers": as_headers(sized)}
    whole: dict[str, Any] = {"type": f"{prefix}.body", "body": body}
    await send(start)
    await send(whole)
