"""Connections to the port of the web host that never become a request (THREATS 3.6)."""

from __future__ import annotations

import socket

from tests.web.web_host import WebHost

SECONDS = 60

HELD = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost",
    "a length and no body": b"POST / HTTP/1.1\r\nHost: %(name)b\r\nContent-Length: 9\r\n\r\n",
    "pieces that never come": b"POST / HTTP/1.1\r\nHost: %(name)b\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/2 that says no more": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]),
    "a page, and no more": b"GET / HTTP/1.1\r\nHost: %(name)b\r\n\r\n",
}


def test_nobody_holds_a_connection_without_a_request(host: WebHost) -> None:
    """There are 128 of them, and every page needs one."""
    name = f"127.0.0.1:{host.port}".encode()
    held = {}
    for what, data in HELD.items():
        held[what] = socket.create_connection(("127.0.0.1", host.port), timeout=SECONDS)
        held[what].sendall(data % {b"name": name} if b"%(name)b" in data else data)
    for what, sock in held.items():
        with sock:
            assert _is_let_go(sock), what


def _is_let_go(sock: socket.socket) -> bool:
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True
