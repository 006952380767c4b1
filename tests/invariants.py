"""The promises of the kernel as queries: `check_inv_NN(db)` returns one line a violation, nothing when the promise holds.

They read any connection to a kernel's database. Here are those that rows alone can show today: 04 09 10 15 16 20 37 55. Open until their
parts exist: 06 (needs a relay's cursor), 14 (re-validates results), 22 23 (interactions), 51 (artifacts). The others need a record of
frames or processes and are checked where those are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import apsw

from kernel.audit import AuditRow, check_chain
from kernel.core.machines import CALL, CALL_OPEN, INSTANCE, CallStatus
from kernel.core.records import key_digest

Check = Callable[[apsw.Connection], list[str]]


def _rows(db: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    return db.execute(sql).fetchall()


def _lines(db: apsw.Connection, name: str, sql: str) -> list[str]:
    return [f"{name}: {' '.join(map(str, row))}" for row in _rows(db, sql)]


def check_inv_04(db: apsw.Connection) -> list[str]:
    """At most one acceptance of a (conversation_id, message_id)."""
    return _lines(
        db,
        "INV-04",
        "SELECT 'accepted twice', message_id FROM inbox_row GROUP BY conversation_id, message_id HAVING count(*) > 1"
        " UNION ALL SELECT 'in the timeline twice', message_id FROM timeline_message"
        "  GROUP BY conversation_id, message_id HAVING count(*) > 1",
    )


def check_inv_09(db: apsw.Connection) -> list[str]:
    """One record a call, and its id in the key table for the same content."""
    found = _lines(db, "INV-09", "SELECT 'two records of', call_id FROM tool_call GROUP BY call_id HAVING count(*) > 1")
    keys = dict(_rows(db, "SELECT digest, content_digest FROM used_key"))
    for number, conversation_id, call_id, content in _rows(db, "SELECT number, conversation_id, call_id, content_digest FROM tool_call"):
        if keys.get(key_digest("call", conversation_id, call_id)) != content:
            found.append(f"INV-09: no key for call {number}")
    return found


def watch_inv_10(db: apsw.Connection) -> None:
    """Let every change of a status be recorded on this connection, for check_inv_10."""
    db.execute(
        "CREATE TEMP TABLE IF NOT EXISTS history (machine TEXT, number INTEGER, old TEXT, new TEXT);"
        "CREATE TEMP TRIGGER IF NOT EXISTS call_history AFTER UPDATE OF status ON tool_call WHEN old.status <> new.status"
        " BEGIN INSERT INTO history VALUES ('call', old.number, old.status, new.status); END;"
        "CREATE TEMP TRIGGER IF NOT EXISTS instance_history AFTER UPDATE OF state ON instance WHEN old.state <> new.state"
        " BEGIN INSERT INTO history VALUES ('instance', old.number, old.state, new.state); END;"
    )


def _reachable(machine: Mapping[Any, Mapping[Any, StrEnum]], state: StrEnum) -> set[str]:
    """Every state a turn may leave behind: it can take several steps and writes the last."""
    reached: set[str] = set()
    waiting = [state]
    while waiting:
        following = {target for target in machine[waiting.pop()].values() if target not in reached}
        reached |= following
        waiting += following
    return reached


_MACHINES: Mapping[str, Mapping[Any, Mapping[Any, StrEnum]]] = {"call": CALL, "instance": INSTANCE}


def check_inv_10(db: apsw.Connection) -> list[str]:
    """Statuses move along the table, and final ones never move (needs watch_inv_10 on the same connection)."""
    found = []
    for machine, number, old, new in _rows(db, "SELECT machine, number, old, new FROM temp.history"):
        table = _MACHINES[machine]
        if new not in _reachable(table, next(state for state in table if state == old)):
            found.append(f"INV-10: {machine} {number} went from {old} to {new}")
    return found


def check_inv_15(db: apsw.Connection) -> list[str]:
    """An ended call has its audit row and its final outbox row; an open one has neither."""
    return _lines(
        db,
        "INV-15",
        "SELECT 'no final row for ended call', number FROM tool_call AS c"
        " WHERE status NOT IN ('received', 'routing', 'waiting_for_app', 'running')"
        "  AND NOT EXISTS (SELECT 1 FROM outbox_row WHERE kind = 'final' AND call_number = c.number)"
        " UNION ALL SELECT 'no audit row for ended call', number FROM tool_call AS c"
        " WHERE status NOT IN ('received', 'routing', 'waiting_for_app', 'running') AND NOT EXISTS (SELECT 1 FROM audit"
        "  WHERE number = c.number AND event IN ('call.submitted', 'call.failed', 'call.cancelled', 'call.expired', 'call.rejected'))"
        " UNION ALL SELECT 'a final row for open call', number FROM tool_call AS c"
        " WHERE status IN ('received', 'routing', 'waiting_for_app', 'running')"
        "  AND EXISTS (SELECT 1 FROM outbox_row WHERE kind = 'final' AND call_number = c.number)"
        " UNION ALL SELECT 'an ending in the audit of open call', number FROM tool_call AS c"
        " WHERE status IN ('received', 'routing', 'waiting_for_app', 'running') AND EXISTS (SELECT 1 FROM audit"
        "  WHERE number = c.number AND event IN ('call.submitted', 'call.failed', 'call.cancelled', 'call.expired', 'call.rejected'))",
    )


def check_inv_16(db: apsw.Connection) -> list[str]:
    """Exactly one final outbox row a call, and no final row without its call."""
    return _lines(
        db,
        "INV-16",
        "SELECT 'several final rows for call', call_number FROM outbox_row WHERE kind = 'final' GROUP BY call_number HAVING count(*) > 1"
        " UNION ALL SELECT 'a final row for no call', call_number FROM outbox_row"
        "  WHERE kind = 'final' AND call_number NOT IN (SELECT number FROM tool_call)",
    )


def check_inv_20(db: apsw.Connection) -> list[str]:
    """Submitted and completed exist only with a result; completed only when the final row was acknowledged once."""
    return _lines(
        db,
        "INV-20",
        "SELECT status, 'without a result:', number FROM tool_call WHERE status IN ('submitted', 'completed') AND result_cbor IS NULL"
        " UNION ALL SELECT 'a result of an unfinished call:', '', number FROM tool_call"
        "  WHERE status IN ('received', 'routing', 'waiting_for_app', 'running', 'rejected') AND result_cbor IS NOT NULL",
    )


def check_inv_37(db: apsw.Connection) -> list[str]:
    """At most one instance in front, and it is the top of the focus stack; nothing ended stands in the stack."""
    return _lines(
        db,
        "INV-37",
        "SELECT 'several in front:', count(*) FROM instance WHERE state = 'foreground' HAVING count(*) > 1"
        " UNION ALL SELECT 'in front and not on top:', instance_id FROM instance WHERE state = 'foreground'"
        "  AND instance_id IS NOT (SELECT value FROM focus, json_each(focus.instance_ids) ORDER BY key DESC LIMIT 1)"
        " UNION ALL SELECT 'ended or unknown in the stack:', value FROM focus, json_each(focus.instance_ids)"
        "  WHERE value NOT IN (SELECT instance_id FROM instance WHERE state NOT IN ('stopped', 'failed'))"
        " UNION ALL SELECT 'twice in the stack:', value FROM focus, json_each(focus.instance_ids) GROUP BY value HAVING count(*) > 1",
    )


def check_inv_55(db: apsw.Connection) -> list[str]:
    """The chain holds, and every call, ended instance and acknowledged row has the audit row of its decision."""
    rows = (
        AuditRow(*row)
        for row in _rows(
            db,
            "SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count, previous_hash, hash"
            " FROM audit ORDER BY seq",
        )
    )
    # The kept head is a file of its own; without one every chain has that one problem more.
    broken = [f"INV-55: {problem}" for problem in check_chain(rows, None).problems if "kept" not in problem]
    return broken + _lines(
        db,
        "INV-55",
        "SELECT 'no audit row for call', number FROM tool_call WHERE number NOT IN (SELECT number FROM audit WHERE number IS NOT NULL)"
        " UNION ALL SELECT 'no audit row for the end of', instance_id FROM instance AS i WHERE state IN ('stopped', 'failed')"
        "  AND NOT EXISTS (SELECT 1 FROM audit WHERE instance_id = i.instance_id AND event = 'instance.' || i.state)"
        " UNION ALL SELECT 'a later cause than its effect:', seq FROM audit WHERE cause >= seq",
    )


CHECKS: Mapping[str, Check] = {
    "04": check_inv_04,
    "09": check_inv_09,
    "15": check_inv_15,
    "16": check_inv_16,
    "20": check_inv_20,
    "37": check_inv_37,
    "55": check_inv_55,
}


def check_all(db: apsw.Connection) -> list[str]:
    """Every check that needs only the rows."""
    return [line for check in CHECKS.values() for line in check(db)]


assert {CallStatus.RECEIVED, CallStatus.ROUTING, CallStatus.WAITING_FOR_APP, CallStatus.RUNNING} == CALL_OPEN  # as the queries say
