"""app.surface and app.artifacts over a real channel: what the kernel refuses is refused, and big things come whole."""

from __future__ import annotations

import pytest
import trio

from lineup_sdk import MiniApp, Refused, ToolCall
from lineup_sdk.app import JsonObject, SurfaceEvent
from lineup_sdk.protocol.limits import MAX_ARTIFACT_BYTES, MAX_PATCH_BYTES, WINDOW_BYTES
from lineup_sdk.testing import FakeKernel

pytestmark = pytest.mark.clause("9.1")


class Board:
    """An app that does one thing with its surface or artifacts when a test asks for it."""

    def __init__(self) -> None:
        self.app = MiniApp()
        self.told: list[int] = []
        self.events: list[SurfaceEvent] = []
        self.work: object = None
        self.app.on_start(self._start)
        self.app.surface.on_changed(self._changed)
        self.app.surface.on_event("submit")(self._submit)
        self.app.tool("board.do")(self._do)

    async def _start(self) -> None:
        await self.app.surface.open()

    async def _changed(self, version: int) -> None:
        self.told.append(version)

    async def _submit(self, event: SurfaceEvent) -> None:
        self.events.append(event)

    async def _do(self, call: ToolCall) -> JsonObject:
        return {"value": await self.work()}  # type: ignore[operator]


async def do(kernel: FakeKernel, board: Board, work: object) -> object:
    """Run something in the app; its value."""

    async def caught() -> object:
        try:
            return await work()  # type: ignore[operator]
        except Refused as refused:
            return str(refused.code)

    board.work = caught
    return (await (await kernel.call("board.do", {})).result())["value"]


async def test_an_app_opens_changes_reads_and_closes_its_surface() -> None:
    board = Board()
    surface = board.app.surface
    async with FakeKernel(board.app) as kernel:
        assert await do(kernel, board, lambda: surface.update({"a": 1, "b": {"c": 2}}, base_version=0)) == 1
        assert await do(kernel, board, lambda: surface.update({"a": None}, base_version=1)) == 2
        assert kernel.surface.state == {"b": {"c": 2}}
        assert await do(kernel, board, lambda: surface.update({}, base_version=1)) == "version_conflict"
        assert await do(kernel, board, lambda: surface.update({"x": "y" * MAX_PATCH_BYTES}, base_version=2)) == "limit_exceeded"
        assert await do(kernel, board, lambda: _state(board)) == {"b": {"c": 2}}
        assert await do(kernel, board, surface.close) is None
        for refused in (surface.read, surface.close, lambda: surface.update({}, base_version=2)):
            assert await do(kernel, board, refused) == "surface_unavailable"
        assert await do(kernel, board, surface.open) == 2


async def _state(board: Board) -> JsonObject:
    return (await board.app.surface.read()).state


async def test_a_change_is_made_again_on_what_the_person_made_of_it() -> None:
    board = Board()
    async with FakeKernel(board.app) as kernel:
        seen: list[int] = []

        def patch(state: JsonObject) -> JsonObject:
            count = state.get("count", 0)
            seen.append(count)
            if len(seen) < 4:  # the person is faster
                kernel.surface.update(kernel.surface.version, {"count": count + 10})
            return {"count": count + 1}

        assert await do(kernel, board, lambda: board.app.surface.change(patch)) == 4
        assert seen == [0, 10, 20, 30]
        assert kernel.surface.state == {"count": 31}
        assert await do(kernel, board, lambda: board.app.surface.change(lambda _: None)) == 4


async def test_the_person_draws_often_and_the_app_is_told_once_until_it_looks() -> None:
    board = Board()
    async with FakeKernel(board.app) as kernel:
        for n in range(5):
            await kernel.patch_surface({"n": n})
        await _ping_until(kernel, board, [1])
        assert await do(kernel, board, lambda: _state(board)) == {"n": 4}
        await kernel.patch_surface({"n": 9})
        await _ping_until(kernel, board, [1, 6])


async def _ping_until(kernel: FakeKernel, board: Board, told: list[int]) -> None:
    with trio.fail_after(30):
        while board.told != told:
            await kernel.ping()


async def test_an_event_is_kept_until_its_handler_is_done_and_one_without_a_handler_is_done_with() -> None:
    board = Board()
    async with FakeKernel(board.app, manifest=None) as kernel:
        await (await kernel.surface_event("submit", {"x": 1})).wait_acknowledged()
        await (await kernel.surface_event("unknown", {})).wait_acknowledged()
        assert [(event.name, event.body, event.delivery_count) for event in board.events] == [("submit", {"x": 1}, 1)]
        assert board.app.topics == frozenset()


async def test_a_second_handler_of_the_same_event_is_a_mistake() -> None:
    board = Board()
    for register in (board.app.surface.on_changed, board.app.surface.on_event("submit")):
        with pytest.raises(ValueError, match="handler already"):
            register(board._submit)  # type: ignore[arg-type]


@pytest.mark.clause("9.4")
@pytest.mark.parametrize("size", [0, 1, 48 * 1024, 48 * 1024 + 1, WINDOW_BYTES, WINDOW_BYTES + 1, 3_000_000])
async def test_bytes_go_up_and_come_back_whole(size: int) -> None:
    board = Board()
    data = b"".join(n.to_bytes(4, "big") for n in range(size // 4 + 1))[:size]
    async with FakeKernel(board.app) as kernel:
        artifact_id = await do(kernel, board, lambda: board.app.artifacts.put(data, "image/png"))
        assert kernel.artifacts[str(artifact_id)].data == data
        assert await do(kernel, board, lambda: board.app.artifacts.put(data, "image/png")) == artifact_id

        async def same() -> bool:
            artifact = await board.app.artifacts.get(str(artifact_id))
            return (artifact.media_type, artifact.data) == ("image/png", data)

        assert await do(kernel, board, same) is True


@pytest.mark.clause("9.4")
async def test_what_cannot_be_kept_or_is_not_there_is_refused() -> None:
    board = Board()
    artifacts = board.app.artifacts
    async with FakeKernel(board.app) as kernel:
        assert await do(kernel, board, lambda: artifacts.get("art_unknown")) == "artifact_not_found"
        assert await do(kernel, board, lambda: artifacts.put(bytes(MAX_ARTIFACT_BYTES + 1), "a/b")) == "limit_exceeded"
        kernel.refuse_artifacts("store_full")
        assert await do(kernel, board, lambda: artifacts.put(bytes(2_000_000), "a/b")) == "store_full"
        kernel.refuse_artifacts(None)
        assert await do(kernel, board, lambda: artifacts.put(b"hello", "text/plain")) == "art_fake_1"


@pytest.mark.clause("9.4")
async def test_an_upload_that_is_cancelled_midway_leaves_nothing_and_the_next_one_works() -> None:
    board = Board()
    async with FakeKernel(board.app) as kernel:

        async def cut_off() -> str:
            with trio.move_on_after(0):
                await board.app.artifacts.put(bytes(MAX_ARTIFACT_BYTES), "a/b")
            return await board.app.artifacts.put(b"small", "a/b")

        artifact_id = str(await do(kernel, board, cut_off))
        assert [one.data for one in kernel.artifacts.values()] == [b"small"]
        assert kernel.artifacts[artifact_id].data == b"small"
        assert ("artifact.put", "size_mismatch") in kernel.refusals
