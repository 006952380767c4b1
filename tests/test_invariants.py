"""Every promise of groups A to H has its check, or is said to be open; those over facts of processes go red (the others: test_teeth.py)."""

from __future__ import annotations

from pathlib import Path

import apsw

from tests import invariants as inv
from tests import invariants_of_browser as browser
from tests.invariants_of_questions import check_bytes_of_inv_51

_COMPARES_TWO = {"45"}  # check_inv_45: tests/model/test_spy.py
_BY_A_WATCH = {"10", "38"}  # check_inv_10, on a connection that is watched


def test_every_promise_has_a_check_or_is_open() -> None:
    held = {*inv.CHECKS, *inv.TRACE_CHECKS, *inv.PROCESS_CHECKS, *_COMPARES_TWO, *_BY_A_WATCH}
    assert held | set(inv.OPEN) == {f"{number:02}" for number in range(1, 58)}
    assert held & set(inv.OPEN) == set()


def test_a_draft_in_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "kernel.db").write_bytes(b"...typed-and-not-sent...")
    assert inv.PROCESS_CHECKS["30"]([tmp_path], [b"typed-and-not-sent"]) == ["INV-30: a draft is in kernel.db"]
    assert inv.PROCESS_CHECKS["30"]([tmp_path], [b"never typed"]) == []


def test_what_a_kernel_leaves_behind_is_told() -> None:
    check = inv.PROCESS_CHECKS["42"]
    assert check([]) == []
    assert check([7]) == ["INV-42: process 7 is left"]
    assert check([], zombies=1) != []
    assert check([], fd_growth=2) != []


def test_a_secret_within_a_workers_reach_is_told() -> None:
    assert inv.PROCESS_CHECKS["44"](b"environment and memory", [b"token"]) == []
    assert inv.PROCESS_CHECKS["44"](b"a token in memory", [b"none", b"token"]) == ["INV-44: secret 1 is within a worker's reach"]


def test_an_attack_that_comes_out_otherwise_is_told() -> None:
    check = inv.PROCESS_CHECKS["46"]
    assert check({"open": "denied"}, {"open": "denied"}) == []
    assert check({"open": "ok"}, {"open": "denied"}) == ["INV-46: open came out ok instead of denied"]
    assert check({}, {"open": "denied"}) != []
    assert check({"new": "ok"}, {}) != []


def test_a_bad_worker_that_hurts_others_is_told() -> None:
    check = inv.PROCESS_CHECKS["47"]
    assert check(["bad"], "bad", [1.0] * 99 + [3.0], 5.0, 10, 100) == []
    assert check(["bad", "good"], "bad", [1.0], 5.0, 10, 100) == ["INV-47: good ended with it"]
    assert check([], "bad", [9.0], 5.0, 10, 100) != []
    assert check([], "bad", [1.0], 5.0, 101, 100) != []


def test_content_in_a_log_is_told(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_bytes(b'{"event": "call.ended"}')
    assert inv.PROCESS_CHECKS["56"]([log], [b"secret title"]) == []
    log.write_bytes(b'{"event": "call.ended", "title": "secret title"}')
    assert inv.PROCESS_CHECKS["56"]([log], [b"secret title"]) == ["INV-56: content is in kernel.log"]


def test_an_artifact_without_its_bytes_is_told(tmp_path: Path) -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE artifact (number INTEGER, sha256 TEXT, size INTEGER, is_lost INTEGER)")
    digest = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"  # of the letter a
    db.execute("INSERT INTO artifact VALUES (1, ?, 1, 0)", (digest,))
    assert check_bytes_of_inv_51(db, tmp_path) == ["INV-51: the bytes of artifact 1 are not what its row says"]
    (tmp_path / digest).write_bytes(b"b")
    assert check_bytes_of_inv_51(db, tmp_path) != []
    (tmp_path / digest).write_bytes(b"a")
    assert check_bytes_of_inv_51(db, tmp_path) == []


DIGEST_OF_A = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"  # of the letter a
SURFACE = {
    "files": [{"name": f"surface/{name}", "size": 1, "sha256": DIGEST_OF_A} for name in ("1.js", "2.js", "x.css")],
    "surface": {"version": 1, "scripts": ["surface/1.js", "surface/2.js"], "style": "surface/x.css"},
}


def test_a_surface_that_runs_other_bytes_than_its_manifest_names_is_told() -> None:
    check = inv.PROCESS_CHECKS["48"]
    assert check("<style>a</style><script>boota\na</script>", "boot", SURFACE) == []
    for document in (
        "<style>a</style><script>a\na</script>",
        "<style>b</style><script>boota\na</script>",
        "<style>a</style><script>bootb\na</script>",
        "<style>a</style><script>boota\na;more()</script>",
        "<style>a</style><script>boota\na</script><script>more()</script>",
        "",
    ):
        assert check(document, "boot", SURFACE) != []


def test_a_foreign_sender_that_is_not_counted_or_has_an_effect_is_told() -> None:
    check = browser.check_browser_of_inv_49
    assert check({"bad_hello": 1}, {"bad_hello": 2, "not_current_frame": 1}, ["a popup", "a sibling"], set()) == []
    assert check({}, {"bad_hello": 1}, ["a popup", "a sibling"], set()) == ["INV-49: 2 foreign senders, 1 counted"]
    assert check({}, {"bad_hello": 1}, ["a popup"], {"an answer"}) == ["INV-49: a foreign sender had an effect: an answer"]


def test_a_surface_that_reaches_anything_is_told() -> None:
    check = inv.PROCESS_CHECKS["50"]
    assert check("allow-scripts", {"fetch": "throws TypeError"}, []) == []
    assert check("allow-scripts allow-forms", {"fetch": "error"}, []) == ["INV-50: the sandbox of the frame is another one"]
    assert check("allow-scripts", {"cookie": "OK a=1"}, []) == ["INV-50: cookie came out OK a=1"]
    assert check("allow-scripts", {"fetch": "error"}, ["a packet"]) == ["INV-50: a packet was heard outside"]
    assert check("allow-scripts", {}, []) == ["INV-50: nothing was tried"]
