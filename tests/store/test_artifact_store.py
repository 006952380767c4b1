"""The files of artifacts: a name stands for its bytes and for nothing else, whatever ends in between."""

from __future__ import annotations

import errno
import os
from hashlib import sha256
from pathlib import Path

import pytest

from kernel.artifact_store import ArtifactStore, Trouble
from lineup_sdk.protocol.codes import Code

pytestmark = [pytest.mark.clause("9.4"), pytest.mark.invariant("51")]

DATA = b"some bytes" * 1_000
DIGEST = sha256(DATA).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def keep(store: ArtifactStore, data: bytes = DATA, digest: str | None = None, size: int | None = None) -> str:
    """Take bytes in three parts."""
    digest = digest or sha256(data).hexdigest()
    upload = store.begin(len(data) if size is None else size, digest)
    third = len(data) // 3
    try:
        for part in (data[:third], data[third : 2 * third], data[2 * third :]):
            upload.add(part)
        upload.finish()
    finally:
        upload.settle()
    return digest


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_was_kept_is_read_window_by_window_and_by_a_later_store(folder: Path) -> None:
    store = ArtifactStore(folder)
    keep(store)
    for one in (store, ArtifactStore(folder)):
        windows = [one.read(DIGEST, len(DATA), offset, 4_096) for offset in range(0, len(DATA) + 4_096, 4_096)]
        assert b"".join(windows) == DATA  # type: ignore[arg-type]
        assert windows[-1] == b""
    assert files_of(folder) == [DIGEST]
    assert (folder / DIGEST).stat().st_mode & 0o777 == 0o600


def test_nothing_at_all_can_be_kept(folder: Path) -> None:
    store = ArtifactStore(folder)
    digest = keep(store, b"")
    assert store.read(digest, 0, 0, 10) == b""


@pytest.mark.parametrize(
    ("digest", "size", "code"),
    [(DIGEST, len(DATA) + 1, "size_mismatch"), (DIGEST, len(DATA) - 1, "size_mismatch"), ("0" * 64, len(DATA), "digest_mismatch")],
)
def test_other_bytes_than_announced_are_refused_and_leave_nothing(folder: Path, digest: str, size: int, code: str) -> None:
    store = ArtifactStore(folder)
    with pytest.raises(Trouble) as caught:
        keep(store, DATA, digest, size)
    assert caught.value.code == code
    assert files_of(folder) == []


def test_a_part_is_not_readable_before_the_whole_is_proven(folder: Path) -> None:
    store = ArtifactStore(folder)
    upload = store.begin(len(DATA), DIGEST)
    upload.add(DATA)
    assert store.read(DIGEST, len(DATA), 0, 10) is None
    upload.finish()
    assert store.read(DIGEST, len(DATA), 0, 10) == DATA[:10]


@pytest.mark.parametrize("spoiled", [DATA[:-1], DATA + b"x", b"x" + DATA[1:], None])
def test_bytes_that_are_not_what_they_are_named_are_lost_and_not_served(folder: Path, spoiled: bytes | None) -> None:
    keep(ArtifactStore(folder))
    (folder / DIGEST).unlink()
    if spoiled is not None:
        (folder / DIGEST).write_bytes(spoiled)
    assert ArtifactStore(folder).read(DIGEST, len(DATA), 0, 10) is None


def test_a_link_in_the_place_of_bytes_is_not_followed(folder: Path, tmp_path: Path) -> None:
    store = ArtifactStore(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(DATA)
    (folder / DIGEST).symlink_to(elsewhere)
    assert store.read(DIGEST, len(DATA), 0, 10) is None
    assert store.sweep([(7, DIGEST, len(DATA))]) == (7,)


@pytest.mark.clause("12")
def test_a_start_sweeps_what_nobody_needs_and_names_what_is_missing(folder: Path) -> None:
    store = ArtifactStore(folder)
    keep(store)
    orphan = keep(store, b"orphan")
    (folder / "partial" / "1").write_bytes(b"cut off")
    assert len(files_of(folder)) == 3
    short = keep(store, b"shortened")
    (folder / short).write_bytes(b"short")
    later = ArtifactStore(folder)
    promised = [(1, DIGEST, len(DATA)), (2, "2" * 64, 5), (3, short, 9)]
    assert later.sweep(promised) == (2, 3)
    assert files_of(folder) == sorted([DIGEST, short])
    assert orphan not in files_of(folder)
    assert later.sweep(promised) == (2, 3)


def test_dropped_bytes_go_unless_the_same_are_arriving(folder: Path) -> None:
    store = ArtifactStore(folder)
    keep(store)
    upload = store.begin(len(DATA), DIGEST)
    store.drop(DIGEST)
    assert files_of(folder)[0] == DIGEST
    upload.discard()
    upload.settle()
    store.drop(DIGEST)
    assert files_of(folder) == []


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, Code.STORE_FULL), (errno.EDQUOT, Code.STORE_FULL), (errno.EIO, Code.UNKNOWN)])
def test_a_disk_that_fails_is_told_by_its_code_and_nothing_gets_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: Code
) -> None:
    def fail(fd: int) -> None:
        raise OSError(number, "told to fail")

    store = ArtifactStore(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(Trouble) as caught:
            keep(store)
    assert caught.value.code is code
    assert files_of(folder) == []
