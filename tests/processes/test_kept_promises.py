"""What every test of processes is looked at for at its end does go red."""

from __future__ import annotations

import pytest
import trio

from kernel.protocol.host_interactions import DraftSave
from tests.invariants import PROCESS_CHECKS
from tests.processes.conftest import Starter
from tests.processes.kept_promises import contents, reach_of_workers, require_kept

TEXT, DRAFT = "a text of several words", "typed and not sent"
INPUT = {"title": "Note", "prompt": "Say something.", "fields": [{"id": "note", "label": "Note", "type": "textarea"}]}


@pytest.mark.invariant("30")
@pytest.mark.invariant("42")
@pytest.mark.invariant("44")
@pytest.mark.invariant("56")
async def test_content_and_drafts_in_a_log_secrets_in_a_worker_and_a_process_that_is_left_are_told(
    start: Starter, nursery: trio.Nursery
) -> None:
    kernel = start()
    person, agent = await kernel.first_view(nursery), await kernel.agent(nursery)
    await agent.result(await agent.invoke("fixture.echo", {"text": TEXT}))
    call_id = await agent.invoke("interaction.input", INPUT)
    card = await person.interaction(lambda one: one.get("call_id") == call_id and one["status"] == "presented")
    assert await person.ask(DraftSave(interaction_id=card["interaction_id"], draft={"fields": {"note": DRAFT}})) == {"saved": True}
    reach = reach_of_workers(kernel)
    assert PROCESS_CHECKS["44"](reach, [b"app.fixture.context", b"lineup_sdk"])  # it is their memory that is looked at
    tree = kernel.tree()
    assert PROCESS_CHECKS["42"](tree.left())  # they live
    tree.let_go()
    await kernel.kill_all()
    assert TEXT.encode() in contents(kernel.home)
    written = kernel.log.read_bytes()
    for said, number in ((TEXT, "56"), (DRAFT, "30")):
        place = kernel.log if number == "56" else kernel.home / "note"
        place.write_bytes(written + said.encode())
        with pytest.raises(AssertionError, match=f"INV-{number}: "):
            require_kept([kernel])
        place.write_bytes(written)
