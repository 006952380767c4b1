"""The kernel's own tools, `runtime.*`: answered from the view, by no worker (SPEC 6.9)."""

from __future__ import annotations

from kernel.core.decision import KernelBug, View
from lineup_sdk.protocol.messages import JsonObject

SCOPE = "runtime"
VERSION = "0.1.0"


def answer(view: View, tool_id: str) -> JsonObject:
    """The result of one of the kernel's own tools."""
    if tool_id != "runtime.status":
        raise KernelBug("a runtime tool is advertised that nothing answers")
    return {
        "kernel_version": VERSION,
        "epoch": view.epoch,
        "apps": sum(1 for scope, one in view.manifests.items() if one.entry is not None and view.enablement.is_enabled(scope)),
        "instances": len(view.current_instances()),
        "open_calls": view.open_call_count(),
    }
