-- The database of one LINEUP_HOME, version 1 (SPEC 4-9, 11, 16, 17).
--
-- Rules:
-- 1. One table a record kind, its columns in the order of the record's fields; a Deadline is two columns (boot id, boottime in ms).
-- 2. Wall times are whole microseconds since 1970 UTC. A body (*_cbor) is deterministic CBOR and may expire; used_key never does.
-- 3. A closed list of words is a CHECK here and an enum in the core; a test holds the two against each other. In what a call writes it
--    is spelled with OR: for an IN of more than two words SQLite makes a table of them at every statement, a third of its cost.
-- 4. What is asked in a turn has an index; partial ones cover only what is open, so they stay small for ever. Open calls and current
--    instances are held in memory (kernel/store_memory.py) and need theirs only at a start. An index over random ids costs a page of its
--    own at every insert: a call is found by its id through used_key, a pending outbox row through memory, the row of a text by number.
-- 5. Only kernel/migrations.py changes this shape, and it appends.

CREATE TABLE kernel (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  epoch TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;

-- Written by every transaction: what survives of the clock and of the counter.
CREATE TABLE clock (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  next_number INTEGER NOT NULL,
  oldest_open INTEGER NOT NULL, -- no open call has a smaller number: a start need not read what ended before
  boot_id TEXT NOT NULL,
  boottime_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE tool_call (
  number INTEGER PRIMARY KEY,
  call_id TEXT NOT NULL,
  tool_id TEXT NOT NULL,
  inventory_revision TEXT NOT NULL,
  descriptor_digest TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source = 'agent' OR source = 'person' OR source = 'demo'),
  app_scope TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  content_digest BLOB NOT NULL,
  input_cbor BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status = 'received' OR status = 'routing' OR status = 'waiting_for_app' OR status = 'running' OR
    status = 'submitted' OR status = 'completed' OR status = 'failed' OR status = 'cancelled' OR status = 'expired' OR status = 'rejected'),
  updated_at INTEGER NOT NULL,
  instance_id TEXT,
  attempts INTEGER NOT NULL CHECK (attempts >= 0),
  delivered_life INTEGER,
  raised INTEGER NOT NULL CHECK (raised IN (0, 1)),
  deadline_boot_id TEXT,
  deadline_at_ms INTEGER,
  cancel TEXT NOT NULL CHECK (cancel = 'none' OR cancel = 'asked' OR cancel = 'acknowledged'),
  cancel_boot_id TEXT,
  cancel_at_ms INTEGER,
  human_waits INTEGER NOT NULL CHECK (human_waits >= 0),
  held_ms INTEGER,
  progress_cbor BLOB,
  progress_window_ms INTEGER NOT NULL,
  progress_count INTEGER NOT NULL,
  result_cbor BLOB,
  error_code TEXT,
  CHECK ((deadline_boot_id IS NULL) = (deadline_at_ms IS NULL)),
  CHECK ((cancel_boot_id IS NULL) = (cancel_at_ms IS NULL)),
  CHECK (status <> 'submitted' OR result_cbor IS NOT NULL),
  CHECK (status NOT IN ('failed', 'rejected') OR error_code IS NOT NULL)
) STRICT;
-- Open calls are read from memory, successful ones are most of all: neither needs an index, and a call's way stays cheap.
CREATE INDEX tool_call_by_status ON tool_call (status, number)
  WHERE status = 'failed' OR status = 'cancelled' OR status = 'expired' OR status = 'rejected';

