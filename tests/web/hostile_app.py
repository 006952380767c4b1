"""The hostile App of these tests, written into a folder of a test; and the same surface without its cage, as the control."""

from __future__ import annotations

import json
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOSTILE = Path(__file__).resolve().parent / "hostile"
TASK = {"type": "object", "additionalProperties": False, "required": ["task"], "properties": {"task": {"type": "string"}}}
REPORT = {"type": "object", "additionalProperties": False, "required": ["report"], "properties": {"report": {"type": "string"}}}


def write_hostile_app(folder: Path, *, script: bytes | None = None, scope: str = "hostile") -> Path:
    """Write the App; its surface runs `script`, the hostile one unless another is given."""
    code = (HOSTILE / "app.py").read_bytes().replace(b"hostile.run", f"{scope}.run".encode())
    files = {"app.py": code, "surface/attack.js": script or (HOSTILE / "attack.js").read_bytes()}
    (folder / "surface").mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "manifest.json").write_text(json.dumps(_manifest(scope, files)))
    return folder


def _manifest(scope: str, files: dict[str, bytes]) -> dict[str, Any]:
    tool = {
        "id": f"{scope}.run",
        "version": 1,
        "title": "Run",
        "description": "Run a task in the surface.",
        "handling": "launch",
        "target": {"app_scope": scope, "requires_foreground": True, "restore_previous_focus": False},
        "input_schema": TASK,
        "output_schema": REPORT,
    }
    entry = [{"name": name, "size": len(data), "sha256": sha256(data).hexdigest()} for name, data in files.items()]
    return {
        "app_scope": scope,
        "version": "1.0.0",
        "kind": "bundled",
        "title": scope.capitalize(),
        "description": "Tries to get out.",
        "tools": [tool],
        "subscriptions": [],
        "requested_capabilities": [],
        "host": {"min_version": "0.1.0", "surface_required": False},
        "entry": {"main": "app.py", "files": entry, "surface": {"version": 1, "scripts": ["surface/attack.js"]}},
    }


_PARENT = """<!doctype html><title>control</title><script>
addEventListener("message", (event) => { window.report = event.data.report; });
</script><iframe sandbox="allow-scripts" src="/frame"></iframe>"""
_SHIM = """const lineup = { surface: {
  onState(listener) { listener({}); listener({ task: %s }); },
  patch(change) { parent.postMessage(change, "*"); },
} };"""


class Control:
    """A page with the hostile surface in a frame that has the sandbox attribute and nothing else. `url` shows it doing the task."""

    def __init__(self, task: dict[str, Any]) -> None:
        script = _SHIM % json.dumps({**task, "number": 1}) + (HOSTILE / "attack.js").read_text("utf-8")
        pages = {"/": _PARENT, "/frame": f"<!doctype html><title>frame</title><body><script>{script}</script>"}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages.get(self.path.partition("?")[0], "").encode()
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http:{'//'}127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        """Serve no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
