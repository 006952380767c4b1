"""Promises about isolated surfaces (INVARIANTS, group G), over facts that a test of a real browser brings (tests/web)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def check_inv_48(document: str, bootstrap: str, entry: Mapping[str, Any]) -> list[str]:
    """The document of a surface runs the bootstrap and the very bytes its Manifest names, and nothing else."""
    digests = {file["name"]: (file["size"], file["sha256"]) for file in entry["files"]}
    scripts, styles = _SCRIPT.findall(document), _STYLE.findall(document)
    if len(scripts) != 1 or len(styles) != 1 or not scripts[0].startswith(bootstrap):
        return ["INV-48: a surface's document is not one script, bootstrap first, and one style"]
    rest = scripts[0].removeprefix(bootstrap).encode()
    violations = []
    for name in entry["surface"]["scripts"]:
        size, digest = digests[name]
        if sha256(rest[:size]).hexdigest() != digest:
            violations.append(f"INV-48: {name} is not what the Manifest names")
        rest = rest[size:].removeprefix(b"\n")
    style = entry["surface"].get("style")
    if style and sha256(styles[0].encode()).hexdigest() != digests[style][1]:
        violations.append(f"INV-48: {style} is not what the Manifest names")
    return violations + (["INV-48: a surface runs more than its Manifest names"] if rest else [])


def check_browser_of_inv_49(
    before: Mapping[str, int], after: Mapping[str, int], senders: Sequence[str], changed: Collection[str]
) -> list[str]:
    """What foreign senders said was counted, one each at the least, and neither changed nor was answered."""
    counted = sum(after.values()) - sum(before.values())
    violations = [] if counted >= len(senders) else [f"INV-49: {len(senders)} foreign senders, {counted} counted"]
    return violations + [f"INV-49: a foreign sender had an effect: {effect}" for effect in sorted(changed)]


def check_inv_50(sandbox: str | None, probes: Mapping[str, str], heard: Collection[str]) -> list[str]:
    """A surface's frame has exactly this sandbox, no probe got what it wanted, and nobody outside heard of it."""
    violations = [] if sandbox == "allow-scripts" else ["INV-50: the sandbox of the frame is another one"]
    if not probes:
        violations.append("INV-50: nothing was tried")
    violations += [f"INV-50: {name} came out {said}" for name, said in sorted(probes.items()) if said.startswith("OK")]
    return violations + [f"INV-50: {what} was heard outside" for what in sorted(heard)]
