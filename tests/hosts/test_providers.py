"""What a host does for Apps: once a request, within its time, never over what is there (SPEC 10)."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import trio

from hosts import providers as p
from hosts.console_draw import draw
from hosts.console_state import ConsoleState, show_notification
from kernel.protocol.host_capabilities import CapabilityExecute, ProviderResult

pytestmark = pytest.mark.clause("10")


def execute(capability: str = "clipboard.write", arguments: dict[str, Any] | None = None, **more: Any) -> CapabilityExecute:
    facts: dict[str, Any] = {"request_id": "cap_1", "app_scope": "board", "title": "Board", "deadline_ms": 30_000}
    return CapabilityExecute(capability=capability, arguments={"text": "hi"} if arguments is None else arguments, **(facts | more))


async def no_artifact(artifact_id: str) -> bytes:
    raise p.CannotDo("bytes_lost")


async def test_a_request_is_acted_on_once() -> None:
    done: list[str] = []

    async def note(task: p.Task) -> None:
        done.append(task.execute.request_id)

    host = p.Providers({"clipboard.write": note})
    assert host.names == ["clipboard.write"]
    assert await host.run(execute(), no_artifact) == ProviderResult(request_id="cap_1", status="done")
    assert await host.run(execute(), no_artifact) == ProviderResult(request_id="cap_1", status="failed", reason="asked_twice")
    other = await host.run(execute("artifact.save", request_id="cap_2"), no_artifact)
    assert (other.status, other.reason) == ("failed", "unsupported")
    assert done == ["cap_1"]


async def test_an_action_ends_with_its_time_and_when_it_is_taken_back(autojump_clock: trio.testing.MockClock) -> None:
    started = trio.Event()

    async def hang(task: p.Task) -> None:
        started.set()
        await trio.sleep_forever()

    host = p.Providers({"clipboard.write": hang})
    late = await host.run(execute(), no_artifact)
    assert (late.status, late.reason) == ("failed", "stopped")
    assert trio.current_time() >= 30

    started = trio.Event()
    ended: list[ProviderResult] = []

    async def run() -> None:
        ended.append(await host.run(execute(request_id="cap_2", deadline_ms=10**9), no_artifact))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await started.wait()
        host.stop("cap_1")
        host.stop("cap_2")
    assert [one.reason for one in ended] == ["stopped"]


async def test_the_clipboard_gets_the_text_and_the_terminal_nothing_it_could_steer_by() -> None:
    written: list[bytes] = []

    async def write(data: bytes) -> None:
        written.append(data)

    text = "grüße \x1b]0;owned\x07 \u202e"
    host = p.Providers({"clipboard.write": p.terminal_clipboard(write)})
    assert (await host.run(execute(arguments={"text": text}), no_artifact)).status == "done"
    [sequence] = written
    assert sequence.startswith(b"\x1b]52;c;")
    assert sequence.endswith(b"\x07")
    inside = sequence[7:-1]
    assert base64.b64decode(inside, validate=True).decode() == text
    assert not set(inside) & {0x1B, 0x07}


async def test_a_notification_is_a_line_of_the_conversation_under_the_apps_name() -> None:
    state = ConsoleState()
    host = p.Providers({"notification.show": p.notification_line(lambda one: show_notification(state, one))})
    arguments = {"title": "Done\x1b[31m", "body": "line\nbreak"}
    assert (await host.run(execute("notification.show", arguments), no_artifact)).status == "done"
    drawn = "\n".join(line.plain for line in draw(state, 80, 24))
    assert "Notification of Board (board)" in drawn
    assert "Done␛[31m: line␊break" in drawn


def saving(
    folder: Path, data: bytes, *, sha256: str | None = None, name: str = "a.txt"
) -> tuple[p.Providers, CapabilityExecute, p.ReadArtifact]:
    digest = sha256 or hashlib.sha256(data).hexdigest()
    arguments = {"artifact_id": "art_1", "name": name, "media_type": "text/plain", "size": len(data), "sha256": digest}

    async def read(artifact_id: str) -> bytes:
        assert artifact_id == "art_1"
        return data

    return p.Providers({"artifact.save": p.save_into(folder)}), execute("artifact.save", arguments), read


async def test_a_file_is_saved_whole_and_only_with_the_bytes_it_should_have(tmp_path: Path) -> None:
    host, good, read = saving(tmp_path / "deep" / "saved", b"bytes")
    assert (await host.run(good, read)).status == "done"
    saved = tmp_path / "deep" / "saved" / "a.txt"
    assert saved.read_bytes() == b"bytes"
    assert saved.stat().st_mode & 0o777 == 0o600
    host, bad, read = saving(tmp_path / "other", b"bytes", sha256="0" * 64)
    assert (await host.run(bad, read)).reason == "bytes_lost"
    assert not (tmp_path / "other").exists()


def test_nothing_that_is_there_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"mine")
    (tmp_path / "a (2).txt").symlink_to(tmp_path / "victim")
    assert p.save_file(tmp_path, "a.txt", b"new") == "a (3).txt"
    assert p.save_file(tmp_path, "plain", b"1") == "plain"
    assert p.save_file(tmp_path, "plain", b"2") == "plain (2)"
    assert (tmp_path / "a.txt").read_bytes() == b"mine"
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "a/b", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(p.CannotDo) as trouble:
        p.save_file(tmp_path, name, b"x")
    assert trouble.value.reason == "bad_name"
    assert list(tmp_path.iterdir()) == []


def test_there_is_an_end_to_trying_names(tmp_path: Path) -> None:
    for number in range(1, p.MAX_NAMES_TRIED):
        (tmp_path / ("a" if number == 1 else f"a ({number})")).touch()
    with pytest.raises(p.CannotDo) as trouble:
        p.save_file(tmp_path, "a", b"x")
    assert trouble.value.reason == "no_free_name"


def test_a_folder_that_cannot_be_is_a_token_and_no_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(p.CannotDo) as trouble:
        p.save_file(tmp_path / "file", "a", b"x")
    assert str(trouble.value) == "no_folder"
    assert os.listdir(tmp_path) == ["file"]
