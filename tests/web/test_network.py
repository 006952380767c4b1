"""The page over a network: bound on request, never announced as such, and with less (SPEC 14: a plain-HTTP host off loopback)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from playwright.sync_api import expect

from hosts.link import Refused as LinkRefused
from hosts.web.asks import Ask
from hosts.web.host import NOT_FOR_PRODUCTION
from hosts.web.markdown import Trees
from hosts.web.page_jobs import Jobs
from hosts.web.page_text import PageText
from kernel.protocol.host_sessions import AppOpen, AppStartEmpty, SessionsContinue, SessionsShow
from lineup_sdk.protocol.messages import JsonObject, Message
from tests.web.conftest import Pages
from tests.web.raw_page import Refused, attached, open_page, wait_change
from tests.web.web_host import WebHost

SECONDS = 60


@pytest.fixture
def host(tmp_path: Path) -> Iterator[WebHost]:
    made = WebHost(tmp_path / "home", options=("--bind", "0.0.0.0"))
    made.start()
    yield made
    made.close()


@pytest.mark.clause("14")
async def test_a_host_on_every_address_says_the_loopback_and_shows_no_isolated_surface(host: WebHost) -> None:
    assert host.origin == f"http://127.0.0.1:{host.port}"
    assert NOT_FOR_PRODUCTION in host.said()
    assert "0.0.0.0" not in host.said()
    with trio.fail_after(SECONDS):
        with pytest.raises(Refused):
            async with open_page(host.origin, host=f"0.0.0.0:{host.port}", origin=f"http://0.0.0.0:{host.port}"):
                pass
        async with attached(host.origin, host.token) as page:
            await page.ask("app.open", app_scope="whiteboard")
            surface = await wait_change(page, "surface", app_scope="whiteboard")
            refused = (await page.op("surface.mount", surface_id=surface["surface_id"]))["receipt"]
            assert (refused["code"], "plain HTTP" in refused["detail"]["hint"]) == ("surface_unavailable", True)


@pytest.mark.clause("14")
def test_the_page_over_a_network_says_that_it_is_not_for_production(host: WebHost, pages: Pages) -> None:
    page = pages.open(host.url)
    expect(page.locator(".notices")).to_contain_text("Not for production: this address is plain HTTP")


class _View:
    """A view that has an installed App and a bundled one; bundles cannot be installed yet, so no kernel has the first."""

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.mirror = SimpleNamespace(apps=[{"app_scope": "bought", "kind": "installed"}, {"app_scope": "ours", "kind": "bundled"}])

    async def request(self, message: Message) -> JsonObject:
        if isinstance(message, SessionsShow):
            return {"session": {"app_scope": message.app_session_id.removeprefix("ses_")}}
        self.asked.append(message)
        return {"accepted": True}


@pytest.mark.clause("14")
@pytest.mark.parametrize("is_loopback", [True, False])
async def test_an_installed_app_is_opened_over_no_network(is_loopback: bool) -> None:
    view = _View()
    shared = SimpleNamespace(is_loopback=is_loopback, text=PageText(Trees()))
    jobs = Jobs(cast("Any", shared), cast("Any", None), "http://127.0.0.1:1", "en")
    refused: list[tuple[str, str, bool]] = []
    for scope in ("bought", "ours"):
        for message in (AppOpen(app_scope=scope), AppStartEmpty(app_scope=scope), SessionsContinue(app_session_id=f"ses_{scope}")):
            try:
                await jobs.of(Ask(1, message), cast("Any", view))()
            except LinkRefused as error:
                refused.append((scope, error.code, "plain HTTP" in error.detail["hint"]))
    assert refused == ([] if is_loopback else [("bought", "capability_denied", True)] * 3)
    assert len(view.asked) == 6 - len(refused), "what was refused reached no kernel"
