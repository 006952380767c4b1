"""The peer: an MCP server on stdio with the same tool as bench/app. Runs in its own environment (.venv-bench)."""

from __future__ import annotations

from typing import Literal

from mcp.server import MCPServer  # type: ignore[import-not-found, unused-ignore]  # of another environment

server = MCPServer("bench", log_level="ERROR")


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
def calc(a: int, b: int, mode: Literal["fast", "slow"] = "fast", note: str = "") -> dict[str, int]:
    """Add two numbers."""
    del mode, note
    return {"sum": a + b}


if __name__ == "__main__":
    server.run()
