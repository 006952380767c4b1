"""The CapabilityView of a DictView: reads over its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.core.capability_records import Acceptance, AttachedView, AttachedViews, CapabilityRequest, Permission
from kernel.core.machines import CAPABILITY_OPEN, PermissionState

KEYS: Mapping[type, str] = {Acceptance: "app_scope", CapabilityRequest: "request_id", Permission: "number"}


class DictCapabilities:
    """See the head of the file."""

    def __init__(self, tables: Mapping[type, Mapping[Any, Any]]) -> None:
        self._tables = tables

    def request(self, request_id: str) -> CapabilityRequest | None:
        return self._tables[CapabilityRequest].get(request_id)

    def open_requests(self) -> Sequence[CapabilityRequest]:
        found = (one for one in self._tables[CapabilityRequest].values() if one.status in CAPABILITY_OPEN)
        return sorted(found, key=lambda one: one.number)

    def permission(self, app_scope: str, capability: str) -> Permission | None:
        return next((one for one in self.permissions() if (one.app_scope, one.capability) == (app_scope, capability)), None)

    def permissions(self) -> Sequence[Permission]:
        found = (one for one in self._tables[Permission].values() if one.state is PermissionState.ACTIVE)
        return sorted(found, key=lambda one: one.number)

    def acceptance(self, app_scope: str) -> Acceptance | None:
        return self._tables[Acceptance].get(app_scope)

    def views(self) -> Sequence[AttachedView]:
        attached = self._tables[AttachedViews].get(None)
        return attached.views if attached else ()
