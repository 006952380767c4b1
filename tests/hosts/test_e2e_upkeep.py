"""The verbs of upkeep with a real kernel: backup, restore, explain, tail, logs, inbox."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hosts.test_e2e_command import SECONDS, Command, lineup

__all__ = ["lineup"]


@pytest.mark.clause("12")
def test_a_backup_is_made_beside_a_kernel_and_restored_without_one(lineup: Command, tmp_path: Path) -> None:
    called = lineup("call", "runtime.status", "--format", "json")
    target = str(tmp_path / "backup")
    made = lineup("backup", target, "--format", "json")
    assert made["format"] == 1
    for name in (target, str(tmp_path / "no folder" / "backup"), str(tmp_path / ("x" * 300) / "backup")):
        refused = lineup("backup", name, code=2)
        assert (refused["code"], refused["detail"]["expected"]) == ("usage", "a folder that is not there yet, in one that is")
    refused = lineup("backup", str(tmp_path / ("x" * 300)), code=8)  # what only the kernel finds out
    assert (refused["code"], refused["message"]) == ("limit_exceeded", "the backup cannot be put there")
    assert refused["detail"]["pointer"] == "PATH"
    assert refused["detail"]["expected"] == "a folder that is not there yet, in one that may be written"
    assert "too long" in refused["detail"]["hint"]
    later = lineup("call", "runtime.status", "--format", "json")
    assert lineup("restore", target, code=8)["code"] == "store_locked"
    lineup("stop", "--format", "json")
    restored = lineup("restore", target, "--format", "json")
    assert restored["epoch"] == made["epoch"]
    assert restored["replaced"].startswith("replaced-")
    assert lineup("call", "runtime.status", "--format", "json")["status"] == "completed"
    listed = [call["call_id"] for call in lineup("calls", "list", "--format", "json")["calls"]]
    assert called["call_id"] in listed
    assert later["call_id"] not in listed
    lineup("stop", "--format", "json")
    assert lineup("audit", "verify", "--format", "json")["ok"] is True
    refused = lineup("restore", str(tmp_path / "nothing"), code=1)
    assert refused["code"] == "store_corrupt"
    assert refused["message"] == "the backup fails its checks; nothing of this home was changed"
    assert lineup("audit", "verify", "--format", "json")["ok"] is True


@pytest.mark.clause("17")
def test_explain_cites_the_audit_and_tail_shows_it(lineup: Command) -> None:
    called = lineup("call", "runtime.status", "--format", "json")
    why = lineup("explain", called["call_id"], "--format", "json")
    assert (why["kind"], why["state"]) == ("call", "completed")
    rows = [json.loads(line) for line in lineup.run("tail", "--format", "json").stdout.splitlines()]
    cited = {seq for sentence in why["sentences"] for seq in sentence["seqs"]}
    assert cited <= {row["seq"] for row in rows}
    assert b"[audit " in lineup.run("explain", called["call_id"]).stdout
    assert lineup("explain", "nobody", code=2)["code"] == "call_not_found"
    assert lineup("logs", "nobody", code=2)["code"] == "app_instance_not_found"
    assert lineup("inbox", "parked", "--format", "json") == {"rows": [], "more": False}
    for verb in ("retry", "drop"):
        assert lineup("inbox", verb, "1", code=2)["code"] == "call_not_found"


@pytest.mark.clause("16")
def test_the_days_that_run_is_told_are_those_of_the_kernel_and_of_every_later_one(lineup: Command) -> None:
    def days() -> int:
        told: int = lineup("ps", "--format", "json")["kernel"]["retention_days"]
        return told

    lineup("call", "runtime.status", "--format", "json")
    assert days() == 90
    lineup("stop", "--format", "json")
    host = lineup.start("run", "--no-open", "--retention-days", "7")
    try:
        assert host.stdout is not None
        assert host.stdout.readline(), "it did not get ready"
        assert days() == 7
    finally:
        host.terminate()
        host.communicate(timeout=SECONDS)
    lineup("stop", "--format", "json")
    lineup("call", "runtime.status", "--format", "json")  # started by another verb, without a word about days
    assert days() == 7
