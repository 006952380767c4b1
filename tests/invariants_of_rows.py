"""The promises that rows alone can show: `check_inv_NN(db)` returns one line a violation, nothing when the promise holds.

They read any connection to a kernel's database. Those of interactions, surfaces and codes stand in invariants_of_questions.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import apsw

from kernel.audit import AuditRow, check_chain
from kernel.core.machines import CALL, CALL_OPEN, CAPABILITY, INBOX, INSTANCE, INTERACTION, OUTBOX, PERMISSION, CallStatus
from kernel.core.records import key_digest

OPEN = "('received', 'routing', 'waiting_for_app', 'running')"
assert {CallStatus.RECEIVED, CallStatus.ROUTING, CallStatus.WAITING_FOR_APP, CallStatus.RUNNING} == CALL_OPEN  # as the queries say


def rows_of(db: apsw.Connection, sql: str) -> list[tuple[Any, ...]]:
    return db.execute(sql).fetchall()


def lines_of(db: apsw.Connection, name: str, sql: str) -> list[str]:
    return [f"{name}: {' '.join(map(str, row))}" for row in rows_of(db, sql)]


def check_inv_04(db: apsw.Connection) -> list[str]:
    """At most one acceptance of a (conversation_id, message_id)."""
    return lines_of(
        db,
        "INV-04",
        "SELECT 'accepted twice', message_id FROM inbox_row GROUP BY conversation_id, message_id HAVING count(*) > 1"
        " UNION ALL SELECT 'in the timeline twice', message_id FROM timeline_message"
        "  GROUP BY conversation_id, message_id HAVING count(*) > 1",
    )


def check_inv_09(db: apsw.Connection) -> list[str]:
    """One record a call, and its id in the key table for the same content."""
    found = lines_of(db, "INV-09", "SELECT 'two records of', call_id FROM tool_call GROUP BY call_id HAVING count(*) > 1")
    keys = dict(rows_of(db, "SELECT digest, content_digest FROM used_key"))
    for number, conversation_id, call_id, content in rows_of(db, "SELECT number, conversation_id, call_id, content_digest FROM tool_call"):
        if keys.get(key_digest("call", conversation_id, call_id)) != content:
            found.append(f"INV-09: no key for call {number}")
    return found


_WATCHED: Mapping[str, tuple[str, Mapping[Any, Mapping[Any, StrEnum]]]] = {
    "capability_request": ("status", CAPABILITY),
    "inbox_row": ("state", INBOX),
    "instance": ("state", INSTANCE),
    "interaction": ("status", INTERACTION),
    "outbox_row": ("state", OUTBOX),
    "permission": ("state", PERMISSION),
    "tool_call": ("status", CALL),
}


def watch_inv_10(db: apsw.Connection) -> None:
    """Let every change of a status be recorded on this connection, for check_inv_10."""
    db.execute("CREATE TEMP TABLE IF NOT EXISTS history (machine TEXT, number INTEGER, old TEXT, new TEXT)")
    for table, (column, _) in _WATCHED.items():
        db.execute(
            f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_history AFTER UPDATE OF {column} ON {table} WHEN old.{column} <> new.{column}"
            f" BEGIN INSERT INTO history VALUES ('{table}', old.number, old.{column}, new.{column}); END"
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


def check_inv_10(db: apsw.Connection) -> list[str]:
    """Statuses move along their tables, and final ones never move, since the last look (needs watch_inv_10 on the same connection)."""
    found = []
    for table, number, old, new in rows_of(db, "SELECT machine, number, old, new FROM temp.history"):
        machine = _WATCHED[table][1]
        if new not in _reachable(machine, next(state for state in machine if state == old)):
            found.append(f"INV-10: {table} {number} went from {old} to {new}")
    db.execute("DELETE FROM temp.history")
    return found


check_inv_38 = check_inv_10  # an instance is one of these machines; that its id is never used again is of traces


def check_inv_15(db: apsw.Connection) -> list[str]:
    """An ended call has its audit row and its final outbox row; an open one has neither."""
    return lines_of(
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
    return lines_of(
        db,
        "INV-16",
        "SELECT 'several final rows for call', call_number FROM outbox_row WHERE kind = 'final' GROUP BY call_number HAVING count(*) > 1"
        " UNION ALL SELECT 'a final row for no call', call_number FROM outbox_row"
        "  WHERE kind = 'final' AND call_number NOT IN (SELECT number FROM tool_call)",
    )


def check_inv_20(db: apsw.Connection) -> list[str]:
    """Submitted and completed exist only with a result; completed only when the final row was acknowledged once."""
    return lines_of(
        db,
        "INV-20",
        "SELECT status, 'without a result:', number FROM tool_call WHERE status IN ('submitted', 'completed') AND result_cbor IS NULL"
        " UNION ALL SELECT 'a result of an unfinished call:', '', number FROM tool_call"
        "  WHERE status IN ('received', 'routing', 'waiting_for_app', 'running', 'rejected') AND result_cbor IS NOT NULL",
    )


def check_inv_21(db: apsw.Connection) -> list[str]:
    """An open call that has a place is with the present life of an instance that lives, or waits for it."""
    return lines_of(
        db,
        "INV-21",
        "SELECT 'call', c.number, c.status, 'waits for nobody' FROM tool_call AS c LEFT JOIN instance AS i ON i.instance_id = c.instance_id"
        "  WHERE c.status IN ('waiting_for_app', 'running') AND c.app_scope <> 'interaction' AND (i.state IS NULL"
        "   OR i.state IN ('stopping', 'stopped', 'failed') OR (i.state = 'suspended' AND NOT i.is_ending))"
        " UNION ALL SELECT 'call', c.number, c.status, 'is with an older life' FROM tool_call AS c"
        "  JOIN instance AS i ON i.instance_id = c.instance_id WHERE c.status IN ('waiting_for_app', 'running')"
        "   AND c.delivered_life NOT IN (0, i.life)"
        " UNION ALL SELECT 'call', number, status, 'runs and was never delivered' FROM tool_call"
        "  WHERE status = 'running' AND app_scope <> 'interaction' AND coalesce(delivered_life, 0) = 0",
    )


def check_inv_37(db: apsw.Connection) -> list[str]:
    """At most one instance in front, and it is the top of the focus stack; nothing ended stands in the stack."""
    return lines_of(
        db,
        "INV-37",
        "SELECT 'several in front:', count(*) FROM instance WHERE state = 'foreground' HAVING count(*) > 1"
        " UNION ALL SELECT 'in front and not on top:', instance_id FROM instance WHERE state = 'foreground'"
        "  AND instance_id IS NOT (SELECT value FROM focus, json_each(focus.instance_ids) ORDER BY key DESC LIMIT 1)"
        "  AND NOT (app_scope = 'chat' AND NOT EXISTS (SELECT 1 FROM focus, json_each(focus.instance_ids)))"
        " UNION ALL SELECT 'chat in the stack:', value FROM focus, json_each(focus.instance_ids)"
        "  WHERE value IN (SELECT instance_id FROM instance WHERE app_scope = 'chat')"
        " UNION ALL SELECT 'on top and behind:', instance_id FROM instance WHERE state = 'background' AND instance_id ="
        "  (SELECT value FROM focus, json_each(focus.instance_ids) ORDER BY key DESC LIMIT 1)"
        " UNION ALL SELECT 'ended or unknown in the stack:', value FROM focus, json_each(focus.instance_ids)"
        "  WHERE value NOT IN (SELECT instance_id FROM instance WHERE state NOT IN ('stopped', 'failed'))"
        " UNION ALL SELECT 'twice in the stack:', value FROM focus, json_each(focus.instance_ids) GROUP BY value HAVING count(*) > 1",
    )


def check_chain_of_inv_55(db: apsw.Connection) -> list[str]:
    """The chain of the audit holds from its first row to its last."""
    rows = (
        AuditRow(*row)
        for row in rows_of(
            db,
            "SELECT seq, at, speaker, view_id, command, cause, event, number, instance_id, code, count, previous_hash, hash"
            " FROM audit ORDER BY seq",
        )
    )
    # The kept head is a file of its own; without one every chain has that one problem more.
    return [f"INV-55: {problem}" for problem in check_chain(rows, None).problems if "kept" not in problem]


def check_inv_55(db: apsw.Connection) -> list[str]:
    """Every call, interaction, grant and ended instance has the audit row of its decision, and no cause comes after its effect."""
    return lines_of(
        db,
        "INV-55",
        "SELECT 'no audit row for call', number FROM tool_call WHERE number NOT IN (SELECT number FROM audit WHERE number IS NOT NULL)"
        " UNION ALL SELECT 'no audit row for the end of', instance_id FROM instance AS i WHERE state IN ('stopped', 'failed')"
        "  AND NOT EXISTS (SELECT 1 FROM audit WHERE instance_id = i.instance_id AND event = 'instance.' || i.state)"
        " UNION ALL SELECT 'no audit row for interaction', number FROM interaction"
        "  WHERE number NOT IN (SELECT number FROM audit WHERE number IS NOT NULL)"
        " UNION ALL SELECT 'no audit row for the end of interaction', number FROM interaction AS i"
        "  WHERE status IN ('submitted', 'cancelled', 'expired', 'failed')"
        "  AND NOT EXISTS (SELECT 1 FROM audit WHERE number = i.number AND event = 'interaction.' || i.status)"
        " UNION ALL SELECT 'no audit row for capability request', number FROM capability_request AS c"
        "  WHERE NOT EXISTS (SELECT 1 FROM audit WHERE number = c.number AND event = 'capability.' || c.status)"
        " UNION ALL SELECT 'a later cause than its effect:', seq FROM audit WHERE cause >= seq",
    )
