"""The document of an isolated surface, and the headers that seal it (SPEC 9.2). Pure: bytes in, bytes out; who serves it stands elsewhere.

Use: `script, style = parts(value, data)` of what `surface.source` answered, then `document(script=, style=, ...)` once a mount.
Rules:
1. Bootstrap and the App's script are ONE inline script under ONE digest: a frame the script makes can run these very bytes or none, so
   the bootstrap always runs first. A nonce would not do: the script can read it.
2. Bytes that would end the script, or be read by the browser as others than these, are refused; nothing is escaped or mended.
3. Every layer stands even where another one suffices: the sandbox of the response, the policy of its sources, and no connection at all.
4. It is good for one frame of our own page (tickets.py), once.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

from hosts.web.tickets import Content
from lineup_sdk.protocol.codes import Code

SURFACE_VERSION: Final = 1  # the contract between a surface's script and this host

# What ends a script or changes how its end is found, and what the parser replaces: NUL, and carriage returns before any digest is taken.
_NOT_IN_A_SCRIPT: Final = re.compile(rb"</script|<!--|[\x00\r]", re.IGNORECASE)
_NOT_IN_A_STYLE: Final = re.compile(rb"</style|<!--|[\x00\r]", re.IGNORECASE)

_DOCUMENT: Final = (
    '<!doctype html><html lang="{lang}" data-mount="{mount}"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    "<title>{title}</title><style>{style}</style></head><body><script>{script}</script></body></html>"
)
_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {origin}"
)


class DocumentRefused(Exception):
    """The code cannot be put into a document; hint says why in words, without what it holds."""

    code: Final = Code.SURFACE_UNAVAILABLE

    def __init__(self, hint: str) -> None:
        super().__init__(hint)
        self.hint = hint


@cache
def bootstrap() -> str:
    """Return the lines that run before every surface's own script; they are shipped with the SDK."""
    return (files("lineup_sdk") / "surface_js" / "bootstrap.js").read_text("utf-8")


def parts(value: Mapping[str, Any], data: bytes) -> tuple[bytes, bytes]:
    """Take script and style out of what `surface.source` answered: its value and its content.

    Raises: DocumentRefused when it did not arrive whole, or is written for another contract.
    """
    script, style = int(value["script"]), int(value["style"])
    if script + style != len(data):
        raise DocumentRefused("the code of the surface did not arrive whole")
    if value["version"] != SURFACE_VERSION:
        raise DocumentRefused(f"this host shows surfaces of version {SURFACE_VERSION}")
    return data[:script], data[script:]


def document(*, script: bytes, style: bytes, mount: str, title: str, lang: str, origin: str) -> Content:
    """Build the document of one mount. origin: of the page that shows it, as the browser writes it.

    Raises: DocumentRefused: no UTF-8, or bytes that an inline script or style cannot hold.
    """
    whole = bootstrap() + _text(script, _NOT_IN_A_SCRIPT, "script")
    body = _DOCUMENT.format(
        lang=escape(lang), mount=escape(mount), title=escape(title), style=_text(style, _NOT_IN_A_STYLE, "style"), script=whole
    )
    return Content(body=body.encode(), headers=_headers(whole, origin), destinations=frozenset({"iframe"}))


def _text(data: bytes, not_in_it: re.Pattern[bytes], role: str) -> str:
    if found := not_in_it.search(data):
        raise DocumentRefused(f"the {role} of the surface holds {found[0].decode().lower()!r}, which no inline {role} can")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise DocumentRefused(f"the {role} of the surface is not UTF-8") from None


def _headers(script: str, origin: str) -> Mapping[str, str]:
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    return {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": _POLICY.format(digest=digest, origin=origin),
        "Connection-Allowlist": "()",
        "Cross-Origin-Resource-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-DNS-Prefetch-Control": "off",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=(), clipboard-read=(), clipboard-write=(), display-capture=(), usb=()",
    }
