// What a state is called, how urgent it is and which shape it has: never told by colour alone.

import type { Reason, Run, State } from "../api/shapes";

export type Tone = "call" | "trouble" | "news" | "work" | "calm" | "dim";

export interface Look {
  word: string;
  tone: Tone;
  shape: "hand" | "question" | "cross" | "check" | "spinner" | "pause" | "dot" | "ring" | "clock";
}

// A later version of the daemon may know reasons and states this page does not: looking one up may find nothing.
const REASONS: Partial<Record<Reason, Look>> = {
  permission: { word: "wants permission", tone: "call", shape: "hand" },
  question: { word: "asks a question", tone: "call", shape: "question" },
  login: { word: "wants a login", tone: "call", shape: "hand" },
  stalled: { word: "stalled", tone: "trouble", shape: "pause" },
  limit: { word: "limit reached", tone: "trouble", shape: "clock" },
  done: { word: "done, unseen", tone: "news", shape: "check" },
};

const STATES: Partial<Record<State, Look>> = {
  attention: { word: "needs you", tone: "call", shape: "hand" },
  error: { word: "error", tone: "trouble", shape: "cross" },
  busy: { word: "busy", tone: "work", shape: "spinner" },
  idle: { word: "idle", tone: "calm", shape: "ring" },
  exited: { word: "ended", tone: "dim", shape: "dot" },
  unknown: { word: "unknown", tone: "dim", shape: "question" },
};

/** What nobody follows any more, though its pane was left as it was. */
export const LET_GO: Look = { word: "not followed", tone: "dim", shape: "dot" };

export function lookOf(state: State, reason: Reason | null): Look {
  return (reason ? REASONS[reason] : undefined) ?? STATES[state] ?? { word: state, tone: "dim", shape: "dot" };
}

/** `attention(permission)` of an event, as a state and its reason. */
export function parseWord(word: string): { state: State; reason: Reason | null } {
  const match = /^(\w+)(?:\((\w+)\))?$/.exec(word);
  return { state: (match?.[1] ?? "unknown") as State, reason: (match?.[2] ?? null) as Reason | null };
}

/** The most urgent first. */
const URGENCY: string[] = ["permission", "question", "login", "error", "stalled", "limit", "done"];

export function urgency(run: Run): number {
  const place = URGENCY.indexOf(run.reason ?? run.state);
  return place < 0 ? URGENCY.length : place;
}
