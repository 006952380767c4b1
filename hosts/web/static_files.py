"""The files of the page: read once, at the start, into a table by their path in a URL.

Rules:
1. No path of a request is ever looked up on the disk; a link or a file of another kind is not in the table.
2. The page names every script to the browser at once. Left to itself the browser learns of a module only from the one that imports it,
   five rounds one after the other before the first paint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = "/static/index.html"
STATIC_FOLDER: Final = Path(__file__).parent / "static"
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_SCRIPTS: Final = b"<!-- scripts -->"  # where the page names them


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file as it is sent."""

    body: bytes
    media_type: str


def read_static(folder: Path = STATIC_FOLDER) -> dict[str, StaticFile]:
    """Return the files of the page by their path in a URL, the page itself with its scripts named (rule 2)."""
    paths = (path for path in sorted(folder.rglob("*")) if path.suffix in MEDIA_TYPES and path.is_file() and not path.is_symlink())
    files = {f"/static/{path.relative_to(folder).as_posix()}": StaticFile(path.read_bytes(), MEDIA_TYPES[path.suffix]) for path in paths}
    page = files[PAGE]
    links = "".join(f'<link rel="modulepreload" href="{name}">' for name in files if name.endswith(".js"))
    return files | {PAGE: StaticFile(page.body.replace(_SCRIPTS, links.encode()), page.media_type)}
