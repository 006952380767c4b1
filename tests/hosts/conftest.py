"""What the tests of the hosts share: a home in a temporary folder and a scripted kernel on it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from hosts.homes import Home
from hosts.launch import Launcher
from tests.hosts import scripted_kernel
from tests.hosts.scripted_kernel import ScriptedKernel

PROGRAM = Path(scripted_kernel.__file__)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


@pytest.fixture
async def kernel(home: Home, nursery: trio.Nursery) -> ScriptedKernel:
    made = ScriptedKernel(home.folder)
    await nursery.start(made.serve)
    return made


@pytest.fixture
def launcher_of(home: Home) -> Callable[[str], Launcher]:
    """Build a launcher that starts the scripted kernel in a mode instead of the real one."""
    return lambda mode: Launcher(home, program=(sys.executable, str(PROGRAM), mode))
