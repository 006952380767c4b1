"""What is looked at when a test with a real kernel ends, whatever it was about (INV 30, 42, 44, 56).

    reaches = reach_of_workers(kernel)        while it lives
    require_kept(kernels)                     at the end: ends those that still live, and looks at what they left

Rules:
1. Secrets are what no App may hold: the pairing secret of the home, and where the home is.
2. Content is every text with a space in it that the database holds as a body: no code, no id and no name of ours has one.
3. A draft that was sent after all is an answer, and may be kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import cbor2

from tests.invariants import PROCESS_CHECKS
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Person

_BODIES = (
    ("timeline_message", "body_cbor"),
    ("tool_call", "input_cbor"),
    ("tool_call", "result_cbor"),
    ("inbox_row", "body_cbor"),
    ("interaction", "request_cbor"),
    ("saved_state", "state_cbor"),
)
_LEAST = 8  # characters of a text that says something
_MOST = 200  # texts of one home that are looked for


def reach_of_workers(kernel: KernelUnderTest) -> bytes:
    """All that its sealed processes could read of themselves: environment, arguments, descriptors and the memory they may write."""
    sealed = kernel.tree()
    try:
        return b"\0".join(part for pid in sealed.inside() for part in _reach(Path("/proc") / str(pid)))
    finally:
        sealed.let_go()


def _reach(process: Path) -> Iterator[bytes]:
    with suppress(OSError):  # it has ended meanwhile
        yield (process / "environ").read_bytes()
        yield (process / "cmdline").read_bytes()
        for link in (process / "fd").iterdir():
            yield os.fsencode(os.readlink(link))
        yield from _memory(process)


def _memory(process: Path) -> Iterator[bytes]:
    with (process / "mem").open("rb", buffering=0) as memory:
        for line in (process / "maps").read_text().splitlines():
            span, rights, *_ = line.split()
            start, end = (int(edge, 16) for edge in span.split("-"))
            if rights.startswith("rw"):
                with suppress(OSError, ValueError):  # not all of it is backed
                    memory.seek(start)
                    yield memory.read(end - start)


def require_kept(kernels: Sequence[KernelUnderTest]) -> None:
    """End these kernels and look at what they did and left. Raises: AssertionError with the promises that are broken."""
    broken = [line for kernel in kernels if kernel.is_alive for line in _broken_by_workers(kernel)]
    for kernel in kernels:
        kernel.close()
    for home, log in {kernel.home: kernel.log for kernel in kernels}.items():
        drafts = [draft.encode() for kernel in kernels if kernel.home == home for draft in _unsent(kernel)]
        broken += PROCESS_CHECKS["30"]([home], drafts)
        broken += PROCESS_CHECKS["56"]([log, *_without_bodies(home)], contents(home))
    if broken:
        raise AssertionError("\n".join(broken))


def _broken_by_workers(kernel: KernelUnderTest) -> list[str]:
    with suppress(FileNotFoundError):  # it was not ready yet: it had no worker
        found: list[str] = PROCESS_CHECKS["44"](reach_of_workers(kernel), [kernel.pairing.encode(), os.fsencode(kernel.home)])
        return found
    return []


def _unsent(kernel: KernelUnderTest) -> set[str]:
    people = [peer for peer in kernel.peers if isinstance(peer, Person)]
    return {draft for person in people for draft in person.drafts} - {said for person in people for said in person.sent}


def _without_bodies(home: Path) -> list[Path]:
    """Everything in a home that is for no body: not the database, not artifacts, not copies of either."""
    found = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()] if home.is_dir() else []
    return [path for path in found if not path.name.startswith("kernel.db") and "artifacts" not in path.parts]


def contents(home: Path) -> list[bytes]:
    """Texts that stand in bodies; none for a home whose database a test has spoilt, or that has none."""
    texts: set[str] = set()
    with suppress(apsw.CantOpenError, apsw.CorruptError, apsw.IOError, apsw.NotADBError), opened_copy(home) as db:
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
        for table, column in _BODIES:
            rows = db.execute(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL LIMIT 50") if table in there else ()
            texts.update(text for (body,) in rows for text in _texts(cbor2.loads(body)) if " " in text.strip() and len(text) >= _LEAST)
    return [text.encode() for text in sorted(texts)[:_MOST]]


def _texts(value: Any) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for member in value.values():
                yield from _texts(member)
        case list():
            for member in value:
                yield from _texts(member)
