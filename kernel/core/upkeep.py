"""Backup of a running kernel, and what a restore means for what was open (SPEC 4.6, 12).

Rules:
1. A restored database is older than the world: a call it holds open may long have ended. It is not run again; it ends as interrupted,
   though the Agent may have another end of it from after the backup (decision 0023).
2. A backup is asked for in one turn and reported in another; both leave an audit row without its place.
"""

from __future__ import annotations

from kernel.core import calls, interaction_ends, machines
from kernel.core.decision import Decision, Detail, Draft, Origin, Rejected, Stamp, StartWorker, View
from kernel.core.events import BackupEnded, StateRestored, StoreRecovered
from kernel.core.machines import CallEvent
from kernel.core.runtime import SCOPE as RUNTIME_SCOPE
from kernel.core.surface_effects import SendToView
from kernel.core.upkeep_effects import MakeBackup
from kernel.protocol.host_upkeep import BackupMade, BackupMake
from lineup_sdk.protocol.codes import Code


def make_backup(view: View, origin: Origin, stamp: Stamp, command: BackupMake) -> Decision:
    """Begin a backup into a new folder of the kernel's machine. Raises: Rejected(limit_exceeded) for what is no absolute path."""
    draft = Draft(view, origin, stamp)
    if not command.path.startswith("/") or "\0" in command.path:
        raise Rejected(Code.LIMIT_EXCEEDED, Detail(pointer="/path", expected="an absolute path"))
    draft.audit("backup.begun")
    draft.effect(MakeBackup(path=command.path, view_id=origin.view_id))
    return draft.decision()


def backup_ended(view: View, origin: Origin, stamp: Stamp, command: BackupEnded) -> Decision:
    """Tell the asking view how its backup ended."""
    draft = Draft(view, origin, stamp)
    draft.audit("backup.made" if command.code is None else "backup.failed", code=command.code)
    code = command.code.value if command.code is not None else None
    said = BackupMade(accepted=command.code is None, code=code, detail=command.detail, facts=command.facts)
    draft.effect(SendToView(view_id=command.view_id, message=said))
    return draft.decision()


def state_restored(view: View, origin: Origin, stamp: Stamp, command: StateRestored) -> Decision:
    """End what the backup holds open: before anything is brought back."""
    draft = Draft(view, origin, stamp)
    held = [call for instance in view.current_instances() for call in view.open_calls(instance.instance_id)]
    questions = view.open_calls_of_app(interaction_ends.SCOPE)
    for found in (*view.unrouted_calls(), *held, *questions):
        call = draft.call(found.number) or found
        if call.status in machines.CALL_OPEN and call.app_scope != RUNTIME_SCOPE:
            calls.finish(draft, call, CallEvent.FAIL, code=Code.INTERRUPTED, by_worker=True)
    return _without_starts(draft.decision())


def _without_starts(decision: Decision) -> Decision:
    """An end may give another App the front, and so a process; but it is Booted, next, that gives processes: two would live at once."""
    return decision._replace(effects=tuple(effect for effect in decision.effects if not isinstance(effect, StartWorker)))


def store_recovered(view: View, origin: Origin, stamp: Stamp, command: StoreRecovered) -> Decision:
    """Write down how much was refused while the disk was full."""
    draft = Draft(view, origin, stamp)
    draft.audit("store.recovered", code=Code.STORE_FULL, count=command.refused)
    return draft.decision()
