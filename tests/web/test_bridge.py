"""The bridge to an isolated surface: only the current frame's own window and port count; the rest is dropped, counted, never answered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from playwright.sync_api import Frame, Page, expect

from hosts.web.surface_pages import bootstrap
from tests import invariants_of_browser as inv
from tests.web.conftest import Pages, StartHost
from tests.web.hostile_app import write_hostile_app
from tests.web.line_agent import LineAgent
from tests.web.raw_page import attached
from tests.web.web_host import WebHost, agent_of

# It takes the port it is given beside the bootstrap, and keeps what it is told.
TALKER = b"""
let rawPort, shown, heard = [];
addEventListener("message", (event) => {
  heard.push(event.data);
  rawPort ??= event.ports[0];
});
lineup.surface.onState((state) => {
  shown = state;
  document.body.textContent = JSON.stringify(state);
});
"""
SILENT = {"task": json.dumps({"waits": False})}


@dataclass(frozen=True, slots=True)
class Shown:
    """A talker in front of a page."""

    host: WebHost
    page: Page
    agent: LineAgent
    title: str = "Talker"

    @property
    def frame(self) -> Frame:
        """Its frame as it is now, once its script has run and has its port."""
        expect(self.page.frame_locator(f"iframe[title={self.title}]").locator("body")).to_contain_text("task")
        frame = self.page.locator(f"iframe[title={self.title}]").element_handle().content_frame()
        assert frame is not None
        return frame

    def dropped(self) -> dict[str, int]:
        """The counters of the page."""
        found: dict[str, int] = json.loads(self.page.locator(".surface-box").first.get_attribute("data-dropped") or "{}")
        return found

    def wait_dropped(self, reason: str, count: int | None = None) -> dict[str, int]:
        """Wait until something was dropped for this reason, so often if a count is given."""
        number = r"\d+" if count is None else rf"{count}\b"
        expect(self.page.locator(".surface-box").first).to_have_attribute("data-dropped", re.compile(rf'"{reason}":{number}'))
        return self.dropped()

    def patch(self, **members: Any) -> int:
        """Have the surface change its state by its own bridge; the version, which proves that page and kernel answer."""
        version: int = self.frame.evaluate("(patch) => lineup.surface.patch(patch)", members)
        return version


@pytest.fixture
def talker(start_host: StartHost, pages: Pages, tmp_path: Path) -> Iterator[Shown]:
    host = start_host(write_hostile_app(tmp_path / "talker", script=TALKER, scope="talker"))
    with agent_of(host) as agent:
        page = pages.open(host.url)
        agent.result(agent.invoke("talker.run", SILENT))
        yield Shown(host, page, agent)


def foreign_senders(page: Page, surface: Frame) -> dict[str, Callable[[dict[str, str]], None]]:
    """Six windows that are not the current frame saying its first hello; each says what it is given, to the page."""
    own = page.main_frame
    own.evaluate("() => { const one = document.createElement('iframe'); one.id = 'sibling'; document.body.append(one); }")
    sibling = page.locator("#sibling").element_handle().content_frame()
    surface.evaluate("() => { const one = document.createElement('iframe'); one.id = 'nested'; document.body.append(one); }")
    nested = surface.locator("#nested").element_handle().content_frame()
    other = page.locator("iframe[title='Task Dashboard']").element_handle().content_frame()
    with page.expect_popup() as opened:
        own.evaluate("() => { window.popup = window.open('about:blank'); }")
    assert sibling is not None
    assert nested is not None
    assert other is not None
    return {
        "the page": lambda said: own.evaluate("(said) => window.postMessage(said, '*')", said),
        "a sibling frame": lambda said: sibling.evaluate("(said) => parent.postMessage(said, '*')", said),
        "a frame in the surface": lambda said: nested.evaluate("(said) => top.postMessage(said, '*')", said),
        "a popup": lambda said: opened.value.evaluate("(said) => opener.postMessage(said, '*')", said),
        "another surface": lambda said: other.evaluate("(said) => parent.postMessage(said, '*')", said),
        "the frame once more": lambda said: surface.evaluate("(said) => parent.postMessage(said, '*')", said),
    }


@pytest.mark.clause("9.2")
@pytest.mark.invariant("49")
def test_six_foreign_senders_are_dropped_counted_and_never_answered(talker: Shown) -> None:
    talker.agent.invoke("task-dashboard.open", {"task_id": "t", "title": "Another surface"})
    expect(talker.page.locator("iframe[title='Task Dashboard']")).to_be_visible()
    talker.agent.result(talker.agent.invoke("talker.run", SILENT))
    frame = talker.frame
    mount = frame.evaluate("() => document.documentElement.dataset.mount")
    said = frame.evaluate("() => heard.length")
    talker.patch(kept=1)
    before, senders = talker.dropped(), foreign_senders(talker.page, frame)
    for send in senders.values():
        send({"lineup": "hello", "mount": mount})
    talker.wait_dropped("not_current_frame", 4)
    after = talker.wait_dropped("bad_hello", 2)
    answered = {"an answer"} if frame.evaluate("() => heard.length") != said else set()
    state = frame.evaluate("() => shown.kept")
    changed = answered | ({"the state"} if state != 1 else set())
    assert inv.check_browser_of_inv_49(before, after, list(senders), changed) == []
    assert talker.patch(kept=2) > 0


NOT_TAKEN = {
    "not_text": "{ t: 'patch', n: 1, patch: {} }",
    "too_large": "'x'.repeat(65537)",
    "not_json": "'{'",
    "bad_message": "JSON.stringify({ t: 'patch', n: 1, patch: [] })",
}
ALSO_NOT = [
    ("not_json", "JSON.stringify('text')"),
    ("not_json", "'['.repeat(30000) + ']'.repeat(30000)"),
    ("bad_message", '`{"t":"patch","n":1,"patch":${\'{"a":\'.repeat(40)}1${\'}\'.repeat(41)}`'),
    ("bad_message", "JSON.stringify({ t: 'state', n: 1 })"),
    ("bad_message", "JSON.stringify({ t: 'patch', n: '1', patch: {} })"),
    ("bad_message", "JSON.stringify({ t: 'patch', n: 0, patch: {} })"),
    ("bad_message", "JSON.stringify({ t: 'event', n: 1, name: 7, body: {} })"),
    ("bad_message", "JSON.stringify({ t: 'event', n: 1, name: 'x', body: null })"),
    ("bad_message", "JSON.stringify({ t: 'surface.unmount', n: 1, mount: 'x' })"),
]


@pytest.mark.clause("9.2")
@pytest.mark.clause("16")
def test_what_is_no_message_is_dropped_and_counted_and_the_surface_goes_on(talker: Shown) -> None:
    frame = talker.frame
    for reason, said in (*NOT_TAKEN.items(), *ALSO_NOT):
        count = talker.dropped().get(reason, 0) + 1
        frame.evaluate(f"() => rawPort.postMessage({said})")
        talker.wait_dropped(reason, count)
    frame.evaluate("() => rawPort.postMessage('x'.repeat(1e8))")
    talker.wait_dropped("too_large", 2)
    assert talker.patch(still="here") > 0


@pytest.mark.clause("9.2")
@pytest.mark.clause("16")
@pytest.mark.parametrize(
    "flood",
    ["rawPort.postMessage('{')", "rawPort.postMessage(JSON.stringify({ t: 'pong', n: 0 }))", "parent.postMessage('x', '*')"],
    ids=["of nonsense", "of the known form", "of window messages"],
)
def test_a_flood_ends_the_mount_and_the_page_answers_and_brings_it_back_once_by_itself(talker: Shown, flood: str) -> None:
    talker.patch(kept=1)
    first = talker.page.locator("iframe").get_attribute("src")
    talker.frame.evaluate(f"() => {{ setTimeout(() => {{ for (let n = 0; n < 200000; n += 1) {flood}; }}, 0); }}")
    counted = talker.wait_dropped("surface_ended", 1)
    expect(talker.page.locator(f'iframe:not([src="{first}"])')).to_be_visible()
    assert talker.frame.evaluate("() => shown.kept") == 1
    assert talker.patch(kept=2) > 0
    talker.page.get_by_role("button", name="Settings").click()
    expect(talker.page.get_by_role("heading", name="Settings")).to_be_visible()
    if "parent" not in flood:
        assert sum(counted.values()) < 1000  # what was queued behind the end was thrown away, not looked at


@pytest.mark.clause("9.2")
def test_a_surface_that_is_ended_again_is_told_and_comes_back_when_it_is_asked_for(talker: Shown) -> None:
    for times in (1, 2):
        talker.frame.evaluate("() => { for (let n = 0; n < 250; n += 1) rawPort.postMessage('{'); }")
        talker.wait_dropped("surface_ended", times)
    expect(talker.page.get_by_text("said too much")).to_be_visible()
    talker.page.get_by_role("button", name="Try again").click()
    assert talker.patch(kept=1) > 0


@pytest.mark.clause("9.2")
def test_a_surface_that_does_not_answer_is_ended(talker: Shown) -> None:
    talker.frame.evaluate("() => { rawPort.onmessage = null; }")
    talker.wait_dropped("frame_silent", 1)
    assert talker.patch(kept=1) > 0


@pytest.mark.clause("9.1")
def test_patches_of_a_surface_and_of_its_app_at_once_all_stand_in_the_end(talker: Shown) -> None:
    frame = talker.frame
    frame.evaluate("() => { window.all = Promise.all([...Array(40).keys()].map((n) => lineup.surface.patch({ [`own${n}`]: n }))); }")
    calls = [talker.agent.invoke("talker.run", SILENT) for _ in range(5)]
    for call_id in calls:
        assert talker.agent.result(call_id)["status"] == "completed"
    versions = frame.evaluate("() => window.all")
    assert versions == sorted(set(versions))
    expect(frame.locator("body")).to_contain_text('"number":6')
    assert [frame.evaluate(f"() => shown.own{n}") for n in range(40)] == list(range(40))


@pytest.mark.clause("9.1")
def test_a_patch_that_is_too_big_is_taken_back_and_the_promise_says_why(talker: Shown) -> None:
    frame = talker.frame
    code = frame.evaluate("() => lineup.surface.patch({ big: 'x'.repeat(50000) }).catch((refused) => refused.code)")
    assert code == "limit_exceeded"
    assert frame.evaluate("() => 'big' in shown") is False


NOT_ADMITTED = (
    "surface.patch({ a: 1e300 })",
    "surface.patch({ a: [2 ** 53] })",
    r"surface.patch({ a: '\ud83d' })",
    r"surface.patch({ '\udc00': 1 })",
    "surface.patch(JSON.parse('{\"a\":'.repeat(15) + '1' + '}'.repeat(15)))",
    r"surface.event('go', { a: '\ud83d' })",
    "surface.event('')",
    "surface.event('n'.repeat(129))",
)


@pytest.mark.clause("2.1")
@pytest.mark.clause("9.2")
def test_what_cannot_travel_is_refused_at_once_and_never_counts_against_the_page(talker: Shown) -> None:
    """At the host it would, and a surface could have the whole page cut off."""
    for said in NOT_ADMITTED:
        code = f"lineup.{said}.catch((refused) => refused.code)"
        soon = "new Promise((resolve) => setTimeout(() => resolve('no answer'), 20000))"
        assert talker.frame.evaluate(f"() => Promise.race([{code}, {soon}])") == "protocol_violation", said
    talker.wait_dropped("bad_message", len(NOT_ADMITTED))  # here, not at the host
    assert talker.patch(still="here") > 0
    opened: list[object] = []  # links after this one
    talker.page.on("websocket", lambda socket: opened.append(socket))  # noqa: PLW0108 - Playwright marks the function
    talker.frame.evaluate("() => { setInterval(() => lineup.surface.event('').catch(() => {}), 10); }")
    assert talker.wait_dropped("surface_ended", 1)["bad_message"] >= 100
    assert talker.patch(kept=1) > 0
    assert opened == []


@pytest.mark.clause("9.1")
def test_a_second_page_takes_the_surface_over_and_the_first_takes_it_back_only_when_asked(talker: Shown, pages: Pages) -> None:
    talker.patch(kept=1)
    second = Shown(talker.host, pages.open(talker.host.url), talker.agent)
    assert second.frame.evaluate("() => shown.kept") == 1
    expect(talker.page.get_by_text("shown in another window")).to_be_visible()
    second.patch(kept=2)
    talker.page.get_by_role("button", name="Show it here").click()
    assert talker.frame.evaluate("() => shown.kept") == 2
    expect(second.page.get_by_text("shown in another window")).to_be_visible()


@pytest.mark.clause("9.2")
@pytest.mark.invariant("48")
@pytest.mark.invariant("49")
async def test_an_old_mount_changes_nothing_and_a_path_is_good_once_and_for_a_frame_of_ours(start_host: StartHost, tmp_path: Path) -> None:
    folder = write_hostile_app(tmp_path / "talker", script=TALKER, scope="talker")
    host = start_host(folder)
    with agent_of(host) as agent, trio.fail_after(60):
        agent.result(agent.invoke("talker.run", SILENT))
        async with attached(host.origin, host.url.rpartition("token=")[2]) as page:
            [surface] = [one for one in page.heard[-1]["state"]["surfaces"] if one["app_scope"] == "talker"]
            old = (await page.op("surface.mount", surface_id=surface["surface_id"]))["value"]
            new = (await page.op("surface.mount", surface_id=surface["surface_id"]))["value"]
            assert new["state"]["task"]["number"] == 1
            for mount in (old["mount"], "0" * 32):
                patched = await page.op("surface.patch", mount=mount, base_version=new["version"], patch={"evil": 1})
                told = await page.op("surface.event", mount=mount, name="x", body={})
                assert [one["receipt"]["code"] for one in (patched, told)] == ["stale_mount", "stale_mount"]
            again = (await page.op("surface.mount", surface_id=surface["surface_id"]))["value"]
            assert (again["version"], "evil" in again["state"]) == (new["version"], False)
            frame = {"sec-fetch-site": "same-origin", "sec-fetch-dest": "iframe"}
            for headers in ({}, {**frame, "sec-fetch-site": "cross-site"}, {**frame, "sec-fetch-dest": "document"}):
                assert (await get(host.origin, again["path"], headers))[0] in (403, 410)
            final = (await page.op("surface.mount", surface_id=surface["surface_id"]))["value"]
            status, sent, document = await get(host.origin, final["path"], frame)
            assert (status, sent["connection-allowlist"]) == (200, "()")
            assert (await get(host.origin, final["path"], frame))[0] == 410
            entry = json.loads((folder / "manifest.json").read_text())["entry"]
            assert inv.check_inv_48(document, bootstrap(), entry) == []


async def get(origin: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """One request by hand: status, headers, body."""
    host = origin.rpartition("/")[2]
    async with await trio.open_tcp_stream(host.partition(":")[0], int(host.partition(":")[2])) as stream:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", *(f"{name}: {value}" for name, value in headers.items())]
        await stream.send_all(("\r\n".join(lines) + "\r\n\r\n").encode())
        data = b"".join([part async for part in stream])
    head, _, body = data.decode().partition("\r\n\r\n")
    first, *fields = head.split("\r\n")
    return int(first.split()[1]), dict(field.lower().split(": ", 1) for field in fields), body


BRIDGE_OF_OUR_OWN = """async () => {
  const { Bridge } = await import("/static/bridge.js");
  const frame = document.createElement("iframe");
  frame.id = "own";
  const mounted = { mount: "right", version: 1, state: {}, carried: [] };
  new Bridge(frame, mounted, { theme: "light", lang: "en" }, { send: async () => ({ ok: true, value: {} }), ended() {} });
  document.body.append(frame);
}"""
HEARS = "() => { window.ports = 0; addEventListener('message', (event) => { ports += event.ports.length; }); }"
SAYS = "(mount) => new Promise((done) => { parent.postMessage({ lineup: 'hello', mount }, '*'); setTimeout(done, 200); })"


@pytest.mark.clause("9.2")
@pytest.mark.invariant("49")
def test_the_first_hello_of_a_frame_counts_only_with_the_name_of_its_mount(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    page.evaluate(BRIDGE_OF_OUR_OWN)
    frame = page.locator("#own").element_handle().content_frame()
    assert frame is not None
    frame.evaluate(HEARS)
    for mount, ports in (("wrong", 0), (None, 0), ("right", 1), ("right", 1)):
        frame.evaluate(SAYS, mount)
        assert frame.evaluate("() => ports") == ports, mount
