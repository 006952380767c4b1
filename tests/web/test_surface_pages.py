"""The document of a surface: one script under one digest, every header, and nothing that a browser would read as something else."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from typing import Any

import pytest

from hosts.web.surface_pages import DocumentRefused, bootstrap, document, parts
from hosts.web.tickets import Content

ORIGIN = "http:" + "//127.0.0.1:8080"


def made(**more: Any) -> Content:
    given = {"script": b"let a;", "style": b"body {}", "mount": "m1", "title": "Board", "lang": "en", "origin": ORIGIN}
    return document(**given | more)


@pytest.mark.clause("9.2")
@pytest.mark.invariant("50")
def test_a_document_is_one_script_with_the_bootstrap_first_and_its_digest_is_the_only_one_allowed() -> None:
    content = made()
    [script] = re.findall(r"<script>(.*?)</script>", content.body.decode(), re.DOTALL)
    assert script == bootstrap() + "let a;"
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    assert content.headers["Content-Security-Policy"] == (
        f"sandbox allow-scripts; default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors {ORIGIN}"
    )
    assert content.headers["Connection-Allowlist"] == "()"
    assert content.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert content.headers["X-Content-Type-Options"] == "nosniff"
    assert content.headers["Referrer-Policy"] == "no-referrer"
    assert content.headers["Cache-Control"] == "no-store"
    assert content.destinations == {"iframe"}


@pytest.mark.clause("9.2")
def test_what_the_kernel_names_stands_escaped_in_a_document() -> None:
    body = made(title='<b>"&', mount='"><script>', lang='"x').body.decode()
    assert "<title>&lt;b&gt;&quot;&amp;</title>" in body
    assert 'data-mount="&quot;&gt;&lt;script&gt;"' in body
    assert body.count("<script>") == 1


BAD = [b"</script", b"x </SCRIPT >", b"</sCrIpT/", b"<!-- x", b"a\0b", b"a\r\nb", b"\xff"]


@pytest.mark.clause("9.2")
@pytest.mark.invariant("48")
@pytest.mark.parametrize("script", BAD)
def test_a_script_that_would_end_or_change_its_element_is_refused(script: bytes) -> None:
    with pytest.raises(DocumentRefused) as refused:
        made(script=script)
    assert refused.value.code == "surface_unavailable"


@pytest.mark.clause("9.2")
@pytest.mark.parametrize("style", [b"</style", b"</STYLE>", b"<!--", b"\0", b"\r", b"\xff"])
def test_a_style_that_would_end_or_change_its_element_is_refused(style: bytes) -> None:
    with pytest.raises(DocumentRefused):
        made(style=style)
    assert b"</script" in made(style=b"/* </script */").body


@pytest.mark.clause("9.2")
def test_what_the_kernel_answered_is_taken_apart_or_refused() -> None:
    assert parts({"version": 1, "script": 2, "style": 1}, b"abc") == (b"ab", b"c")
    assert parts({"version": 1, "script": 3, "style": 0}, b"abc") == (b"abc", b"")
    for value in ({"version": 1, "script": 2, "style": 0}, {"version": 2, "script": 2, "style": 1}):
        with pytest.raises(DocumentRefused):
            parts(value, b"abc")


@pytest.mark.clause("9.2")
@pytest.mark.invariant("50")
def test_the_bootstrap_takes_away_what_no_policy_stops_by_syntax_alone_before_anything_else() -> None:
    """A function an App declares at the top level exists before the first line runs, so `Object` or `self` may be its own."""
    code = [line.strip() for line in bootstrap().splitlines() if line and not line.startswith("//")]
    opened = "const world = /** @type {{ [name: string]: unknown }} */ (this);"
    assert code[:9] == ['"use strict";', "{", opened, *(f"delete world.{name};" for name in REMOVED), "}"]


REMOVED = ("RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "RTCIceTransport", "WebTransport")
