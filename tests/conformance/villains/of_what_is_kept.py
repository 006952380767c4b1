"""Villains that break sections 8.4, 8.5 and 9 of the specification: saved state, surface, artifacts."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import cbor2
import trio
from asking import Refused
from good_worker import BYTES, GoodWorker, die

from lineup_sdk.protocol.messages import StateSave
from lineup_sdk.protocol.surface_messages import ArtifactGet, ArtifactPut, SurfaceRead, SurfaceUpdate


class Forgets(GoodWorker):
    """Never reads what it saved."""

    clause = "8.4"
    fails = frozenset({143, 144})

    async def load(self) -> dict[str, Any]:
        return {}


class DiesFromItsOwnState(GoodWorker):
    """Cannot begin from what it saved."""

    clause = "8.4"
    fails = frozenset({143, 144, 145})

    async def open_surface(self) -> None:
        if await self.load():
            die()
        await super().open_surface()


class TellsBeforeItSaves(GoodWorker):
    """Ends a call, then saves what it did."""

    clause = "8.5"
    fails = frozenset({146})

    async def do_remember(self, called: Any) -> dict[str, Any]:
        state = await self.load()
        self.nursery.start_soon(self.save, {**state, "value": called.input["text"]})
        return {"text": state.get("value", "")}


class SavesTooMuch(GoodWorker):
    """Saves more than 32 KiB."""

    clause = "8.5"
    fails = frozenset({148})

    async def do_fail(self, called: Any) -> dict[str, Any]:
        with suppress(Refused):
            await self.ask(StateSave(state={"x": "x" * 40_000}))
        return await super().do_fail(called)


class DrawsBeforeItOpens(GoodWorker):
    """Changes its surface before it has opened it."""

    clause = "9.1"
    fails = frozenset({149})

    async def open_surface(self) -> None:
        try:
            await self.ask(SurfaceUpdate(base_version=0, patch={"early": True}))
        except Refused:
            await super().open_surface()


class InventsAVersion(GoodWorker):
    """Changes a version that it was never told of."""

    clause = "9.1"
    fails = frozenset({150})

    async def show(self, patch: dict[str, Any]) -> None:
        try:
            await self.ask(SurfaceUpdate(base_version=self.version + 50, patch=patch))
        except Refused:
            await super().show(patch)


class DrawsTooMuch(GoodWorker):
    """Makes a change of more than 48 KiB."""

    clause = "9.1"
    fails = frozenset({151})

    async def do_fail(self, called: Any) -> dict[str, Any]:
        await self.show({"big": "x" * 50_000})
        return await super().do_fail(called)


class GivesWay(GoodWorker):
    """Gives up a change when the person was faster."""

    clause = "9.1"
    fails = frozenset({152})

    async def show(self, patch: dict[str, Any]) -> None:
        cbor2.loads(await self.fetch_surface())
        try:
            self.version = (await self.ask(self.update(patch)))["version"]
        except Refused:
            return

    async def fetch_surface(self) -> bytes:
        return await self.fetch(SurfaceRead())


class DiesAtAChange(GoodWorker):
    """Dies when the person changes the surface."""

    clause = "9.1"
    fails = frozenset({153, 154})

    def on_surface_changed(self, changed: Any) -> None:
        die()


class TrustsTheSurface(GoodWorker):
    """Believes that its surface is as it left it."""

    clause = "9.1"
    fails = frozenset({154})

    async def show(self, patch: dict[str, Any]) -> None:
        state = cbor2.loads(await self.fetch(SurfaceRead()))
        if not isinstance(state.get("starts", ""), str):
            die()
        await super().show(patch)


class DrawsFromTheBeginning(GoodWorker):
    """Takes the surface of an earlier life for a new one."""

    clause = "8.4"
    fails = frozenset({155})

    async def open_surface(self) -> None:
        await super().open_surface()
        try:
            await self.ask(SurfaceUpdate(base_version=min(self.version, 1), patch={"fresh": True}))
        except Refused:
            return
        self.version += 1


class ReadsTheFirstPart(GoodWorker):
    """Takes the first part of its surface for all of it."""

    clause = "9.1"
    fails = frozenset({156})

    def on_chunk(self, chunk: Any) -> None:
        if chunk.of in self.content:
            super().on_chunk(type(chunk)(of=chunk.of, data=chunk.data, last=True))


class NeverOpens(GoodWorker):
    """Opens no surface, and its Manifest requires one."""

    clause = "4.1"
    fails = frozenset({162})

    async def open_surface(self) -> None:
        """Nothing to see."""

    async def show(self, patch: dict[str, Any]) -> None:
        """Nothing to see."""


class AnnouncesOtherBytes(GoodWorker):
    """Announces another digest than its bytes have."""

    clause = "9.4"
    fails = frozenset({158})

    def send_frame(self, frame: dict[str, Any]) -> None:
        super().send_frame({**frame, "sha256": hashlib.sha256(b"").hexdigest()} if frame["type"] == ArtifactPut.TYPE else frame)


class SendsBigParts(GoodWorker):
    """Sends parts of over 48 KiB."""

    clause = "9.4"
    fails = frozenset({159})

    part_bytes = 60_000


class LeavesItsCall(GoodWorker):
    """Leaves a call whose bytes were refused."""

    clause = "9.4"
    fails = frozenset({160})

    async def do_keep(self, called: Any) -> dict[str, Any]:
        try:
            return {"text": await self.put(BYTES)}
        except Refused:
            await trio.sleep_forever()
            return {}


class GuessesAnArtifact(GoodWorker):
    """Asks for an artifact that it was never given."""

    clause = "9.4"
    fails = frozenset({161})

    async def do_keep(self, called: Any) -> dict[str, Any]:
        with suppress(Refused):
            await self.ask(ArtifactGet(artifact_id="art_of_a_neighbour", offset=0))
        return await super().do_keep(called)
