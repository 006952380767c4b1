"""A host without a screen: for scripts and tests. Everything a person can do in a view, as plain async calls.

Use: `async with open_headless(Launcher(home)) as host: await host.send_text("hello")`.
Rules:
1. It is a view like any other: the kernel sees no difference, and it may come and go.
2. Waits have no deadline of their own; put them under trio.fail_after.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from hosts.launch import Launcher
from hosts.link import LinkLost
from hosts.mirror import ENDED_STATUSES, Mirror
from hosts.providers import Providers
from hosts.view import View
from kernel.protocol.host import (
    AppClose,
    AppDisable,
    AppEnable,
    CallCancel,
    CallsList,
    CallsShow,
    FocusRaise,
    InstancesList,
    InventoryShow,
    KernelStatus,
    KernelStop,
    LogsRead,
    MessageSend,
)
from kernel.protocol.host_capabilities import ConsentAnswer, PermissionsList, PermissionsReset, PermissionsRevoke
from kernel.protocol.host_interactions import InteractionAnswer, InteractionsList
from kernel.protocol.host_sessions import AppOpen, SessionsContinue, SessionsList
from lineup_sdk.protocol.messages import JsonObject

_T = TypeVar("_T")


class Headless:
    """See the head of the file. Raises everywhere: Refused(code, detail), LinkLost."""

    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def mirror(self) -> Mirror:
        """What the kernel has told this view so far."""
        return self._view.mirror

    @property
    def restarts(self) -> int:
        """How often the link was lost and opened again."""
        return self._view.restarts

    async def send_text(self, text: str) -> str:
        """Say something to the Agent; returns the message_id."""
        return str((await self._view.request(MessageSend(text=text)))["message_id"])

    async def cancel(self, call_id: str) -> None:
        """Cancel a call as the person. Raises: Refused(call_not_found, call_already_final)."""
        await self._view.request(CallCancel(call_id=call_id))

    async def close_app(self, instance_id: str) -> str | None:
        """Close an instance; the id of the kernel's question when it has open calls: a confirm to answer."""
        asked = (await self._view.request(AppClose(instance_id=instance_id))).get("asked")
        return None if asked is None else str(asked)

    async def raise_app(self, instance_id: str) -> None:
        """Bring an instance to the front; `chat` is the conversation."""
        await self._view.request(FocusRaise(instance_id=instance_id))

    async def enable(self, name: str) -> str:
        """Switch an app or a tool on; returns the new revision."""
        return str((await self._view.request(AppEnable(name=name)))["revision"])

    async def disable(self, name: str) -> str:
        """Switch an app or a tool off; returns the new revision."""
        return str((await self._view.request(AppDisable(name=name)))["revision"])

    async def calls(self, state: str | None = None, limit: int = 50) -> list[JsonObject]:
        """List calls, newest first. state: open | ended | one status."""
        return list((await self._view.request(CallsList(state=state, limit=limit)))["calls"])

    async def show_call(self, call_id: str) -> JsonObject:
        """Return a whole call with input, result and outbox rows. Raises: Refused(call_not_found)."""
        return await self._view.request(CallsShow(call_id=call_id))

    async def instances(self) -> list[JsonObject]:
        """List the instances."""
        return list((await self._view.request(InstancesList()))["instances"])

    async def inventory(self) -> JsonObject:
        """Return the inventory as the Agent sees it."""
        return await self._view.request(InventoryShow())

    async def logs(self, instance_id: str) -> str:
        """Return the log ring of an instance."""
        return str((await self._view.request(LogsRead(instance_id=instance_id)))["text"])

    async def status(self) -> JsonObject:
        """Return what the kernel says of itself."""
        return await self._view.request(KernelStatus())

    async def open_app(self, app_scope: str) -> None:
        """Open an App and bring it to the front. Raises: Refused(app_instance_not_found, app_disabled, lifecycle_denied, …)."""
        await self._view.request(AppOpen(app_scope=app_scope))

    async def sessions(self, limit: int = 50) -> list[JsonObject]:
        """List App sessions, newest first."""
        return list((await self._view.request(SessionsList(limit=limit)))["sessions"])

    async def continue_session(self, app_session_id: str) -> str:
        """Go on with a closed session; returns the id of the new one. Raises: as open_app."""
        return str((await self._view.request(SessionsContinue(app_session_id=app_session_id)))["app_session_id"])

    async def interactions(self, state: str | None = None, limit: int = 50) -> list[JsonObject]:
        """List questions and notices, newest first. state: open | ended | one status."""
        return list((await self._view.request(InteractionsList(state=state, limit=limit)))["interactions"])

    async def answer(self, interaction_id: str, given: JsonObject) -> None:
        """Answer what this view shows: {action_ids} | {approved} | {fields} | {declined}.

        Raises: Refused(answer_invalid, interaction_already_final); KeyError for one this view does not show.
        """
        shown = str(self.mirror.interactions[interaction_id]["shown_digest"])
        await self._view.request(InteractionAnswer(interaction_id=interaction_id, answer=given, shown_digest=shown))

    async def wait_question(self, call_id: str) -> JsonObject:
        """Wait until the question of a call is presented; returns its summary."""

        def find(mirror: Mirror) -> JsonObject | None:
            asked = (one for one in mirror.interactions.values() if one.get("call_id") == call_id)
            return next((one for one in asked if one["status"] != "pending"), None)

        return await self.wait_until(find)

    async def answer_consent(self, request_id: str, decision: str) -> None:
        """Answer a consent question that waits. decision: once | while_open | always | deny | never.

        Raises: Refused(capability_denied) when it waits no more; KeyError for one this view does not show.
        """
        shown = str(self.mirror.consents[request_id]["shown"])
        await self._view.request(ConsentAnswer(request_id=request_id, decision=decision, shown=shown))

    async def permissions(self) -> list[JsonObject]:
        """List the standing answers about Apps and capabilities."""
        return list((await self._view.request(PermissionsList()))["permissions"])

    async def revoke_permission(self, app_scope: str, capability: str) -> None:
        """Take one back. Raises: Refused(capability_denied) when there is none."""
        await self._view.request(PermissionsRevoke(app_scope=app_scope, capability=capability))

    async def reset_permissions(self, app_scope: str | None = None) -> int:
        """Take those of one App back, or all; returns how many."""
        return int((await self._view.request(PermissionsReset(app_scope=app_scope)))["revoked"])

    async def stop_kernel(self) -> None:
        """End the kernel."""
        await self._view.request(KernelStop())

    async def wait_until(self, find: Callable[[Mirror], _T | None]) -> _T:
        """Wait until `find` returns something for the current mirror. Raises: LinkLost when the kernel was stopped before."""
        while True:
            found = find(self._view.mirror)
            if found is not None:
                return found
            if self._view.phase == "ended":
                raise LinkLost
            await self._view.wait_change()

    async def wait_ended(self) -> None:
        """Wait until the kernel has been stopped."""
        while self._view.phase != "ended":
            await self._view.wait_change()

    async def wait_call(self, call_id: str, *statuses: str) -> JsonObject:
        """Wait until a call has one of the statuses (default: any outcome); returns its summary."""
        wanted = frozenset(statuses) or ENDED_STATUSES

        def find(mirror: Mirror) -> JsonObject | None:
            call = mirror.call(call_id)
            return call if call is not None and call["status"] in wanted else None

        return await self.wait_until(find)


@asynccontextmanager
async def open_headless(launcher: Launcher, label: str = "headless", providers: Providers | None = None) -> AsyncIterator[Headless]:
    """Attach (or start the kernel) and hold the view for the block; the kernel goes on after it."""
    view = View(launcher, label, providers)
    async with trio.open_nursery() as nursery:
        await nursery.start(view.run)
        yield Headless(view)
        nursery.cancel_scope.cancel()
