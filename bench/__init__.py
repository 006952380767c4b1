"""Measures the kernel against an MCP stdio server, in one interleaved run: `python -m bench`. Not shipped in any wheel."""