CREATE TABLE instance (
  number INTEGER PRIMARY KEY,
  instance_id TEXT NOT NULL UNIQUE,
  app_scope TEXT NOT NULL,
  app_version TEXT NOT NULL,
  bundle_digest TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  app_session_id TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('starting', 'foreground', 'background', 'suspended', 'stopping', 'stopped', 'failed')),
  life INTEGER NOT NULL CHECK (life >= 0),
  parent_instance_id TEXT,
  tools_subscribed INTEGER NOT NULL CHECK (tools_subscribed IN (0, 1)),
  inbox_subscribed INTEGER NOT NULL CHECK (inbox_subscribed IN (0, 1)),
  crash_boot_id TEXT NOT NULL,
  crashes_ms TEXT NOT NULL CHECK (json_valid(crashes_ms)),
  act_boot_id TEXT NOT NULL,
  act_ms INTEGER NOT NULL,
  close_reason TEXT,
  stopped_at INTEGER,
  error TEXT,
  is_ending INTEGER NOT NULL CHECK (is_ending IN (0, 1)),
  ui_subscribed_life INTEGER
) STRICT;
CREATE INDEX instance_of_session ON instance (app_session_id, number);
CREATE INDEX instance_current ON instance (app_scope, number)
  WHERE state IN ('starting', 'foreground', 'background', 'suspended', 'stopping');

CREATE TABLE focus (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  instance_ids TEXT NOT NULL CHECK (json_valid(instance_ids))
) STRICT;

CREATE TABLE app_session (
  number INTEGER PRIMARY KEY,
  app_session_id TEXT NOT NULL UNIQUE,
  app_scope TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  closed_at INTEGER,
  continues TEXT
) STRICT;
CREATE INDEX app_session_open ON app_session (app_scope, number) WHERE closed_at IS NULL;

CREATE TABLE saved_state (
  app_session_id TEXT PRIMARY KEY,
  state_cbor BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE inbox_row (
  number INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL,
  app_scope TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  body_cbor BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('deliverable', 'parked', 'acknowledged')),
  delivery_count INTEGER NOT NULL CHECK (delivery_count >= 0),
  delivered_life INTEGER,
  crash_count INTEGER NOT NULL CHECK (crash_count >= 0),
  body_bytes INTEGER NOT NULL,
  UNIQUE (message_id, conversation_id)
) STRICT;
-- Covers the size of an inbox without touching a body.
CREATE INDEX inbox_row_parked ON inbox_row (number) WHERE state = 'parked';
CREATE INDEX inbox_row_held ON inbox_row (instance_id, number, state, body_bytes) WHERE state IN ('deliverable', 'parked');

