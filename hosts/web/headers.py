"""The headers of everything the web host sends (WEB 2.4, THREATS 3.6). Pure.

Rules:
1. Every response has COMMON. A page may load its own scripts and styles and speak to its own socket; nothing else, from nowhere else.
2. Nothing is ever allowed to another origin: there is no Access-Control header.
3. A response says neither what serves it nor in which version.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMON: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
}

# What a browser may not do for us or for a frame in us. The page itself writes the clipboard when a grant of the person says so.
_PERMISSIONS = "camera=(), clipboard-read=(), clipboard-write=(self), display-capture=(), geolocation=(), microphone=(), usb=()"


def page_headers(origin: str) -> dict[str, str]:
    """The headers of the shell and its static files, under the origin they were asked for."""
    policy = {
        "default-src": "'none'",
        "script-src": f"{origin}/static/",
        "style-src": f"{origin}/static/",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "frame-src": f"{origin}/s/",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return {
        **COMMON,
        "Connection-Allowlist": "(response-origin)",
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Permissions-Policy": _PERMISSIONS,
    }


def artifact_headers(media_type: str, save_as: str | None) -> dict[str, str]:
    """The headers of bytes an App made: shown as an image inside a page, or saved; never a document of ours."""
    disposition = {} if save_as is None else {"Content-Disposition": f"attachment; filename*=UTF-8''{_percent(save_as)}"}
    return {
        **COMMON,
        **disposition,
        "Connection-Allowlist": "()",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
        "Content-Type": media_type,
    }


def refusal_headers() -> dict[str, str]:
    """The headers of every refusal."""
    return {**COMMON, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Content-Type": "text/plain"}


_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._")


def _percent(name: str) -> str:
    """A file name as RFC 8187 has it."""
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in name.encode())
