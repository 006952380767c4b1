"""Every code that can leave the kernel: one closed list (SPEC 15).

Rules:
1. A code is stable for ever and never reused for another meaning.
2. The list holds what some path of the tree can raise; a new code comes with a golden case.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """A stable reason: why something was refused, or how it ended."""

    # --- why a tool call was refused
    INVENTORY_REVISION_MISMATCH = "inventory_revision_mismatch"  # The caller listed tools under another revision.
    TOOL_NOT_ADVERTISED = "tool_not_advertised"  # The current inventory has no such tool.
    TOOL_INPUT_INVALID = "tool_input_invalid"  # The input does not fit the tool's input schema.
    TOOL_OUTPUT_INVALID = "tool_output_invalid"  # The result does not fit the output schema; the call stays open.
    APP_DISABLED = "app_disabled"  # The person switched this app or tool off.
    APP_INSTANCE_NOT_FOUND = "app_instance_not_found"  # No such instance, or none of that app is running.
    APP_SCOPE_MISMATCH = "app_scope_mismatch"  # The named app_scope is not the tool's own.
    MODE_UNAVAILABLE = "mode_unavailable"  # The conversation has no such mode; im is the one there is.
    LIFECYCLE_DENIED = "lifecycle_denied"  # Policy does not allow this change of focus or this close now.
    CAPABILITY_DENIED = "capability_denied"  # The asker does not hold the grant this message needs.
    CAPABILITY_UNSUPPORTED = "capability_unsupported"  # No host can do this, or none that is attached.
    CALL_ALREADY_FINAL = "call_already_final"  # The call has its one outcome; nothing can change it.
    CALL_ID_CONFLICT = "call_id_conflict"  # The call_id was used before for another content.
    CALL_NOT_FOUND = "call_not_found"  # The asker owns no call of that id.
    INTERACTION_ALREADY_FINAL = "interaction_already_final"  # The interaction has its one outcome; nothing can change it.
    INTERACTION_NOT_FOUND = "interaction_not_found"  # The asker has no interaction of that id.
    USE_DISMISS = "use_dismiss"  # An interactive call is ended by interaction.dismiss, not by a cancel.
    ANSWER_INVALID = "answer_invalid"  # The answer does not fit the question that was shown.
    TOPIC_NOT_SUBSCRIBED = "topic_not_subscribed"  # The app's Manifest does not subscribe to that topic.
    SURFACE_UNAVAILABLE = "surface_unavailable"  # No view can show a surface, or there is no such surface to show.
    STALE_MOUNT = "stale_mount"  # Another view shows this surface now, or this mount has ended.
    VERSION_CONFLICT = "version_conflict"  # The change was made on another version of the surface than the current one.
    ARTIFACT_NOT_FOUND = "artifact_not_found"  # The asker owns no artifact of that id.
    SIZE_MISMATCH = "size_mismatch"  # The bytes are not as many as were announced.
    DIGEST_MISMATCH = "digest_mismatch"  # The bytes are others than were announced.

    # --- how a call ended without a result
    TOOL_FAILED = "tool_failed"  # The app reported failure.
    CANCELLED = "cancelled"  # The Agent, the person or the app cancelled it.
    INTERRUPTED = "interrupted"  # It died half done and may not run twice.
    EXPIRED = "expired"  # Its time ran out.
    APP_CRASHED = "app_crashed"  # The app died too often while working on it.

    # --- envelopes and doors
    UNSUPPORTED_TYPE = "unsupported_type"  # The envelope type is unknown; it was stored as inert text.
    UNSUPPORTED_VERSION = "unsupported_version"  # The wire or envelope version is unknown.
    DOOR_BUSY = "door_busy"  # Another Agent is connected.
    LIMIT_EXCEEDED = "limit_exceeded"  # A bound of SPEC 16 was reached.
    PROTOCOL_VIOLATION = "protocol_violation"  # The peer broke the wire; its channel is closed.
    MANIFEST_INVALID = "manifest_invalid"  # A Manifest or schema is outside the fixed form.
    UNAVAILABLE = "unavailable"  # What was asked for is not there now: the kernel was stopped.
    UNKNOWN = "unknown"  # The kernel cannot say how it ended.

    # --- store
    STORE_CORRUPT = "store_corrupt"  # The database fails its checks.
    STORE_FOREIGN = "store_foreign"  # The file belongs to another program or user.
    STORE_NEWER = "store_newer"  # The file was written by a newer version.
    STORE_LOCKED = "store_locked"  # Another kernel holds this home.
    STORE_FULL = "store_full"  # The disk is full.

    # --- sandbox
    SANDBOX_INCOMPLETE = "sandbox_incomplete"  # A layer of the seal is missing on this machine; no worker runs.
