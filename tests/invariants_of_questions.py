"""More promises that rows alone can show: bounds, results, questions to the person, surfaces, codes. Rules: invariants_of_rows.py."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import apsw
import jsonschema

from kernel.core import limits
from kernel.core.records import decode_body
from lineup_sdk.protocol.codes import Code
from tests.invariants_of_rows import OPEN, lines_of, rows_of

_WORD = re.compile(r"[A-Za-z0-9_.:#+-]{1,160}")


def check_inv_08(db: apsw.Connection) -> list[str]:
    """What is open, held or kept stays within its bound."""
    bounds = {
        f"SELECT count(*) FROM tool_call WHERE status IN {OPEN}": limits.MAX_OPEN_CALLS,
        f"SELECT count(*) FROM tool_call WHERE status IN {OPEN} GROUP BY instance_id": limits.MAX_OPEN_CALLS,
        "SELECT count(*) FROM interaction WHERE status IN ('pending', 'presented')": limits.MAX_OPEN_INTERACTIONS,
        "SELECT count(*) FROM capability_request WHERE status IN ('asked', 'granted')": limits.MAX_OPEN_CAPABILITY_REQUESTS,
        "SELECT count(*) FROM instance WHERE state NOT IN ('stopped', 'failed') AND app_scope <> 'chat'": limits.MAX_INSTANCES,
        "SELECT count(*) FROM inbox_row WHERE state = 'deliverable' GROUP BY instance_id": limits.MAX_INBOX_ROWS,
        "SELECT sum(body_bytes) FROM inbox_row WHERE state = 'deliverable' GROUP BY instance_id": limits.MAX_INBOX_BYTES,
        "SELECT json_array_length(instance_ids) FROM focus": limits.MAX_FOCUS_DEPTH,
        "SELECT (SELECT count(*) FROM outbox_row WHERE state = 'pending') + "
        f"(SELECT count(*) FROM tool_call WHERE status IN {OPEN})": limits.MAX_OUTBOX_ROWS,
    }
    return [
        f"INV-08: {counted} is above {bound}: {sql}" for sql, bound in bounds.items() for (counted,) in rows_of(db, sql) if counted > bound
    ]


def check_inv_12(db: apsw.Connection) -> list[str]:
    """Every call that was taken is of a tool that was advertised, and its input fits, by another validator than the kernel's."""
    schemas = _kept_schemas(db, "input_schema")
    found = []
    for number, digest, given in rows_of(db, "SELECT number, descriptor_digest, input_cbor FROM tool_call WHERE status <> 'rejected'"):
        if not digest:
            found.append(f"INV-12: call {number} is of no tool that there was")
        elif digest in schemas and not schemas[digest].is_valid(decode_body(given)):
            found.append(f"INV-12: the input of call {number} does not fit")
    return found


def _kept_schemas(db: apsw.Connection, name: str) -> dict[str, Any]:
    kept = {digest: decode_body(document) for digest, document in rows_of(db, "SELECT digest, document_cbor FROM kept_descriptor")}
    return {digest: jsonschema.Draft202012Validator(document[name]) for digest, document in kept.items() if name in document}


def check_inv_14(db: apsw.Connection) -> list[str]:
    """Every result fits the output schema its call was accepted under, by another validator than the kernel's."""
    schemas = _kept_schemas(db, "output_schema")
    found = []
    for number, digest, result in rows_of(
        db, "SELECT number, descriptor_digest, result_cbor FROM tool_call WHERE result_cbor IS NOT NULL AND descriptor_digest <> ''"
    ):
        if digest not in schemas:
            found.append(f"INV-14: call {number} has a descriptor that was not kept")
        elif not schemas[digest].is_valid(decode_body(result)):
            found.append(f"INV-14: the result of call {number} does not fit")
    return found


def check_inv_22(db: apsw.Connection) -> list[str]:
    """An interaction has a result exactly when it has ended; what is open can still be answered."""
    return lines_of(
        db,
        "INV-22",
        "SELECT 'with a result and open:', number FROM interaction WHERE status IN ('pending', 'presented') AND result_cbor IS NOT NULL"
        " UNION ALL SELECT 'ended without a result:', number FROM interaction"
        "  WHERE status NOT IN ('pending', 'presented') AND result_cbor IS NULL"
        " UNION ALL SELECT 'ended with a clock:', number FROM interaction"
        "  WHERE status NOT IN ('pending', 'presented') AND deadline_at_ms IS NOT NULL"
        " UNION ALL SELECT 'answered by a view and not submitted:', number FROM interaction"
        "  WHERE answered_by_view IS NOT NULL AND status NOT IN ('submitted', 'completed')",
    )


def check_inv_23(db: apsw.Connection) -> list[str]:
    """An interaction and its call stand at the same place: open, submitted, completed, cancelled, expired or failed."""
    return lines_of(
        db,
        "INV-23",
        "SELECT 'interaction', i.number, i.status, 'and its call', c.status FROM interaction AS i JOIN tool_call AS c"
        "  ON c.number = i.call_number WHERE NOT CASE WHEN i.status IN ('pending', 'presented') THEN c.status = 'running'"
        "   ELSE i.status = c.status END"
        " UNION ALL SELECT 'interactive call', number, status, 'has no', 'interaction' FROM tool_call"
        "  WHERE app_scope = 'interaction' AND status IN ('running', 'submitted', 'completed')"
        "   AND number NOT IN (SELECT call_number FROM interaction WHERE call_number IS NOT NULL)",
    )


