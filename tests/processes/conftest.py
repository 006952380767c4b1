"""What the process tests share: a sub-reaper for the run, one kernel that stays warm for tests that leave it as they found it, and
kernels of their own for tests that kill theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes.kept_promises import require_kept
from tests.processes.kernel_under_test import PROGRAM, KernelUnderTest
from tests.processes.orphans import children, require_no_orphans
from tests.processes.warm_parent import WarmParent, sub_reaper
from tests.processes.written_app import ASKER, FIXTURE, write_raw_app

SCOPES = ("deaf", "flooder", "noisy", "other", "raw", "rude", "sleeper", "stubborn", "witness")


@pytest.fixture(scope="session")
def reaping() -> Iterator[None]:
    with sub_reaper():
        yield


@pytest.fixture(scope="session")
def apps(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    parent = tmp_path_factory.mktemp("apps")
    return [ASKER, FIXTURE, *(write_raw_app(parent, scope) for scope in SCOPES)]


@pytest.fixture(scope="session")
def warm(reaping: None, apps: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelUnderTest]:
    folder = tmp_path_factory.mktemp("warm")
    kernel = KernelUnderTest.start(folder / "home", folder / "kernel.log", apps=apps)
    try:
        kernel.wait_ready()
        yield kernel
    finally:
        require_kept([kernel])


@pytest.fixture(scope="session")
def parents(reaping: None) -> Iterator[Mapping[str, WarmParent]]:
    """By the module of a kernel's program; any other is executed."""
    with closing(WarmParent()) as plain, closing(WarmParent("tests.faults.dying_kernel")) as dying:
        yield {"kernel": plain, "tests.faults.dying_kernel": dying}


Starter = Callable[..., KernelUnderTest]


@pytest.fixture
def start(parents: Mapping[str, WarmParent], apps: list[Path], tmp_path: Path) -> Iterator[Starter]:
    """Start a kernel on this test's home, again on the same one as often as asked."""
    started: list[KernelUnderTest] = []
    before = children()

    def begin(*, program: Sequence[str] = PROGRAM, **more: object) -> KernelUnderTest:
        kernel = KernelUnderTest.start(
            tmp_path / "home",
            tmp_path / "kernel.log",
            apps=apps,
            program=program,
            parent=parents.get(program[1]),
            **more,  # type: ignore[arg-type]
        )
        started.append(kernel)
        return kernel

    yield begin
    require_kept(started)
    require_no_orphans(before)