CREATE TABLE outbox_row (
  number INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL,
  destination TEXT NOT NULL CHECK (destination = 'agent' OR destination = 'person' OR destination = 'demo'),
  conversation_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'final' OR kind = 'progress' OR kind = 'refusal' OR kind = 'message' OR kind = 'inventory'),
  envelope_cbor BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  call_number INTEGER,
  state TEXT NOT NULL CHECK (state = 'pending' OR state = 'acknowledged' OR state = 'refused'),
  refused_code TEXT,
  CHECK (kind <> 'final' OR call_number IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX outbox_row_final ON outbox_row (call_number) WHERE kind = 'final';
CREATE INDEX outbox_row_pending ON outbox_row (destination, number) WHERE state = 'pending';
CREATE INDEX outbox_row_replaceable ON outbox_row (kind, call_number, destination)
  WHERE state = 'pending' AND kind IN ('progress', 'inventory');
CREATE INDEX outbox_row_of_call ON outbox_row (call_number, number) WHERE call_number IS NOT NULL AND kind <> 'final';

CREATE TABLE timeline_message (
  number INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  author TEXT NOT NULL CHECK (author IN ('agent', 'person', 'demo')),
  type TEXT NOT NULL,
  body_cbor BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  app_session_id TEXT,
  is_folded INTEGER NOT NULL CHECK (is_folded IN (0, 1)),
  UNIQUE (message_id, conversation_id)
) STRICT;
CREATE INDEX timeline_message_of_session ON timeline_message (app_session_id, number) WHERE app_session_id IS NOT NULL;

-- Every id that was used, for ever: it stays when the rows above lose their bodies.
CREATE TABLE used_key (
  digest BLOB PRIMARY KEY,
  content_digest BLOB NOT NULL,
  number INTEGER NOT NULL,
  outcome TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE switch (
  name TEXT PRIMARY KEY,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE TABLE door (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  destination TEXT NOT NULL CHECK (destination IN ('agent', 'person', 'demo'))
) STRICT;

CREATE TABLE published_inventory (
  number INTEGER PRIMARY KEY,
  epoch TEXT NOT NULL,
  digest TEXT NOT NULL,
  fingerprint_cbor BLOB NOT NULL
) STRICT;

CREATE TABLE kept_descriptor (
  digest TEXT PRIMARY KEY,
  document_cbor BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Standard interactions (SPEC 7): the owner is injected; answered_by_view names the view whose answer won.
CREATE TABLE interaction (
  number INTEGER PRIMARY KEY,
  interaction_id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('notice', 'choice', 'confirm', 'input')),
  source TEXT NOT NULL CHECK (source IN ('agent_tool', 'miniapp_tool', 'runtime_policy')),
  owner_app_scope TEXT NOT NULL,
  owner_instance_id TEXT,
  conversation_id TEXT NOT NULL,
  call_number INTEGER,
  parent_call_number INTEGER,
  app_session_id TEXT,
  request_cbor BLOB NOT NULL,
  shown_digest BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'presented', 'submitted', 'completed', 'cancelled', 'expired', 'failed')),
  updated_at INTEGER NOT NULL,
  place TEXT NOT NULL CHECK (place IN ('default', 'inline', 'modal')),
  expires_at INTEGER,
  deadline_boot_id TEXT,
  deadline_at_ms INTEGER,
  result_cbor BLOB,
  answered_by_view TEXT,
  error_code TEXT,
  CHECK ((deadline_boot_id IS NULL) = (deadline_at_ms IS NULL)),
  CHECK ((status IN ('pending', 'presented')) = (result_cbor IS NULL))
) STRICT;
CREATE INDEX interaction_open ON interaction (number) WHERE status IN ('pending', 'presented');
CREATE INDEX interaction_by_status ON interaction (status, number);
CREATE UNIQUE INDEX interaction_of_call ON interaction (call_number) WHERE call_number IS NOT NULL;

-- What the person allows by name; absent is no.
CREATE TABLE policy (
  name TEXT PRIMARY KEY,
  allowed INTEGER NOT NULL CHECK (allowed IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Surfaces (SPEC 9): a snapshot, and the patches that follow it up to version. A mount counts only in its epoch.
CREATE TABLE surface (
  number INTEGER PRIMARY KEY,
  surface_id TEXT NOT NULL UNIQUE,
  app_session_id TEXT NOT NULL UNIQUE,
  app_scope TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  container TEXT NOT NULL CHECK (container IN ('trusted', 'isolated')),
  opened_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 0),
  state_bytes INTEGER NOT NULL CHECK (state_bytes > 0),
  state_members INTEGER NOT NULL CHECK (state_members >= 0),
  snapshot_version INTEGER NOT NULL CHECK (snapshot_version BETWEEN 0 AND version),
  patch_bytes INTEGER NOT NULL CHECK (patch_bytes >= 0),
  mount_epoch INTEGER NOT NULL CHECK (mount_epoch >= 0),
  mounted_view_id TEXT,
  closed_at INTEGER,
  CHECK (closed_at IS NULL OR mounted_view_id IS NULL)
) STRICT;
CREATE INDEX surface_open ON surface (number) WHERE closed_at IS NULL;

CREATE TABLE surface_patch (
  surface_number INTEGER NOT NULL,
  version INTEGER NOT NULL,
  patch_cbor BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (surface_number, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE surface_snapshot (
  surface_number INTEGER PRIMARY KEY,
  version INTEGER NOT NULL CHECK (version >= 0),
  state_cbor BLOB NOT NULL
) STRICT;
CREATE TRIGGER surface_compacted AFTER UPDATE ON surface_snapshot BEGIN
  DELETE FROM surface_patch WHERE surface_number = new.surface_number AND version <= new.version;
END;

-- Artifacts (SPEC 9.4): the bytes stand in files named by their SHA-256, and did so before the row was written.
CREATE TABLE artifact (
  number INTEGER PRIMARY KEY,
  artifact_id TEXT NOT NULL UNIQUE,
  app_session_id TEXT NOT NULL,
  app_scope TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
  size INTEGER NOT NULL CHECK (size >= 0),
  media_type TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  is_lost INTEGER NOT NULL CHECK (is_lost IN (0, 1))
) STRICT;
-- Covers what an App session holds; the second says whether bytes are still needed.
CREATE INDEX artifact_of_session ON artifact (app_session_id, sha256, size) WHERE is_lost = 0;
CREATE INDEX artifact_of_content ON artifact (sha256) WHERE is_lost = 0;

-- Capabilities (SPEC 10): one row a request; in state granted it is the grant, for one use by one view. Arguments leave when it ends.
CREATE TABLE capability_request (
  number INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  capability TEXT NOT NULL,
  contract_version INTEGER NOT NULL,
  app_scope TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  anchor TEXT NOT NULL,
  reason TEXT NOT NULL,
  parent_call_number INTEGER,
  shown_digest BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('asked', 'granted', 'done', 'failed', 'denied', 'cancelled', 'revoked', 'unknown')),
  updated_at INTEGER NOT NULL,
  arguments_cbor BLOB,
  scope TEXT CHECK (scope IN ('once', 'while_open', 'always', 'never')),
  consent_view_id TEXT,
  provider_view_id TEXT,
  deadline_ms INTEGER,
  error_code TEXT,
  reason_of_end TEXT,
  CHECK ((status IN ('asked', 'granted')) = (arguments_cbor IS NOT NULL)),
  CHECK (status <> 'granted' OR (scope IS NOT NULL AND provider_view_id IS NOT NULL AND deadline_ms IS NOT NULL)),
  CHECK (status NOT IN ('denied', 'cancelled', 'revoked', 'unknown') OR error_code IS NOT NULL)
) STRICT;
CREATE INDEX capability_request_open ON capability_request (number) WHERE status IN ('asked', 'granted');

-- Standing answers of the person: at most one active about an App and a capability.
CREATE TABLE permission (
  number INTEGER PRIMARY KEY,
  app_scope TEXT NOT NULL,
  capability TEXT NOT NULL,
  contract_version INTEGER NOT NULL,
  anchor TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('while_open', 'always', 'never')),
  instance_id TEXT,
  view_id TEXT NOT NULL,
  granted_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'revoked', 'lapsed', 'replaced')),
  ended_at INTEGER,
  CHECK ((scope = 'while_open') = (instance_id IS NOT NULL)),
  CHECK ((state = 'active') = (ended_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX permission_active ON permission (app_scope, capability) WHERE state = 'active';

CREATE TABLE acceptance (
  app_scope TEXT PRIMARY KEY,
  capabilities TEXT NOT NULL CHECK (json_valid(capabilities)),
  accepted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One content-free row a decision, chained: hash = SHA-256 over previous_hash and the fields before it (kernel/audit.py).
-- cause = seq of the row of the turn that set this one off.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  speaker TEXT NOT NULL CHECK (speaker = 'worker' OR speaker = 'agent' OR speaker = 'view' OR speaker = 'kernel'),
  view_id TEXT,
  command TEXT NOT NULL,
  cause INTEGER,
  event TEXT NOT NULL,
  number INTEGER,
  instance_id TEXT,
  code TEXT,
  count INTEGER,
  previous_hash BLOB NOT NULL CHECK (length(previous_hash) = 32),
  hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE INDEX audit_of_number ON audit (number, seq) WHERE number IS NOT NULL;
CREATE INDEX audit_of_instance ON audit (instance_id, seq) WHERE instance_id IS NOT NULL AND number IS NULL;
