"""The Inventory (SPEC 4.4, 4.5): which tools the Agent may call now, under which revision, and what changed since. Pure.

Use: `publish(previous, epoch, manifests, enablement)` at every start and after every change of enablement. Store the result's
`published` and `fingerprint()`: a later start gives the first back, and `difference` takes any stored fingerprint.
Rules:
1. Content comes from Manifests and enablement only, never from which views or Agents are attached, in order of tool id.
2. The revision `<epoch>.<n>` stays exactly as long as the content stays; else n grows by one. It never repeats and never goes
   back: content that returns after a change gets a new number, and a new epoch counts on.
3. The digest covers the content, not the revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kernel.core.manifest import SYSTEM_SCOPE, Manifest, ToolDescriptor
from kernel.core.schema import digest_of
from lineup_sdk.protocol.messages import JsonObject

ALWAYS_ENABLED: Final = frozenset({SYSTEM_SCOPE})  # app_scopes the person cannot switch off


@dataclass(frozen=True, slots=True)
class Enablement:
    """What the person switched off: app_scopes and tool ids, in one set (a tool id has a dot, an app_scope has none)."""

    disabled: frozenset[str] = frozenset()

    def is_enabled(self, app_scope: str, tool_id: str | None = None) -> bool:
        """Say whether the app, or with `tool_id` that tool of it, is on. A tool of a disabled app is off."""
        is_app_on = app_scope in ALWAYS_ENABLED or app_scope not in self.disabled
        return is_app_on and tool_id not in self.disabled


@dataclass(frozen=True, slots=True)
class AdvertisedTool:
    """A tool the Agent may call now."""

    descriptor: ToolDescriptor

    @property
    def id(self) -> str:
        """The tool's id."""
        return self.descriptor.id

    @property
    def digest(self) -> str:
        """The digest of its descriptor."""
        return self.descriptor.digest

    @property
    def content(self) -> JsonObject:
        """The descriptor as the Agent sees it."""
        return self.descriptor.content


@dataclass(frozen=True)
class Content:
    """What an Inventory advertises, without its revision. Tools are in order of id, capabilities in order of name."""

    tools: tuple[AdvertisedTool, ...]
    capabilities: tuple[str, ...]

    @cached_property
    def document(self) -> JsonObject:
        """The content as the Agent sees it."""
        return {"tools": [tool.content for tool in self.tools], "capabilities": list(self.capabilities)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the document."""
        return digest_of(self.document)


@dataclass(frozen=True, slots=True)
class PublishedRevision:
    """What the store keeps of the newest Inventory: enough to know whether the next one differs."""

    epoch: str
    number: int
    digest: str


@dataclass(frozen=True)
class Inventory:
    """One published Inventory: the snapshot that both listing and dispatch use."""

    epoch: str
    number: int
    advertised: Content

    @property
    def revision(self) -> str:
        """`<epoch>.<n>`, as every invoke carries it."""
        return f"{self.epoch}.{self.number}"

    @property
    def tools(self) -> tuple[AdvertisedTool, ...]:
        """The advertised tools in order of id."""
        return self.advertised.tools

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The visible capabilities in order of name."""
        return self.advertised.capabilities

    @property
    def content(self) -> JsonObject:
        """What the Agent sees, without the revision. Not to be changed."""
        return self.advertised.document

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the content only."""
        return self.advertised.digest

    @property
    def published(self) -> PublishedRevision:
        """What to store, together with the fingerprint."""
        return PublishedRevision(self.epoch, self.number, self.digest)

    def tool(self, tool_id: str) -> ToolDescriptor | None:
        """Return the descriptor of an advertised tool; None = `tool_not_advertised`."""
        return self._by_id.get(tool_id)

    def fingerprint(self) -> dict[str, str]:
        """Return tool id -> digest: stored per revision, so that any revision an Agent still holds can be compared."""
        return {tool.id: tool.digest for tool in self.tools}

    @cached_property
    def _by_id(self) -> dict[str, ToolDescriptor]:
        return {tool.id: tool.descriptor for tool in self.tools}


def advertise(manifests: Mapping[str, Manifest], enablement: Enablement) -> Content:
    """Return what is on: every enabled tool of every enabled app, and the capabilities those apps request."""
    enabled = [manifest for manifest in manifests.values() if enablement.is_enabled(manifest.app_scope)]
    tools = [tool for manifest in enabled for tool in manifest.tools if enablement.is_enabled(tool.app_scope, tool.id)]
    capabilities = {name for manifest in enabled for name in manifest.requested_capabilities}
    return Content(tuple(AdvertisedTool(tool) for tool in sorted(tools, key=lambda tool: tool.id)), tuple(sorted(capabilities)))


def publish(
    previous: Inventory | PublishedRevision | None, epoch: str, manifests: Mapping[str, Manifest], enablement: Enablement
) -> Inventory:
    """Return the Inventory in force: under the previous revision when nothing changed, else under the next one.

    `previous` is the newest one ever published in this home, None at the very first start. Source: SPEC 4.4.
    """
    content = advertise(manifests, enablement)
    if previous is None:
        return Inventory(epoch, 1, content)
    is_same = (previous.epoch, previous.digest) == (epoch, content.digest)
    return Inventory(epoch, previous.number if is_same else previous.number + 1, content)


def difference(old: Mapping[str, str], new: Inventory, tool_id: str) -> JsonObject:
    """Say what changed since an older fingerprint, so that the Agent mends its call in one step.

    `old` is empty when that revision was never published here. this_tool is unchanged, changed, added, removed or unknown (in
    neither).
    """
    current = new.fingerprint()
    return {
        "current": new.revision,
        "added": sorted(current.keys() - old.keys()),
        "removed": sorted(old.keys() - current.keys()),
        "changed": sorted(name for name in current.keys() & old.keys() if current[name] != old[name]),
        "this_tool": _fate(old.get(tool_id), current.get(tool_id)),
    }


def _fate(old_digest: str | None, new_digest: str | None) -> str:
    match old_digest, new_digest:
        case None, None:
            return "unknown"
        case None, _:
            return "added"
        case _, None:
            return "removed"
        case _:
            return "unchanged" if old_digest == new_digest else "changed"
