// The objects of the API, as `perdure … --json` prints them. Only what is shown stands here; whatever else comes is let be.

export type State = "idle" | "busy" | "attention" | "error" | "exited" | "unknown";
export type Reason = "permission" | "question" | "login" | "limit" | "done" | "stalled";
export type Confidence = "low" | "medium" | "high";

export interface Run {
  id: string;
  host: string;
  user: string;
  socket: string;
  target: string;
  session: string;
  window: number;
  window_name: string;
  pane: number;
  /** tmux's own name for it. */
  pane_id: string;
  cwd: string;
  command: string;
  title: string;
  /** A word for the very program and conversation that are shown, or for nobody; handed back with what is done to them. */
  who: string;
  agent: string | null;
  conversation: string | null;
  certain: boolean | null;
  evidence: string | null;
  conversation_title: string | null;
  model: string | null;
  branch: string | null;
  context_used: number | null;
  context_limit: number | null;
  context_pct: number | null;
  task: string | null;
  agent_version: string | null;
  last_activity_at: string | null;
  state: State;
  reason: Reason | null;
  cause: string;
  /** What the cause means, in a sentence. */
  because: string;
  confidence: Confidence;
  since: string | null;
  previous: string | null;
  thought: string | null;
  objective: string | null;
  rest: string | null;
  skill: string | null;
  health: string | null;
  theme: string | null;
  stale: boolean;
  exit_status: number | null;
  exit_signal: number | null;
  ended_at: string | null;
  /** It is over because somebody wanted it followed no longer: its pane was left as it was. */
  detached: boolean;
  /** Who was in the pane last, where nobody is in it any more. */
  last_agent: string | null;
  last_conversation: string | null;
}

export interface Theme {
  root: string;
  body: string;
  outline: string;
  accent: string;
  shirt: string;
  generated: boolean;
}

export interface Happening {
  seq: number;
  at: string;
  kind: string;
  run: string | null;
  server: string | null;
  data: Record<string, unknown>;
}

export interface Page<Item> {
  items: Item[];
  next: string | null;
}

export interface Me {
  user: string;
  scope: "read" | "write";
  version: string;
  host: string;
}

export interface Explanation {
  agent: string | null;
  recognition: string[];
  conversation: string | null;
  evidence: string | null;
  certain: boolean | null;
  because: string[];
  rejected: string[];
  resume: string[] | null;
  title: string;
  screen: { state?: string | null; reason?: string | null; rule?: string | null; because: string[] };
}

export interface SnapshotLine {
  id: string;
  host: string;
  user: string;
  socket: string;
  taken_at: string;
  last_seen_at: string;
  sessions: number;
  windows: number;
  panes: number;
  agents: number;
  origin: string;
}

export interface Change {
  kind: string;
  target: string;
  change: "gone" | "new" | "changed";
  property: string | null;
  before: unknown;
  after: unknown;
}

export interface RestoreStep {
  n: number;
  target: string;
  action: string;
  agent: string | null;
  conversation: string | null;
  argv: string[];
  cwd: string;
  result: string;
  why: string;
  user: string;
  socket: string;
  pane: string | null;
  screen: string[];
}

export interface Chat {
  id: string;
  key: string;
  title: string | null;
  platform: string;
  where: string;
  open: boolean;
  opened_at: string;
  used_at: string;
  closed_at: string | null;
  close_reason: string | null;
  turns: number;
  model: string | null;
}

export interface Turn {
  position: number;
  role: string;
  content: unknown;
  at: string;
  tool_name?: string | null;
  model?: string | null;
  tool_calls?: unknown[];
  hidden?: boolean;
}

export interface Found {
  chat: string;
  title: string | null;
  platform: string;
  where: string;
  position: number;
  role: string;
  at: string;
  snippet: string;
  marks: [number, number][];
}

export interface Job {
  job: string;
  status: "running" | "exited" | "killed" | "lost";
  exit_code: number | null;
  argv: string[] | null;
  shell: string | null;
  cwd: string;
  owner: string | null;
  backend: string;
  pty: boolean;
  pid: number | null;
  ordered_at: string;
  ended_at: string | null;
  uptime: number;
  why: string | null;
  left: number;
}
