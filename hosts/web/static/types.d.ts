/**
 * What travels between host and page, and what the page keeps. The summaries are those of kernel/protocol/host*.py, whose head comments
 * say what each member means; absent members are left out there and optional here.
 */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** Markdown as a tree: a text, or [tag, attributes, ...children]. */
export type Tree = string | [string, Record<string, string>, ...Tree[]];

export interface CallSummary {
  number: number;
  call_id: string;
  tool_id: string;
  title: string;
  app_scope: string;
  instance_id?: string;
  source: string;
  status: string;
  cancel: string;
  attempts: number;
  progress?: { percent?: number; message?: string };
  error_code?: string;
  created_at: string;
  updated_at: string;
}
export interface InstanceSummary {
  instance_id: string;
  app_scope: string;
  title: string;
  app_version: string;
  state: string;
  error?: string;
  open_calls: number;
  started_at: string;
  stopped_at?: string;
}
export interface Task {
  task_id: string;
  title: string;
  state: string;
  progress?: number;
}
export interface MessageSummary {
  number: number;
  message_id: string;
  direction: "in" | "out";
  author: string;
  type: string;
  text: string;
  state: string;
  code?: string;
  task?: Task;
  folded: boolean;
  created_at: string;
  interaction_id?: string;
  tree?: Tree[];
}
export interface SurfaceSummary {
  surface_id: string;
  app_scope: string;
  app_session_id: string;
  instance_id?: string;
  title: string;
  container: string;
  version: number;
  is_open: boolean;
  mounted_view_id?: string;
  state?: { [name: string]: any };
  text: string;
}
export interface Action {
  id: string;
  label: string;
  description?: string;
}
export interface Field {
  id: string;
  label: string;
  type: "text" | "textarea" | "number";
  required?: boolean;
  placeholder?: string;
  min_length?: number;
  max_length?: number;
  minimum?: number;
  maximum?: number;
}
export interface Asked {
  title: string;
  prompt?: string;
  message?: string;
  mode?: string;
  actions?: Action[];
  fields?: Field[];
  approve_label?: string;
  cancel_label?: string;
  submit_label?: string;
  acknowledge_label?: string;
}
export interface Draft {
  fields?: { [id: string]: any };
  action_ids?: string[];
}
export interface Interaction {
  number: number;
  interaction_id: string;
  kind: "notice" | "choice" | "confirm" | "input";
  source: string;
  owner_app_scope: string;
  owner_instance_id?: string;
  call_id?: string;
  app_session_id?: string;
  request: Asked;
  shown_digest: string;
  place: string;
  status: string;
  result?: { outcome: string; answer?: any };
  answered_by?: string;
  error_code?: string;
  draft?: Draft;
  expires_at?: string;
  created_at: string;
  updated_at: string;
  tree?: Tree[];
}
export interface Consent {
  number: number;
  request_id: string;
  capability: string;
  title: string;
  app_scope: string;
  app_title: string;
  instance_id: string;
  reason: string;
  arguments?: { [name: string]: any };
  scopes: string[];
  shown: string;
  status: string;
  code?: string;
  created_at: string;
}
export interface AppSummary {
  app_scope: string;
  version: string;
  kind: string;
  title: string;
  description: string;
  enabled: boolean;
  tools: { tool_id: string; title: string; enabled: boolean }[];
  may_ask?: boolean;
}
export interface SessionSummary {
  number: number;
  app_session_id: string;
  app_scope: string;
  title: string;
  state: string;
  opened_at: string;
  closed_at?: string;
  continues?: string;
  instance_id?: string;
  newest_instance_id?: string;
  error?: string;
  failed: boolean;
  messages: number;
}
export interface Permission {
  number: number;
  app_scope: string;
  app_title: string;
  capability: string;
  title: string;
  scope: string;
  instance_id?: string;
  granted_at: string;
  counts: boolean;
}
export interface Parked {
  number: number;
  app_scope: string;
  instance_id: string;
  topic: string;
  delivery_count: number;
  crash_count: number;
  size: number;
  created_at: string;
}
export interface AuditRow {
  seq: number;
  at: string;
  speaker: string;
  view_id?: string;
  command: string;
  event: string;
  number?: number;
  code?: string;
  count?: number;
  cause?: number;
}
export interface Explained {
  what: string;
  summary: { [name: string]: Json };
  kind: string;
  state: string;
  sentences: { text: string; seqs: number[] }[];
  audit: AuditRow[];
}

/** What a snapshot holds. */
export interface SnapshotState {
  calls: CallSummary[];
  instances: InstanceSummary[];
  focus: string[];
  messages: MessageSummary[];
  interactions: Interaction[];
  apps: AppSummary[];
  surfaces: SurfaceSummary[];
  consents: Consent[];
  revision: string;
  agent: { connected?: boolean; demo?: boolean };
  kernel: { version?: string; epoch?: string };
}
export interface Change {
  kind: string;
  value: any;
}

/** The kernel as this page knows it (mirror.js). */
export interface Mirror {
  calls: ReadonlyMap<number, CallSummary>;
  instances: ReadonlyMap<string, InstanceSummary>;
  messages: ReadonlyMap<number, MessageSummary>;
  interactions: ReadonlyMap<string, Interaction>;
  surfaces: ReadonlyMap<string, SurfaceSummary>;
  consents: ReadonlyMap<string, Consent>;
  focus: string[];
  apps: AppSummary[];
  revision: string;
  agent: { connected?: boolean; demo?: boolean };
  kernel: { version?: string; epoch?: string };
}

export interface Detail {
  pointer?: string;
  expected?: string;
  got_type?: string;
  got_size?: number;
  hint?: string;
}
/** How an ask ended. code `lost`: the link ended first, so nobody knows. */
export type Outcome = { ok: true; value: any } | { ok: false; code: string; detail?: Detail };

/** What is typed into one card and not sent. values are texts, by field; chosen are action ids. */
export interface Form {
  values: { [field: string]: string };
  chosen: string[];
  errors: { [field: string]: { code: string; detail: Detail } };
  trouble: string;
  isSent: boolean;
  saved: string;
}
export interface Outgoing {
  key: number;
  text: string;
  state: "sending" | "refused" | "lost";
  code?: string;
  after: number;
}
export interface Toast {
  key: number;
  tone: "plain" | "good" | "bad";
  from?: string;
  text: string;
  action?: { label: string; run: () => void };
}
export type PanelName = "" | "activity" | "apps" | "help" | "history" | "parked" | "permissions" | "settings";
export type Language = "en" | "zh";

export interface PageState {
  link: "connecting" | "open" | "away" | "crowded" | "refused";
  phase: "connecting" | "up" | "ended" | "failed";
  code: string;
  hint: string;
  links: number;
  isDemo: boolean;
  isExposed: boolean;
  viewId: string;
  /** What this tab answered: the view it was then, by question. */
  answered: ReadonlyMap<string, string>;
  /** What is half typed to the Agent. */
  line: string;
  /** The link stands, and nothing comes over it. */
  isStuck: boolean;
  mirror: Mirror | null;
  hasOlder: boolean;
  isLoadingOlder: boolean;
  past: MessageSummary[] | null;
  outgoing: Outgoing[];
  toasts: Toast[];
  panel: PanelName;
  failedApp: string;
  putOff: ReadonlySet<string>;
  wanted: string;
  forms: ReadonlyMap<string, Form>;
  sessions: SessionSummary[];
  parked: Parked[];
  lang: Language;
  theme: "auto" | "dark" | "light";
  why: Explained | null;
  log: { title: string; text: string } | null;
}
