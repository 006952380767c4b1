"""A hostile App in the real host and a real kernel: nothing it tries reaches a network, a host or another window. The control leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests import invariants_of_browser as inv
from tests.web.canary import Canary, looked_up
from tests.web.conftest import FLAGS, StartHost
from tests.web.hostile_app import Control, write_hostile_app
from tests.web.line_agent import LineAgent
from tests.web.web_host import agent_of

WAYS_OUT = (
    "anchor",
    "blob",
    "data",
    "download",
    "host",
    "location",
    "metaRefresh",
    "name",
    "openSelf",
    "reload",
    "replace",
    "script",
)
STAYS = {"script"}  # the document in the frame is still ours afterwards
# What the control is seen to reach; the hints are left out, because they are silent in the control too.
REACHED = {
    "audio", "beacon", "css-cursor", "css-font", "css-image", "css-import", "embed", "fetch", "fetch-keepalive", "font-face", "image",
    "import", "link-style", "object", "prefetch", "preload", "script", "sse", "subframe", "subframe-text", "svg-image", "video",
    "worker-fetch", "ws", "xhr",
}  # fmt: skip


@pytest.fixture
def canaries() -> Iterator[tuple[Canary, Canary]]:
    pair = Canary(), Canary()
    yield pair
    for one in pair:
        one.close()


class Watched:
    """A browser of its own that writes down which names it looks up, and a page in it."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.net_log = folder / "net-log.json"
        flags = [*FLAGS, f"--log-net-log={self.net_log}", "--net-log-capture-mode=Everything"]
        self.browser = browser.browser_type.launch(executable_path="/usr/bin/chromium", args=flags)

    def page(self, url: str) -> Page:
        page = self.browser.new_context(locale="en-GB").new_page()
        page.goto(url)
        return page

    def names(self) -> set[str]:
        """Close the browser: nothing is on its way any more; then read what it looked up."""
        self.browser.close()
        return looked_up(self.net_log, ".leak.example")


