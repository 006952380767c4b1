"""The fixtures of the process tests, for those that make a kernel fail at a chosen moment."""

from __future__ import annotations

from tests.processes.conftest import apps, parents, reaping, start

__all__ = ["apps", "parents", "reaping", "start"]
