"""The capability gateway over real processes: consent, one frame a grant, hosts that die, kernels that die (SPEC 10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from hosts.providers import Providers, Task, save_into
from kernel.protocol.host import FocusRaise
from kernel.protocol.host_capabilities import (
    CapabilityExecute,
    ConsentAnswer,
    ConsentsList,
    PermissionsList,
    PermissionsReset,
    PermissionsRevoke,
    ProviderResult,
)
from kernel.protocol.host_surfaces import ArtifactRead
from lineup_sdk.protocol.messages import JsonObject
from tests.processes.kernel_under_test import KernelUnderTest, opened_copy
from tests.processes.peers import Agent, Person
from tests.processes.warm_parent import WarmParent
from tests.processes.written_app import write_app

pytestmark = [pytest.mark.clause("10"), pytest.mark.invariant("52")]
SOURCE = Path(__file__).parent / "apps" / "scribe.py"
CAPABILITIES = ("artifact.save", "clipboard.write", "microphone", "notification.show")
ABLE = ["artifact.save", "clipboard.write", "notification.show"]
COPY = {"capability": "clipboard.write", "reason": "To paste it", "arguments": {"text": "a secret of the person"}}

Start = Callable[[], KernelUnderTest]


@pytest.fixture
def start(parents: Mapping[str, WarmParent], tmp_path: Path) -> Iterator[Start]:
    app = write_app(tmp_path, "scribe", SOURCE.read_bytes(), ("ask", "copy", "put", "results"), CAPABILITIES)
    started: list[KernelUnderTest] = []

    def begin() -> KernelUnderTest:
        started.append(KernelUnderTest.start(tmp_path / "home", tmp_path / "kernel.log", apps=[app], parent=parents["kernel"]))
        return started[-1]

    yield begin
    for kernel in started:
        kernel.close()


async def call(agent: Agent, verb: str, given: Any = None) -> Any:
    result = await agent.result(await agent.invoke(f"scribe.{verb}", {"json": json.dumps(given)}))
    assert result["status"] == "completed", result
    return json.loads(result["result"]["json"])


async def to_front(agent: Agent, person: Person) -> None:
    await call(agent, "results")
    instance = await person.instance("scribe", "background", "foreground")
    await person.ask(FocusRaise(instance_id=instance["instance_id"]))
    await person.instance("scribe", "foreground")


async def ready(kernel: KernelUnderTest, nursery: trio.Nursery) -> tuple[Agent, Person]:
    """An Agent and a view that can do all three, with the App in front."""
    await kernel.first_view(nursery)
    person = await kernel.join(nursery, label="able", providers=ABLE)
    agent = await kernel.agent(nursery)
    await to_front(agent, person)
    return agent, person


async def results_of(agent: Agent) -> list[JsonObject]:
    """What the App was told of its requests. Its message and a question about it cross: the App is asked until it has one."""
    results: list[JsonObject] = []
    with trio.fail_after(30):
        while not results:
            results = await call(agent, "results")
    return results


async def consent(person: Person, request_id: str, decision: str) -> JsonObject:
    [asked] = [one for one in (await person.ask(ConsentsList()))["consents"] if one["request_id"] == request_id]
    return await person.ask(ConsentAnswer(request_id=request_id, decision=decision, shown=asked["shown"]))


async def executed(person: Person, count: int = 1) -> JsonObject:
    return (await person.until(lambda: person.of_type("capability.execute")[count - 1 :]))[0]


async def test_the_person_is_asked_then_one_view_acts_and_the_app_hears_how_it_ended(start: Start, nursery: trio.Nursery) -> None:
    kernel = start()
    agent, person = await ready(kernel, nursery)
    call_id = await agent.invoke("scribe.copy", {"json": json.dumps(COPY)})
    [asked] = await person.until(lambda: _asked(person))
    assert (asked["app_title"], asked["app_scope"], asked["reason"]) == ("Test app scribe", "scribe", "To paste it")
    assert asked["title"] == "Replace what is on the clipboard"
    assert (asked["arguments"], asked["parent_call_id"]) == (COPY["arguments"], call_id)
    assert person.of_type("capability.execute") == []
    assert (await consent(person, asked["request_id"], "once"))["accepted"]
    frame = await executed(person)
    assert (frame["request_id"], frame["arguments"]) == (asked["request_id"], COPY["arguments"])
    with opened_copy(kernel.home) as db:  # the grant was durable before the frame came
        rows = list(db.execute("SELECT status, scope FROM capability_request WHERE request_id = ?", (frame["request_id"],)))
    assert rows == [("granted", "once")]
    assert (await person.ask(ProviderResult(request_id=frame["request_id"], status="done")))["accepted"]
    result = await agent.result(call_id)
    assert json.loads(result["result"]["json"]) == {"status": "done", "code": None, "reason": None}
    assert (await person.ask(ProviderResult(request_id=frame["request_id"], status="done")))["code"] == "capability_denied"
    await kernel.kill_all()
    with opened_copy(kernel.home) as db:
        assert list(db.execute("SELECT count(*) FROM capability_request WHERE arguments_cbor IS NOT NULL")) == [(0,)]


def _asked(person: Person) -> list[JsonObject]:
    deltas = [change for frame in person.of_type("delta") for change in frame["changes"] if change["kind"] == "consent"]
    newest = {change["value"]["request_id"]: change["value"] for change in deltas}
    return [value for value in newest.values() if value["status"] == "asked"]


async def test_a_view_without_the_capability_may_consent_and_another_acts(start: Start, nursery: trio.Nursery) -> None:
    kernel = start()
    agent, able = await ready(kernel, nursery)
    other = await kernel.join(nursery, label="bare")
    said = await call(agent, "ask", COPY)
    await consent(other, said["request_id"], "once")
    assert (await executed(able))["request_id"] == said["request_id"]
    assert (await other.ask(ProviderResult(request_id=said["request_id"], status="done")))["code"] == "capability_denied"
    assert other.of_type("capability.execute") == []


async def test_refused_requests_reach_no_host(start: Start, nursery: trio.Nursery) -> None:
    kernel = start()
    agent, person = await ready(kernel, nursery)
    assert await call(agent, "ask", COPY | {"capability": "camera"}) == {"code": "capability_denied"}
    assert await call(agent, "ask", COPY | {"capability": "microphone"}) == {"code": "capability_unsupported"}
    assert await call(agent, "ask", COPY | {"arguments": {"text": "x" * 8_193}}) == {"code": "capability_denied"}
    foreign = {"artifact_id": "art_of_nobody", "name": "a.txt"}
    assert await call(agent, "ask", COPY | {"capability": "artifact.save", "arguments": foreign}) == {"code": "artifact_not_found"}
    await person.ask(FocusRaise(instance_id="chat"))
    assert await call(agent, "ask", COPY) == {"code": "lifecycle_denied"}
    person.close()
    await person.wait_closed()
    assert person.of_type("capability.execute") == []
    assert _asked(person) == []


async def test_a_view_that_dies_while_it_acts_leaves_unknown_and_no_other_view_is_asked(start: Start, nursery: trio.Nursery) -> None:
    kernel = start()
    agent, person = await ready(kernel, nursery)
    second = await kernel.join(nursery, label="second", providers=ABLE)
    said = await call(agent, "ask", COPY)
    await consent(person, said["request_id"], "once")
    await executed(person)
    person.close()
    unknown = {"request_id": said["request_id"], "capability": "clipboard.write", "status": "unknown", "code": "unknown"}
    assert await results_of(agent) == [unknown]
    assert second.of_type("capability.execute") == []


@pytest.mark.clause("12")
@pytest.mark.parametrize("has_acted", [False, True])
async def test_a_kernel_that_dies_in_between_leaves_unknown_and_never_asks_again(
    start: Start, nursery: trio.Nursery, has_acted: bool
) -> None:
    kernel = start()
    agent, person = await ready(kernel, nursery)
    said = await call(agent, "ask", COPY)
    await consent(person, said["request_id"], "always")
    frame = await executed(person)
    await kernel.kill_all()  # the host did it, or not: the kernel never heard
    kernel = start()
    await kernel.first_view(nursery)
    again = await kernel.join(nursery, label="able", providers=ABLE)
    agent = await kernel.agent(nursery)
    await to_front(agent, again)
    assert [(one["request_id"], one["status"]) for one in await results_of(agent)] == [(frame["request_id"], "unknown")]
    if has_acted:
        late = await again.ask(ProviderResult(request_id=frame["request_id"], status="done"))
        assert late["code"] == "capability_denied"
    assert again.of_type("capability.execute") == []
    said = await call(agent, "ask", COPY)  # a new request under the standing answer is a new use
    assert said["status"] == "granted"
    assert (await executed(again))["request_id"] == said["request_id"] != frame["request_id"]


async def test_standing_answers_are_listed_and_taken_back(start: Start, nursery: trio.Nursery) -> None:
    kernel = start()
    agent, person = await ready(kernel, nursery)
    said = await call(agent, "ask", COPY)
    await consent(person, said["request_id"], "always")
    admin = await kernel.join(nursery, "admin", "command")
    [listed] = (await admin.ask(PermissionsList()))["permissions"]
    assert (listed["app_scope"], listed["capability"], listed["scope"], listed["counts"]) == ("scribe", "clipboard.write", "always", True)
    assert (await admin.ask(PermissionsRevoke(app_scope="scribe", capability="clipboard.write"))) == {"revoked": 1}
    assert (await person.until(lambda: person.of_type("capability.stop")))[0]["request_id"] == said["request_id"]
    assert (await call(agent, "ask", COPY))["status"] == "asked"
    assert await admin.ask(PermissionsReset()) == {"revoked": 0}
    assert (await admin.ask(PermissionsList()))["permissions"] == []


async def test_an_artifact_is_saved_once_by_the_host_of_the_person(start: Start, nursery: trio.Nursery, tmp_path: Path) -> None:
    kernel = start()
    agent, person = await ready(kernel, nursery)
    said = await call(agent, "put", {"text": "a drawing", "name": "drawing.txt"})
    assert said["status"] == "asked", said
    await consent(person, said["request_id"], "once")
    fields = {name: value for name, value in (await executed(person)).items() if name != "type"}
    execute = CapabilityExecute(**fields)

    async def read(artifact_id: str) -> bytes:
        value = await person.ask(ArtifactRead(artifact_id=artifact_id))
        chunks = await person.until(lambda: [one for one in person.of_type("chunk") if one["of"] == value["of"]])
        return b"".join(chunk["data"] for chunk in chunks)

    providers = Providers({"artifact.save": save_into(tmp_path / "saved")})
    result = await providers.run(execute, read)
    assert (await person.ask(result))["accepted"]
    assert (tmp_path / "saved" / "drawing.txt").read_bytes() == b"a drawing"
    again = await providers.run(execute, read)
    assert (again.status, again.reason) == ("failed", "asked_twice")
    assert [path.name for path in (tmp_path / "saved").iterdir()] == ["drawing.txt"]
    assert [one["status"] for one in await results_of(agent)] == ["done"]


async def test_a_host_in_this_process_does_what_it_is_asked(start: Start, nursery: trio.Nursery, tmp_path: Path) -> None:
    """The whole way with the host library: View, providers, consent from the mirror."""
    from hosts.headless import open_headless
    from hosts.homes import Home
    from hosts.launch import Launcher

    kernel = start()
    agent, _ = await ready(kernel, nursery)
    seen: list[JsonObject] = []

    async def note(task: Task) -> None:
        seen.append(task.execute.arguments)

    with trio.fail_after(60):
        async with open_headless(Launcher(Home(kernel.home)), providers=Providers({"clipboard.write": note})) as host:
            said = await call(agent, "ask", COPY)
            await host.wait_until(lambda mirror: mirror.consents.get(said["request_id"]))
            await host.answer_consent(said["request_id"], "while_open")
            await host.wait_until(lambda mirror: said["request_id"] not in mirror.consents or None)
            assert [one["scope"] for one in await host.permissions()] == ["while_open"]
            assert [one["status"] for one in await results_of(agent)] == ["done"]
            await host.revoke_permission("scribe", "clipboard.write")
            assert await host.reset_permissions() == 0
    assert seen == [COPY["arguments"]]


def test_the_verbs_of_permissions_over_a_real_kernel(reaping: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`lineup permissions list|revoke|reset` as a person types them; the answer itself is given over a view before."""
    from hosts.cli import run_command

    app = write_app(tmp_path, "scribe", SOURCE.read_bytes(), ("ask", "copy", "put", "results"), CAPABILITIES)
    kernel = KernelUnderTest.start(tmp_path / "home", tmp_path / "kernel.log", apps=[app])

    async def answer_always() -> None:
        async with trio.open_nursery() as nursery:
            agent, person = await ready(kernel, nursery)
            said = await call(agent, "ask", COPY)
            await consent(person, said["request_id"], "always")
            nursery.cancel_scope.cancel()

    def lineup(*words: str) -> tuple[int, str, str]:
        code = run_command(["--home", str(kernel.home), *words])
        out, err = capfd.readouterr()
        return code, out, err

    try:
        trio.run(answer_always)
        code, out, _ = lineup("permissions", "list", "--format", "json")
        assert code == 0
        [listed] = json.loads(out)["permissions"]
        assert (listed["app_scope"], listed["scope"]) == ("scribe", "always")
        assert "scribe  clipboard.write  always" in lineup("permissions", "list")[1]
        assert lineup("permissions", "revoke", "scribe", "clipboard.write")[0] == 0
        code, _, err = lineup("permissions", "revoke", "scribe", "clipboard.write", "--format", "json")
        assert (code, json.loads(err)["code"]) == (3, "capability_denied")
        assert json.loads(lineup("permissions", "reset", "--all", "--format", "json")[1]) == {"revoked": 0}
    finally:
        kernel.close()