@pytest.fixture
def watched(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(browser, tmp_path)
    print(f"\nChromium {made.browser.version}")
    yield made
    made.browser.close()


def task_for(canaries: tuple[Canary, Canary], host: str, **more: Any) -> dict[str, Any]:
    return {"canary": canaries[0].address, "second": canaries[1].address, "host": host, "waits": False, **more}


def run(agent: LineAgent, task: dict[str, Any]) -> Any:
    """Have the surface do a task; what it reports."""
    result = agent.result(agent.invoke("hostile.run", {"task": json.dumps(task)}))
    assert result["status"] == "completed", result
    return json.loads(result["result"]["report"])


def heard(canaries: tuple[Canary, Canary]) -> list[str]:
    """Everything that came to a canary."""
    for one in canaries:
        one.settle()
    return [hit for one in canaries for hit in one.hits] + ["a packet"] * sum(one.packets for one in canaries)


def wait_here(page: Page, agent: LineAgent, task: dict[str, Any]) -> dict[str, Any]:
    """Wait until the surface is shown and answers."""
    expect(page.locator(".surface[data-showing=shown]")).to_be_visible()
    report: dict[str, Any] = run(agent, {**task, "kind": "nothing", "waits": True})
    return report


def leave(page: Page, agent: LineAgent, task: dict[str, Any]) -> None:
    """Have the surface leave its page; it is ended, and asked for again as the person does when it does not come by itself."""
    path = page.locator(".surface iframe").get_attribute("src")
    run(agent, task)
    if task["name"] not in STAYS:
        another = page.locator(f'.surface iframe:not([src="{path}"])')
        again = page.get_by_role("button", name="Try again")
        expect(another.or_(again).first).to_be_visible()
        if again.is_visible():
            again.click()
        expect(another).to_be_visible()


@pytest.mark.clause("9.2")
@pytest.mark.invariant("50")
def test_a_hostile_surface_reaches_nothing_by_any_of_its_probes_and_ways_out(
    start_host: StartHost, watched: Watched, canaries: tuple[Canary, Canary], tmp_path: Path
) -> None:
    host = start_host(write_hostile_app(tmp_path / "hostile"))
    with agent_of(host) as agent:
        page = watched.page(host.url)
        task = task_for(canaries, host.origin)
        agent.result(agent.invoke("hostile.run", {"task": json.dumps({**task, "kind": "nothing"})}))
        assert wait_here(page, agent, task) == {"here": True, "RTC": "undefined"}
        sandbox = page.locator("iframe").get_attribute("sandbox")
        probes = run(agent, {**task, "kind": "probes", "waits": True})
        assert len(probes) >= 72
        assert probes["peerConnection"] == "throws ReferenceError"
        assert probes["nestedSame"] == "same bytes, RTC undefined"
        assert probes["nestedOther"] == "timeout"
        assert inv.check_inv_50(sandbox, probes, heard(canaries)) == []
        assert len(WAYS_OUT) == 12
        for name in WAYS_OUT:
            leave(page, agent, {**task, "kind": "leave", "name": name})
            assert wait_here(page, agent, task)["here"], name
        dropped = json.loads(page.locator(".surface-box").get_attribute("data-dropped") or "{}")
        print("dropped:", dropped)
        assert dropped["frame_navigated"] == len(set(WAYS_OUT) - STAYS)
        names = watched.names()
    assert inv.check_inv_50(sandbox, probes, [*heard(canaries), *names]) == []


@pytest.mark.clause("9.2")
@pytest.mark.invariant("50")
def test_a_page_that_gives_a_surface_its_own_origin_is_told_and_the_response_still_holds(
    start_host: StartHost, browser: Browser, canaries: tuple[Canary, Canary], tmp_path: Path
) -> None:
    host = start_host(write_hostile_app(tmp_path / "hostile"))
    with agent_of(host) as agent, browser.new_context() as context:
        page = context.new_page()
        page.route("**/surface_frames.js", lambda route: route.fulfill(body=_with_an_origin(route), content_type="text/javascript"))
        page.goto(host.url)
        task = task_for(canaries, host.origin)
        agent.result(agent.invoke("hostile.run", {"task": json.dumps({**task, "kind": "nothing"})}))
        wait_here(page, agent, task)
        sandbox = page.locator("iframe").get_attribute("sandbox")
        probes = run(agent, {**task, "kind": "probes", "waits": True})
    assert inv.check_inv_50(sandbox, probes, heard(canaries)) == ["INV-50: the sandbox of the frame is another one"]


def _with_an_origin(route: Route) -> str:
    real = route.fetch().text()
    assert real.count('"sandbox", "allow-scripts"') == 1
    return real.replace('"sandbox", "allow-scripts"', '"sandbox", "allow-scripts allow-same-origin"')


@pytest.mark.clause("9.2")
@pytest.mark.parametrize(
    ("way", "path"),
    [("location", "location"), ("replace", "replace"), ("metaRefresh", "meta"), ("anchor", "anchor"), ("openSelf", "open-self")],
)
def test_the_same_surface_in_a_frame_with_the_sandbox_alone_leaks_by_leaving(
    browser: Browser, canaries: tuple[Canary, Canary], way: str, path: str
) -> None:
    control = Control(task_for(canaries, "null", kind="leave", name=way))
    try:
        with browser.new_context() as context:
            context.new_page().goto(control.url)
            canaries[0].wait_hits({path})
    finally:
        control.close()


@pytest.mark.clause("9.2")
def test_the_same_surface_in_a_frame_with_the_sandbox_alone_has_a_name_looked_up(watched: Watched, canaries: tuple[Canary, Canary]) -> None:
    control = Control(task_for(canaries, "null", kind="leave", name="name"))
    try:
        page = watched.browser.new_page()
        with page.expect_event("requestfailed", lambda request: "secret.leak.example" in request.url):
            page.goto(control.url)
    finally:
        control.close()
    assert watched.names() == {"secret.leak.example"}


@pytest.mark.clause("9.2")
def test_the_same_surface_in_a_frame_with_the_sandbox_alone_leaks_by_requests_and_by_a_peer_connection(
    watched: Watched, canaries: tuple[Canary, Canary]
) -> None:
    control = Control(task_for(canaries, "null", kind="probes"))
    try:
        page = watched.page(control.url)
        page.wait_for_function("() => window.report !== undefined")
        probes = page.evaluate("window.report")
        canaries[0].wait_hits(REACHED)
    finally:
        control.close()
    found = inv.check_inv_50("allow-scripts", probes, heard(canaries))
    assert canaries[0].packets > 0
    assert any(hit.startswith("bytes ") for hit in canaries[0].hits)
    assert probes["peerConnection"].startswith("OK")
    assert len(found) > len(REACHED)
    print("the control leaks:", sorted(set(canaries[0].hits)), canaries[0].packets, "packets")


# Functions at the top level of a script exist before its first line runs: in the place of what the bootstrap might call.
HOISTED = """
lineup.surface.onState((state) => {
  if (state.report === undefined && state.task) lineup.surface.patch({ report: { RTC: typeof window.RTCPeerConnection } });
});
function self() {}
function globalThis() {}
"""


@pytest.mark.clause("9.2")
@pytest.mark.invariant("50")
def test_a_script_that_declares_functions_in_the_place_of_globals_still_runs_after_the_bootstrap(
    start_host: StartHost, browser: Browser, tmp_path: Path
) -> None:
    host = start_host(write_hostile_app(tmp_path / "hostile", script=HOISTED.encode()))
    with agent_of(host) as agent, browser.new_context() as context:
        context.new_page().goto(host.url)
        assert run(agent, {"kind": "nothing", "waits": True}) == {"RTC": "undefined"}
