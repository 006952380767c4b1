"""What is judged: an app folder, whose worker is the real sealed process, or a command that speaks the wire on an inherited descriptor.

Rules:
1. A Manifest and its files are read once. A Manifest that does not fit its schema, and files that are not as it says, are told as cases
   (4.1), not refused here: the process gets the bytes that stand there.
2. A command is the leader of a session, and what it started ends with it: a shell around a worker leaves nothing behind. It
   gets the number of its descriptor as LINEUP_CHANNEL_FD and wherever its arguments say {fd}. It runs unsealed: a report says so.
3. A built-in app is named by its app_scope.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import trio
from jsonschema import Draft202012Validator

from conformance.sealed import Cage, Process, open_cage
from lineup_sdk.protocol.messages import JsonObject

SURFACE_FOLDER = "surface/"  # its files go to hosts, never to a worker
SCENARIOS = "conformance.json"
_OTHER_FOLDERS = {"chat": "interact"}


class TargetInvalid(Exception):
    """What was named cannot be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A Manifest, the files of its process, and what `conformance.json` beside it says. All empty for a command without a folder."""

    manifest: JsonObject = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    scenarios: JsonObject = field(default_factory=dict)
    surface_files: dict[str, bytes] = field(default_factory=dict)

    @property
    def tools(self) -> list[JsonObject]:
        """The tools of the Manifest."""
        return list(self.manifest.get("tools", ()))

    @property
    def topics(self) -> list[str]:
        """The topics it subscribes to."""
        return [row["topic"] for row in self.manifest.get("subscriptions", ())]

    @property
    def is_system(self) -> bool:
        """True for the system App."""
        return self.manifest.get("kind") == "system"

    def source(self) -> JsonObject:
        """What welcome announces."""
        files = [{"name": n, "size": len(d), "sha256": sha256(d).hexdigest()} for n, d in self.files.items()]
        return {"entry": self.manifest["entry"]["main"], "files": files}


def misfits(manifest: JsonObject) -> list[str]:
    """JSON pointers to where a Manifest does not fit its published schema."""
    schema = json.loads(files("lineup_sdk.protocol").joinpath("manifest.schema.json").read_text())
    return sorted("/" + "/".join(map(str, error.path)) for error in Draft202012Validator(schema).iter_errors(manifest))


def read_app(named: str) -> App:
    """Read an app folder, or a built-in app by its scope. Raises: TargetInvalid."""
    manifest_path, folder = _places(named)
    manifest = _read_json(manifest_path)
    try:
        names = [str(file["name"]) for file in manifest["entry"]["files"]]
        data = {name: (folder / name).read_bytes() for name in names}
    except (KeyError, TypeError) as error:
        raise TargetInvalid(f"{manifest_path}: it names no entry files") from error
    except OSError as error:
        raise TargetInvalid(f"{folder}: {error.strerror}: a file the Manifest names") from error
    return App(
        manifest=manifest,
        files={name: part for name, part in data.items() if not name.startswith(SURFACE_FOLDER)},
        surface_files={name: part for name, part in data.items() if name.startswith(SURFACE_FOLDER)},
        scenarios=_read_json(folder / SCENARIOS) if (folder / SCENARIOS).exists() else {},
    )


def _places(named: str) -> tuple[Path, Path]:
    folder = Path(named)
    if (folder / "manifest.json").exists():
        return folder / "manifest.json", folder
    spec = find_spec("workers")
    root = Path(spec.origin).parent.parent if spec is not None and spec.origin is not None else Path()
    manifest = root / "manifests" / f"{named}.json"
    if folder.name != named or not manifest.exists():
        raise TargetInvalid(f"{named}: no folder with a manifest.json, and no built-in app of that name")
    return manifest, root / "workers" / _OTHER_FOLDERS.get(named, named.replace("-", "_"))


def _read_json(path: Path) -> JsonObject:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise TargetInvalid(f"{path}: not JSON that can be read") from error
    if not isinstance(value, dict):
        raise TargetInvalid(f"{path}: not an object")
    return value


class Target(Protocol):
    """Gives the same worker afresh, as often as asked."""

    @property
    def app(self) -> App:
        """What is judged."""

    @property
    def title(self) -> str:
        """What a report calls it."""

    @property
    def is_sealed(self) -> bool:
        """Whether its process is the sealed one."""

    async def spawn(self) -> Process:
        """A new process, before its hello was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedTarget:
    """The process of an app, sealed as the kernel seals it."""

    app: App
    cage: Cage
    title: str
    is_sealed: bool = True

    async def spawn(self) -> Process:
        """A new process. Raises: SealIncomplete."""
        return await self.cage.spawn()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTarget:
    """A program that speaks the wire. Its stdout and stderr are nobody's."""

    app: App
    command: Sequence[str]
    nursery: trio.Nursery
    title: str
    is_sealed: bool = False

    async def spawn(self) -> Process:
        """A new process. Raises: TargetInvalid."""
        ours, theirs = socket.socketpair()
        fd = theirs.fileno()
        try:
            process = await trio.lowlevel.open_process(
                [part.replace("{fd}", str(fd)) for part in self.command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[fd],
                start_new_session=True,
                env={**os.environ, "LINEUP_CHANNEL_FD": str(fd)},
            )
        except OSError as error:
            ours.close()
            raise TargetInvalid(f"{self.command[0]}: {error.strerror}") from error
        finally:
            theirs.close()
        spawned = Process(ours, pidfd=os.pidfd_open(process.pid))
        self.nursery.start_soon(_follow, process, spawned)
        return spawned


async def _follow(process: trio.Process, spawned: Process) -> None:
    try:
        await process.wait()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            code = await process.wait()
        with suppress(ProcessLookupError):  # nobody was left
            os.killpg(process.pid, signal.SIGKILL)
        spawned.note_end(f"exited {code}" if code >= 0 else f"killed {-code}")


@asynccontextmanager
async def open_target(app: App, command: str | None = None) -> AsyncIterator[Target]:
    """The target of an app, or of a command line. Raises: SealIncomplete, TargetInvalid, ValueError (a quote that is not closed)."""
    title = str(app.manifest.get("app_scope", "command"))
    if command is None:
        async with open_cage() as cage:
            yield SealedTarget(app=app, cage=cage, title=title)
        return
    arguments = shlex.split(command)
    if not arguments:
        raise TargetInvalid("the command is empty")
    async with trio.open_nursery() as nursery:
        yield CommandTarget(app=app, command=arguments, nursery=nursery, title=title)
        nursery.cancel_scope.cancel()
