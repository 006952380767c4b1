"""The kernel's own bounds (SPEC 6.6, 8, 16). Each has a test that crosses it."""

from __future__ import annotations

# --- calls
MAX_OPEN_CALLS = 1024
MAX_OPEN_CALLS_OF_INSTANCE = 64
MAX_ATTEMPTS = 3  # crashes of its worker: at this one the call fails
DEFAULT_TIMEOUT_MS = 60_000
MAX_TIMEOUT_MS = 24 * 3600 * 1000
CANCEL_GRACE_MS = 2_000
CANCEL_GRANTED_MS = 30_000
DUE_CALLS_A_TURN = 100

# --- questions to the person
MAX_OPEN_INTERACTIONS = 256
CLOSE_QUESTION_MS = 10 * 60 * 1000  # how long the kernel asks whether an App at work may be closed

# --- capabilities
MAX_OPEN_CAPABILITY_REQUESTS = 64
MAX_OPEN_CAPABILITY_REQUESTS_OF_INSTANCE = 8
MAX_CAPABILITY_REASON = 300  # code points
HOST_ACTION_MS = 30_000  # then nobody knows how it ended

# --- instances
MAX_INSTANCES = 64
MAX_FOCUS_DEPTH = 32
CRASH_WINDOW_MS = 60_000
MAX_CRASHES_IN_WINDOW = 3  # the next one fails the instance
RESTART_DELAYS_MS = (0, 1_000, 2_000)
PERSON_ACT_WINDOW_MS = 5_000
STOP_DEADLINE_MS = 2_000
IDLE_AFTER_MS = 10 * 60 * 1000  # in the background, without an open call and unused: then it is suspended

# --- inbox
MAX_INBOX_ROWS = 1_000
MAX_INBOX_BYTES = 16 * 1024 * 1024
INBOX_WINDOW = 16  # delivered and not yet acknowledged at one time
MAX_MESSAGE_CRASHES = 2  # then the row is parked

# --- surfaces and artifacts
MAX_SURFACE_MEMBERS = 65_536  # members of objects in a state, at every depth: each costs memory whatever its size
COMPACT_PATCH_BYTES = 256 * 1024  # patches together as big as this, and as the state, are folded into a snapshot
MAX_PATCHES = 4_096  # as many at the latest
MAX_EVENT_NAME = 64
MAX_ARTIFACTS_OF_SESSION = 1_000
MAX_ARTIFACT_BYTES_OF_SESSION = 256 * 1024 * 1024

# --- outbox and timeline
MAX_OUTBOX_ROWS = 10_000

# --- retention
SWEPT_A_TURN = 200

# --- ids and tokens that come from outside
MAX_ID_LENGTH = 128
