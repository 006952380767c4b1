"""What this host can do for Apps when the kernel asks it to (SPEC 10): one action a request, at most once, within its time.

Use: `Providers({"clipboard.write": write})`; View says their names in its hello and hands every capability.execute to `run`.
Rules:
1. The kernel decides and asks; here nothing is asked of anybody and nothing is done that was not asked for.
2. A request id is acted on once: a second frame of the same id is answered `failed` and does nothing.
3. What goes wrong is a short token (CannotDo); the kernel and the App never see a path or the words of an error.
4. A file is never replaced and never followed through a link: it gets a free name in the chosen folder, whole or not at all.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import trio

from hosts.visible import one_line
from kernel.protocol.host_capabilities import CapabilityExecute, ProviderResult

MAX_NAMES_TRIED = 1_000
_KEPT_IDS = 4_096
_FOLDER_FLAGS = os.O_DIRECTORY | os.O_RDONLY | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY | os.O_CLOEXEC

ReadArtifact = Callable[[str], Awaitable[bytes]]


class CannotDo(Exception):
    """The action was not done. `reason` is a token ([a-z0-9_])."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Task:
    """What one provider gets: the request, and how to read an artifact of it."""

    execute: CapabilityExecute
    read_artifact: ReadArtifact


Provider = Callable[[Task], Awaitable[None]]


class Providers:
    """See the head of the file."""

    def __init__(self, able: Mapping[str, Provider]) -> None:
        self._able = dict(able)
        self._running: dict[str, trio.CancelScope] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()

    @property
    def names(self) -> list[str]:
        """The capabilities of this host, as its hello says them."""
        return sorted(self._able)

    async def run(self, execute: CapabilityExecute, read_artifact: ReadArtifact) -> ProviderResult:
        """Act once, and say how it ended."""
        provider = self._able.get(execute.capability)
        if provider is None or execute.request_id in self._seen:
            return _failed(execute, "unsupported" if provider is None else "asked_twice")
        self._note(execute.request_id)
        with trio.move_on_after(execute.deadline_ms / 1000) as scope:
            self._running[execute.request_id] = scope
            try:
                await provider(Task(execute, read_artifact))
            except CannotDo as trouble:
                return _failed(execute, trouble.reason)
            finally:
                del self._running[execute.request_id]
            return ProviderResult(request_id=execute.request_id, status="done")
        return _failed(execute, "stopped")

    def stop(self, request_id: str) -> None:
        """The person took it back: leave off, if that is still possible."""
        scope = self._running.get(request_id)
        if scope is not None:
            scope.cancel()

    def _note(self, request_id: str) -> None:
        self._seen[request_id] = None
        while len(self._seen) > _KEPT_IDS:
            self._seen.popitem(last=False)


def _failed(execute: CapabilityExecute, reason: str) -> ProviderResult:
    return ProviderResult(request_id=execute.request_id, status="failed", reason=reason)


# --------------------------------------------------------------------------------- the three of a terminal


@dataclass(frozen=True, slots=True)
class Notification:
    """A line of an App in the conversation. The labels are the kernel's, the rest is the App's and was made visible."""

    app_title: str
    app_scope: str
    text: str


def notification_line(show: Callable[[Notification], None]) -> Provider:
    """notification.show: a line in the conversation."""

    async def provide(task: Task) -> None:
        arguments = task.execute.arguments
        words = [one_line(str(arguments["title"]), 80)]
        if arguments.get("body"):
            words.append(one_line(str(arguments["body"]), 400))
        show(Notification(one_line(task.execute.title, 100), task.execute.app_scope, ": ".join(words)))

    return provide


def terminal_clipboard(write: Callable[[bytes], Awaitable[None]]) -> Provider:
    """clipboard.write by OSC 52: the terminal does it, or ignores it without a word; `done` says that it was told."""

    async def provide(task: Task) -> None:
        await write(osc52(str(task.execute.arguments["text"])))

    return provide


def osc52(text: str) -> bytes:
    """The sequence that asks a terminal to put text on the clipboard. Base64: no character of the text can end or steer it."""
    return b"\x1b]52;c;" + base64.b64encode(text.encode()) + b"\x07"


def save_into(folder: Path) -> Provider:
    """artifact.save: a new file in the chosen folder, which is made when it is missing."""

    async def provide(task: Task) -> None:
        arguments = task.execute.arguments
        data = await task.read_artifact(str(arguments["artifact_id"]))
        if len(data) != arguments["size"] or hashlib.sha256(data).hexdigest() != arguments["sha256"]:
            raise CannotDo("bytes_lost")
        save_file(folder, str(arguments["name"]), data)

    return provide


def save_file(folder: Path, name: str, data: bytes) -> str:
    """Write a new file beside what is there and return the name it got. Raises: CannotDo."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        inside = os.open(folder, _FOLDER_FLAGS)
    except OSError as error:
        raise CannotDo("no_folder") from error
    try:
        given = _open_new(inside, name)
        _write_whole(inside, given[0], given[1], data)
        os.fsync(inside)
    finally:
        os.close(inside)
    return given[1]


def _open_new(inside: int, name: str) -> tuple[int, str]:
    """A file nobody had: the name, or the name with a number."""
    if not name or "/" in name or "\0" in name or name in {".", ".."}:
        raise CannotDo("bad_name")
    stem, dot, ending = name.rpartition(".")
    if not stem:
        stem, dot, ending = name, "", ""
    for number in range(1, MAX_NAMES_TRIED):
        candidate = name if number == 1 else f"{stem} ({number}){dot}{ending}"
        try:
            return os.open(candidate, _NEW_FILE_FLAGS, 0o600, dir_fd=inside), candidate
        except FileExistsError:
            continue
        except OSError as error:
            raise CannotDo("no_file") from error
    raise CannotDo("no_free_name")


def _write_whole(inside: int, file: int, name: str, data: bytes) -> None:
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        os.unlink(name, dir_fd=inside)
        raise CannotDo("not_written") from error
