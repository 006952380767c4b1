"""Keeps the size and SHA-256 of every app file in its Manifest: `python -m workers.digests [--check] [MANIFEST ...]`.

Rules:
1. `manifests/<scope>.json` names files of `workers/<scope with - as _>/`, chat's of `workers/interact/`; a `manifest.json` names files
   beside it.
2. Without arguments it takes every Manifest in manifests/. The file names come from the Manifest; nothing is added to it.
3. With --check nothing is written: exit code 1 names every Manifest that is stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OTHER_FOLDERS = {"chat": "interact"}  # the system App is called by its own name; as in kernel/registry.py


def app_folder(manifest_path: Path) -> Path:
    """Return the folder that holds the files a Manifest names (rule 1)."""
    if manifest_path.name == "manifest.json":
        return manifest_path.parent
    return ROOT / "workers" / OTHER_FOLDERS.get(manifest_path.stem, manifest_path.stem.replace("-", "_"))


def with_digests(manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the Manifest with the sizes and digests the files have now. Raises: OSError for a file that is not there."""
    files = [_entry_file(folder, file["name"]) for file in manifest["entry"]["files"]]
    return {**manifest, "entry": {**manifest["entry"], "files": files}}


def _entry_file(folder: Path, name: str) -> dict[str, Any]:
    data = (folder / name).read_bytes()
    return {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m workers.digests", description="Size and SHA-256 of app files in Manifests.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a Manifest is stale")
    parser.add_argument("manifests", nargs="*", type=Path, metavar="MANIFEST")
    options = parser.parse_args(arguments)
    paths: list[Path] = options.manifests or sorted((ROOT / "manifests").glob("*.json"))
    stale = [path for path in paths if _refresh(path, may_write=not options.check)]
    for path in stale:
        print(f"{path.name}: {'stale' if options.check else 'written'}", file=sys.stderr)
    return 1 if options.check and stale else 0


def _refresh(path: Path, *, may_write: bool) -> bool:
    """Bring one Manifest up to date; return whether it was stale."""
    manifest = json.loads(path.read_bytes())
    if "entry" not in manifest:  # a Manifest without own code
        return False
    fresh = with_digests(manifest, app_folder(path))
    if fresh == manifest:
        return False
    if may_write:
        path.write_text(json.dumps(fresh, indent=2, ensure_ascii=False) + "\n")
    return True


if __name__ == "__main__":
    sys.exit(main())