def check_inv_24(db: apsw.Connection) -> list[str]:
    """The owner of an App's question is that App's instance; the Agent's belong to chat and to no process; the kernel's to itself."""
    return lines_of(
        db,
        "INV-24",
        "SELECT 'a question of nobody:', number FROM interaction AS i WHERE source = 'miniapp_tool' AND NOT EXISTS (SELECT 1"
        "  FROM instance WHERE instance_id = i.owner_instance_id AND app_scope = i.owner_app_scope AND conversation_id = i.conversation_id)"
        " UNION ALL SELECT 'not owned by chat:', number FROM interaction WHERE source = 'agent_tool'"
        "  AND (owner_app_scope <> 'chat' OR owner_instance_id IS NOT NULL OR call_number IS NULL)"
        " UNION ALL SELECT 'the kernel asks for somebody:', number FROM interaction WHERE source = 'runtime_policy'"
        "  AND (owner_app_scope <> 'runtime' OR owner_instance_id IS NOT NULL OR call_number IS NOT NULL OR kind <> 'confirm')"
        " UNION ALL SELECT 'asked twice by the kernel about session', app_session_id FROM interaction WHERE source = 'runtime_policy'"
        "  AND status IN ('pending', 'presented') GROUP BY app_session_id HAVING count(*) > 1"
        " UNION ALL SELECT 'a foreign parent:', i.number FROM interaction AS i JOIN tool_call AS c ON c.number = i.parent_call_number"
        "  WHERE c.app_scope <> i.owner_app_scope",
    )


def check_inv_27(db: apsw.Connection) -> list[str]:
    """A notice that was accepted has its card in the timeline, one card, and no answer."""
    cards: dict[str, int] = {}
    for (body,) in rows_of(db, "SELECT body_cbor FROM timeline_message WHERE type = 'lineup.v1.interaction'"):
        name = decode_body(body)["interaction_id"]
        cards[name] = cards.get(name, 0) + 1
    found = [f"INV-27: {count} cards of {name}" for name, count in cards.items() if count > 1]
    for name, result in rows_of(
        db,
        "SELECT interaction_id, result_cbor FROM interaction WHERE kind = 'notice' AND source = 'agent_tool'"
        " AND status IN ('submitted', 'completed')",
    ):
        if name not in cards:
            found.append(f"INV-27: {name} was accepted without a card")
        if decode_body(result) != {"outcome": "accepted"}:
            found.append(f"INV-27: {name} ended as something else")
    return found


def check_inv_51(db: apsw.Connection) -> list[str]:
    """A surface is its snapshot and every patch since; none is missing, none is ahead."""
    return lines_of(
        db,
        "INV-51",
        "SELECT 'no snapshot of surface', number FROM surface WHERE NOT EXISTS (SELECT 1 FROM surface_snapshot"
        "  WHERE surface_number = surface.number AND version = surface.snapshot_version)"
        " UNION ALL SELECT 'patches missing of surface', number FROM surface WHERE version - snapshot_version <> (SELECT count(*)"
        "  FROM surface_patch WHERE surface_number = surface.number AND version > surface.snapshot_version"
        "  AND version <= surface.version)"
        " UNION ALL SELECT 'patches ahead of surface', number FROM surface WHERE EXISTS (SELECT 1 FROM surface_patch"
        "  WHERE surface_number = surface.number AND version > surface.version)",
    )


def check_bytes_of_inv_51(db: apsw.Connection, artifacts: Path) -> list[str]:
    """Every artifact that is not marked lost has its bytes, as many and with the digest that its row says. artifacts: their folder."""
    found = []
    for number, sha256, size in rows_of(db, "SELECT number, sha256, size FROM artifact WHERE is_lost = 0"):
        kept = artifacts / sha256
        data = kept.read_bytes() if kept.exists() else b""
        if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
            found.append(f"INV-51: the bytes of artifact {number} are not what its row says")
    return found


def check_inv_56(db: apsw.Connection) -> list[str]:
    """An audit row holds numbers, codes and ids the kernel made: words, never sentences."""
    found = []
    for seq, *words in rows_of(db, "SELECT seq, view_id, command, event, instance_id, code FROM audit"):
        found += [f"INV-56: audit row {seq} holds text" for word in words if word is not None and not _WORD.fullmatch(word)]
    return found


def check_inv_57(db: apsw.Connection) -> list[str]:
    """Every code that is stored is in the closed list."""
    known = {code.value for code in Code}
    found = rows_of(
        db,
        "SELECT DISTINCT error_code FROM tool_call UNION SELECT error_code FROM interaction UNION SELECT error FROM instance"
        " UNION SELECT error_code FROM capability_request UNION SELECT code FROM audit",
    )
    return [f"INV-57: {code} is no code" for (code,) in found if code is not None and code not in known]
