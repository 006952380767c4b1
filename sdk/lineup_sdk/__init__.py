"""LineUp SDK: all that a MiniApp author installs.

Rules:
1. This file imports nothing when it is loaded: the kernel imports `lineup_sdk.protocol`, which runs this file first.
2. The front door is lazy: `from lineup_sdk import MiniApp` loads the app side only then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lineup_sdk.app import MiniApp, ToolCall
    from lineup_sdk.errors import Refused, ToolFailed

__version__ = "0.1.0"
__all__ = ["MiniApp", "Refused", "ToolCall", "ToolFailed", "__version__"]

_HOMES = {"MiniApp": "app", "ToolCall": "app", "Refused": "errors", "ToolFailed": "errors"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'lineup_sdk' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"lineup_sdk.{_HOMES[name]}"), name)
