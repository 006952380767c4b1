"""A world a test, closed at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A home that nobody used yet."""
    made = World(tmp_path)
    yield made
    made.close()
