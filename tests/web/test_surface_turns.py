"""What the surfaces of one page say together is less than the host takes of a page (SPEC 16)."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Frame, expect

from hosts.web.pace import BURST, MESSAGES_A_SECOND
from tests.web.conftest import Pages, StartHost
from tests.web.hostile_app import write_hostile_app
from tests.web.test_bridge import SILENT, TALKER, Shown
from tests.web.web_host import WebHost, agent_of

TAKE_TURNS = """async () => {
  const { Turns } = await import("/static/surface_turns.js");
  let now = 0;
  const timers = [];
  const turns = new Turns(() => now, (run, ms) => timers.push({ run, at: now + ms }));
  const had = [0, 0, 0];
  const order = [];
  for (const who of had.keys()) {
    (async () => {
      for (;;) {
        await turns.take();
        had[who] += 1;
        order.push(who);
      }
    })();
  }
  const counts = [];
  for (let second = 1; second <= 5; second += 1) {
    for (;;) {
      for (let n = 0; n < 2000; n += 1) await null;
      timers.sort((one, other) => one.at - other.at);
      if (timers.length === 0 || timers[0].at > second * 1000) break;
      const { run, at } = timers.shift();
      now = at;
      run();
    }
    counts.push(order.length);
  }
  return { counts, had };
}"""


@pytest.mark.clause("16")
def test_surfaces_take_turns_that_leave_the_person_a_third_of_what_the_host_takes(host: WebHost, pages: Pages) -> None:
    """By a clock of the test's own, with three that never stop asking."""
    found = pages.open(host.url).evaluate(TAKE_TURNS)
    assert found["counts"][0] <= BURST
    seconds = [after - before for before, after in pairwise(found["counts"])]
    assert all(0 < said <= MESSAGES_A_SECOND * 2 / 3 for said in seconds), seconds
    assert max(found["had"]) - min(found["had"]) <= 1


# A clock that stands in the page, not in its frames: what is spent of a measure does not come back.
NO_TIME = "if (window === top) performance.now = () => 0;"
MANY = """() => {
  window.done = 0;
  for (let n = 0; n < 60; n += 1) lineup.surface.patch({ n }).then(() => (done += 1), () => {});
}"""


@pytest.mark.clause("9.2")
@pytest.mark.clause("16")
def test_surfaces_share_what_the_page_may_say_and_the_person_is_heard(start_host: StartHost, pages: Pages, tmp_path: Path) -> None:
    """Together they could say more than the host takes of one page, which is then cut."""
    scopes = ("talker1", "talker2", "talker3")
    host = start_host(*(write_hostile_app(tmp_path / scope, script=TALKER, scope=scope) for scope in scopes))
    with agent_of(host) as agent:
        page = pages.open(host.url, script=NO_TIME)
        frames = []
        for scope in scopes:
            agent.result(agent.invoke(f"{scope}.run", SILENT))
            frames.append(Shown(host, page, agent, scope.capitalize()).frame)
        for frame in frames:
            frame.evaluate(MANY)
        shared = 120 - len(scopes)  # each has been mounted
        wait_done(frames, shared)
        page.get_by_role("tab", name="Conversation").click()
        page.get_by_label("Message to the Agent").fill("Can you hear me?")
        page.keyboard.press("Enter")
        expect(page.get_by_text("arrived")).to_be_visible()
        assert wait_done(frames, shared) == shared


def wait_done(frames: list[Frame], count: int) -> int:
    """Wait until so many patches of these were done; the number."""
    until = time.monotonic() + 60
    while (done := sum(frame.evaluate("() => done") for frame in frames)) < count:
        assert time.monotonic() < until, f"{done} of {count}"
        time.sleep(0.1)
    return done
