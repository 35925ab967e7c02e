import type { Run } from "../src/api/shapes";

/** A run like any other, but for what a test is about. */
export function aRun(given: Partial<Run>): Run {
  return {
    id: "r1", host: "laptop", user: "dev", socket: "/tmp/tmux-1000/default", target: "fix:0.0", session: "fix", window: 0,
    window_name: "sh", pane: 0, pane_id: "%0", cwd: "/home/dev/roof", command: "node", title: "", who: "9f2c41d07be3", agent: "simulant", conversation: null, certain: null,
    evidence: null, conversation_title: null, agent_version: null, model: null, branch: null, context_used: null, context_limit: null,
    context_pct: null, task: null, last_activity_at: null, stale: false, exit_status: null, exit_signal: null, ended_at: null, detached: false,
    last_agent: null, last_conversation: null,
    state: "idle", reason: null, cause: "registry:idle", because: "The agent says so itself.", confidence: "high", since: "2026-11-15T12:00:00Z", previous: null,
    thought: null, objective: null, rest: null, skill: null, health: "healthy", theme: null,
    ...given,
  };
}
