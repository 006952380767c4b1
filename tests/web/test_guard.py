"""The port of the web host against everything else in the browser and on the machine (THREATS 3.6): refused before any effect."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from hosts.web.guard import REFUSED_BODY
from hosts.web.pace import BURST, STRIKES
from tests.web.raw_page import RawPage, Refused, attached, open_page
from tests.web.web_host import WebHost

SECONDS = 30


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebHost]:
    made = WebHost(tmp_path_factory.mktemp("guard") / "home")
    made.start()
    yield made
    made.close()
    assert "mistake" not in made.said(), "no refusal is an accident"


@pytest.fixture(scope="module", autouse=True)
def nothing_has_happened(host: WebHost) -> Iterator[None]:
    """Around all of this file: no message, no call, no view but the host's own is left in the kernel."""
    yield

    async def look() -> tuple[int, list[object]]:
        async with attached(host.origin, host.token) as page:
            status = (await page.ask("kernel.status"))["value"]
            return status["views"], [message["text"] for message in page.heard[-2]["state"]["messages"]]

    views, texts = trio.run(look)
    assert (views, texts) == (2, [])


def exchange(host: WebHost, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, read to the end of the answer: status, headers, body."""
    with socket.create_connection(("127.0.0.1", host.port), timeout=SECONDS) as sock:
        sock.sendall(request)
        with sock.makefile("rb") as reader:
            status_line = reader.readline()
            headers = {}
            while line := reader.readline().strip():
                name, _, value = line.decode().partition(": ")
                headers[name.lower()] = value
            body = b"" if request.startswith(b"HEAD") else reader.read(int(headers.get("content-length", "0")))
    return int(status_line.split()[1]), headers, body


def get(host: WebHost, path: str = "/", **headers: str) -> bytes:
    lines = {"host": f"127.0.0.1:{host.port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return _request(f"GET {path} HTTP/1.1", lines)


def _request(first: str, headers: dict[str, str]) -> bytes:
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode()


HOSTS = (
    "127.0.0.1",
    "127.0.0.1:1",
    "localhost:{port}",
    "LOCALHOST:{port}",
    "127.0.0.1.:{port}",
    "127.0.0.1:0{port}",
    "127.0.0.1:{port}:{port}",
    "2130706433:{port}",
    "0x7f000001:{port}",
    "0177.0.0.1:{port}",
    "127.1:{port}",
    "0.0.0.0:{port}",
    "[::1]:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "rebound.example",
    "me@127.0.0.1:{port}",
    "",
)


@pytest.mark.parametrize("name", HOSTS)
def test_a_name_that_is_not_exactly_ours_is_refused(host: WebHost, name: str) -> None:
    answer = exchange(host, _request("GET / HTTP/1.1", {"host": name.format(port=host.port)}))
    assert (answer[0], answer[2]) == (403, REFUSED_BODY)


@pytest.mark.parametrize("headers", [{}, {"host": "127.0.0.1:{port}", "Host": "evil.example"}])
def test_no_name_and_two_names_are_refused(host: WebHost, headers: dict[str, str]) -> None:
    named = {name: value.format(port=host.port) for name, value in headers.items()}
    assert exchange(host, _request("GET / HTTP/1.1", named))[0] in (400, 403)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}"]
)
def test_a_request_of_another_origin_is_refused(host: WebHost, origin: str) -> None:
    answer = exchange(host, get(host, "/static/app.js", origin=origin.format(port=host.port)))
    assert (answer[0], answer[2]) == (403, REFUSED_BODY)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "BREW"])
def test_no_method_but_get_is_taken(host: WebHost, method: str) -> None:
    answer = exchange(host, _request(f"{method} / HTTP/1.1", {"host": f"127.0.0.1:{host.port}"}))
    assert answer[0] == 403
    assert "access-control-allow-origin" not in answer[1]


def test_a_form_a_body_and_a_query_are_refused(host: WebHost) -> None:
    form = {"host": f"127.0.0.1:{host.port}", "content-type": "text/plain", "content-length": "2"}
    assert exchange(host, _request("POST /ws HTTP/1.1", form) + b"{}")[0] == 403
    assert exchange(host, _request("GET / HTTP/1.1", form) + b"{}")[0] == 403
    assert exchange(host, get(host, f"/?token={host.token}"))[0] == 403


def test_older_and_newer_protocols_are_refused(host: WebHost) -> None:
    own = {"host": f"127.0.0.1:{host.port}"}
    assert exchange(host, _request("GET / HTTP/1.0", own))[0] == 403
    settings = own | {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQAAP__"}
    with socket.create_connection(("127.0.0.1", host.port), timeout=SECONDS) as sock:
        sock.sendall(_request("GET / HTTP/1.1", settings) + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        heard = b""
        while data := sock.recv(65536):
            heard += data
            if REFUSED_BODY in heard:
                break
    assert REFUSED_BODY in heard
    assert b"<!doctype" not in heard


def test_the_whole_url_of_a_proxy_is_refused_as_everything_is(host: WebHost) -> None:
    for url in ("http://evil.example/", f"http://127.0.0.1:{host.port}/", "*", "evil.example:443"):
        answer = exchange(host, _request(f"GET {url} HTTP/1.1", {"host": f"127.0.0.1:{host.port}"}))
        assert (answer[0], answer[2]) == (403, REFUSED_BODY), url
        assert "content-security-policy" in answer[1], url


SITES = (
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "script"},  # a script of ours in a foreign page
    {"sec_fetch_site": "same-site", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty"},  # a page on another port of this machine
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"},
    {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "object"},
    {"sec_fetch_site": "made-up", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"},
)


@pytest.mark.parametrize("headers", SITES)
@pytest.mark.parametrize("path", ["/", "/static/app.js", "/a/x", "/s/x/"])
def test_what_another_site_asks_for_is_refused(host: WebHost, path: str, headers: dict[str, str]) -> None:
    answer = exchange(host, get(host, path, **headers))
    assert (answer[0], answer[2]) == (403, REFUSED_BODY)


def test_a_person_may_come_from_another_site_to_the_bare_page_only(host: WebHost) -> None:
    click = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert exchange(host, get(host, "/", **click))[0] == 200
    assert exchange(host, get(host, "/static/app.js", **click))[0] == 403


def test_no_other_path_is_served_and_none_leaves_the_folder(host: WebHost) -> None:
    for path in ("/nothing", "/static/", "/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/types.d.ts"):
        answer = exchange(host, get(host, path))
        assert (answer[0], answer[2]) == (404, REFUSED_BODY), path
    for path in ("/s/unknown/", "/a/unknown", "/a/" + "x" * 4000):
        answer = exchange(host, get(host, path, sec_fetch_site="same-origin", sec_fetch_dest="image"))
        assert (answer[0], answer[2]) == (410, REFUSED_BODY), path


# --- headers


def test_every_answer_has_its_headers_and_says_nothing_of_what_serves_it(host: WebHost) -> None:
    own = f"http://127.0.0.1:{host.port}"
    common = {
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    page = exchange(host, get(host))[1]
    script = exchange(host, get(host, "/static/app.js"))[1]
    refused = exchange(host, get(host, "/", origin="null"))[1]
    for headers in (page, script, refused):
        assert common.items() <= headers.items()
        assert not {"server", "date", "set-cookie", "x-powered-by", "access-control-allow-origin", "alt-svc"} & headers.keys()
    policy = dict(part.split(" ", 1) for part in page["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": f"{own}/static/",
        "style-src": f"{own}/static/",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "frame-src": f"{own}/s/",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert page["connection-allowlist"] == "(response-origin)"
    assert script["content-type"].startswith("text/javascript")


# --- sockets


SOCKET_ORIGINS = ("http://evil.example", "null", None, "http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://localhost:{port}")


@pytest.mark.parametrize("origin", SOCKET_ORIGINS)
async def test_a_foreign_socket_is_refused_at_the_handshake(host: WebHost, origin: str | None) -> None:
    with trio.fail_after(SECONDS), pytest.raises(Refused) as refused:
        async with open_page(host.origin, origin=origin and origin.format(port=host.port)):
            pass
    assert refused.value.status == 403


async def test_a_socket_under_another_name_path_or_site_is_refused(host: WebHost) -> None:
    wrong = ({"host": f"localhost:{host.port}"}, {"target": "/"}, {"target": "/ws?x=1"}, {"more": [(b"sec-fetch-site", b"same-site")]})
    for options in wrong:
        with trio.fail_after(SECONDS), pytest.raises(Refused) as refused:
            async with open_page(host.origin, **options):  # type: ignore[arg-type]
                pass
        assert refused.value.status == 403


async def test_a_socket_path_without_a_socket_is_refused(host: WebHost) -> None:
    assert exchange(host, get(host, "/ws"))[0] == 403


async def end_of(page: RawPage) -> int:
    with trio.fail_after(SECONDS):
        code = await page.wait_closed()
    assert page.heard == [], "nothing is told before it is let in"
    return code


FIRST = (
    '{"op": "auth", "token": "wrong"}',
    '{"op": "auth"}',
    '{"op": "auth", "token": 5}',
    '{"op": "auth", "token": "\\ud800"}',
    '{"op": "ask", "id": 1, "type": "message.send", "text": "let me in"}',
    '{"op": "retry"}',
    "no json",
    "[]",
    "{}",
    '{"op": "auth", "op": "auth", "token": "x"}',
    "[" * 5000,
)


@pytest.mark.parametrize("text", FIRST)
async def test_a_first_message_that_does_not_open_ends_the_socket(host: WebHost, text: str) -> None:
    async with open_page(host.origin) as page:
        await page.send_text(text)
        assert await end_of(page) == 4401


async def test_a_binary_first_message_ends_the_socket(host: WebHost) -> None:
    async with open_page(host.origin) as page:
        await page.send_bytes(json.dumps({"op": "auth", "token": host.token}).encode())
        assert await end_of(page) == 4401


async def test_a_giant_first_message_ends_the_socket(host: WebHost) -> None:
    async with open_page(host.origin) as page:
        await page.send_text("x" * (300 * 1024))
        assert await end_of(page) == 1009


@pytest.mark.parametrize(
    "offer", ["permessage-deflate", "permessage-deflate; client_max_window_bits", "PERMESSAGE-DEFLATE, permessage-deflate"]
)
async def test_a_socket_that_is_offered_compression_takes_none_and_a_compressed_frame_ends_it(host: WebHost, offer: str) -> None:
    """Inflated, one frame of 60 KB would take a hundred times its size before any limit counts it; nobody needs a key to send one."""
    upgrade = {
        "origin": host.origin,
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec_websocket_key": base64.b64encode(bytes(16)).decode(),
        "sec_websocket_version": "13",
        "sec_websocket_extensions": offer,
    }
    status, headers, _ = exchange(host, get(host, "/ws", **upgrade))
    assert status == 101
    assert "sec-websocket-extensions" not in headers
    async with await trio.open_tcp_stream("127.0.0.1", host.port) as stream:
        with trio.fail_after(SECONDS):
            await stream.send_all(get(host, "/ws", **upgrade))
            assert b" 101 " in await stream.receive_some()
            await stream.send_all(bytes([0xC1, 0x80, 0, 0, 0, 0]))  # a text, said to be compressed
            assert await stream.receive_some() == b""


async def test_who_says_nothing_is_sent_away_in_time(host: WebHost) -> None:
    async with open_page(host.origin) as page:
        assert await end_of(page) == 4401


async def test_who_does_not_even_ask_is_sent_away(host: WebHost) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", host.port) as stream:
        with trio.fail_after(SECONDS):
            await stream.send_all(b"GET / HT")
            assert await stream.receive_some() == b""


NOT_FOR_PAGES = ({"type": "kernel.stop"}, {"type": "backup.make", "path": "/tmp/x"}, {"type": "hello", "wire": 1, "role": "admin"}, {})
NOT_SO = (
    '{"op": "ask", "id": 1, "type": "message.send", "text": 5}',
    '{"op": "ask", "id": 1, "type": "message.send", "text": "a", "x": 1}',
    '{"op": "ask", "id": 1, "type": "message.send"}',
    '{"op": "surface.patch", "id": 1, "mount": 1, "base_version": 0, "patch": {}}',
    '{"op": "artifact", "id": 1}',
    '{"op": "fly", "id": 1}',
    '{"op": "auth", "token": "again"}',
)
NO_JSON_OF_OURS = (
    '{"op": "ask", "id": 3, "text": NaN}',
    '{"op": "retry", "x": "\\udfff"}',
    '{"op": "retry", "op": "retry"}',
    '{"op": "ask", "x": 12345678901234567890}',
    '{"op": "ask", "x": ' + "[" * 60 + "]" * 60 + "}",
    "{",
    "7",
    "",
)


async def test_what_is_not_for_pages_or_not_so_is_told_with_its_place(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            for fields in NOT_FOR_PAGES:
                assert (await page.op("ask", **fields))["receipt"]["detail"]["pointer"] == "/type"
            for text in (*NOT_SO, *NO_JSON_OF_OURS):
                await page.send_text(text)
                said = (await page.wait_op("reply"))["receipt"]
                assert (said["accepted"], said["code"]) == (False, "protocol_violation"), text
                assert said["detail"].keys() >= {"pointer", "expected"}, text
            await page.send_bytes(b"\x00")
            await page.wait_op("reply", id=None)
            assert "value" in await page.ask("kernel.status"), "it goes on"


async def test_a_page_that_only_misbehaves_is_closed(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            await page.send_text(*["x"] * 100)
            assert await page.wait_closed() == 4429


async def test_a_page_that_floods_is_closed_and_the_others_go_on(host: WebHost) -> None:
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page, attached(host.origin, host.token) as other:
            await page.send_text(*['{"op": "retry"}'] * 3_000)
            assert await page.wait_closed() == 4429
            assert "value" in await other.ask("kernel.status")


async def test_what_is_too_much_is_refused_under_its_number(host: WebHost) -> None:
    """A page waits for the answer to each of its asks."""
    numbers = list(range(BURST + STRIKES - 10))
    with trio.fail_after(SECONDS):
        async with attached(host.origin, host.token) as page:
            await page.send_text(*[f'{{"op":"ask","type":"kernel.status","id":{number}}}' for number in numbers])
            replies = [await page.wait_op("reply") for _ in numbers]
            assert sorted(reply["id"] for reply in replies) == numbers
            assert "limit_exceeded" in {reply.get("receipt", {}).get("code") for reply in replies}


def test_the_first_answer_to_a_question_of_the_network_is_one_and_the_same(host: WebHost, tmp_path: Path) -> None:
    """T-H7: whoever asks without being ours learns one status and one body."""
    answers = {
        exchange(host, get(host, "/", origin="http://evil.example"))[::2],
        exchange(host, get(host, "/anything", origin="http://evil.example"))[::2],
        exchange(host, _request("GET / HTTP/1.1", {"host": "evil.example"}))[::2],
        exchange(host, _request("DELETE /static/app.js HTTP/1.1", {"host": f"127.0.0.1:{host.port}"}))[::2],
    }
    assert answers == {(403, REFUSED_BODY)}
