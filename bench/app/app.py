"""The measured MiniApp: one pure tool, the same work as the peer's."""

from __future__ import annotations

from lineup_sdk import MiniApp, ToolCall
from lineup_sdk.app import JsonObject

app = MiniApp()


@app.tool("bench.calc")
async def calc(call: ToolCall) -> JsonObject:
    """Add two numbers."""
    return {"sum": call.input["a"] + call.input["b"]}
