// How far a restore has come. Pure.

import type { RestoreStep } from "../api/shapes";
import { counted } from "../text/numbers";
import { moment } from "../text/times";

/** What a restore would do. */
export interface Plan {
  steps: RestoreStep[];
  errors: { socket: string; message: string }[];
}

/** One that is done, or was. */
export interface Restore extends Plan {
  id: string;
  state: "running" | "done" | "partly" | "failed" | "interrupted";
  began_at: string;
  settled: number;
  total: number;
  message: string;
}

/** How many panes came to what. */
export interface Summary {
  panes: number;
  /** Those that had to be opened. */
  created: number;
  /** Agents that came up again. */
  resumed: number;
  verified: number;
  skipped: number;
  failed: number;
}

/** One of the list of them. */
export interface RestoreLine extends Pick<Restore, "id" | "state" | "began_at" | "settled" | "total" | "message"> {
  snapshot: string | null;
  snapshots: string[];
  ended_at: string | null;
  /** None before it has ended. */
  summary: Summary | null;
  /** Asked for over HTTP, by whoever; else in a terminal, or without being asked. */
  here: boolean;
  user: string | null;
}

/** What came of one, by its numbers. */
export function cameOf({ created, resumed, verified, failed }: Summary): string {
  const said = [
    created > 0 && `${counted(created, "pane")} opened`,
    resumed > 0 && `${counted(resumed, "agent")} resumed`,
    verified > 0 && `${verified} verified`,
    failed > 0 && `${failed} failed`,
  ].filter((each) => each !== false);
  return said.length === 0 ? "nothing had to be brought back" : said.join(", ");
}

/** What came of one, or how far it has come. */
export function cameTo({ state, summary, settled, total, message }: RestoreLine): string {
  if (summary !== null) return cameOf(summary);
  if (message !== "" && state !== "running") return message;
  if (total === 0) return message === "" ? "how far it came is not known" : message;
  return `${settled} of ${counted(total, "pane")}${state === "running" ? " so far" : ""}${message === "" ? "" : `. ${message}`}`;
}

/** How one stands, in a word. */
export function wordOf(state: Restore["state"]): { word: string; tone: Progress["tone"] } {
  const [word, tone] = WORDS[state];
  return { word, tone };
}

export interface Progress {
  word: string;
  tone: "work" | "news" | "trouble";
  verified: number;
  failed: number;
}

const WORDS: Record<Restore["state"], [string, Progress["tone"]]> = {
  running: ["Bringing it back", "work"],
  done: ["Back", "news"],
  partly: ["Partly back", "trouble"],
  failed: ["Not brought back", "trouble"],
  interrupted: ["Interrupted", "trouble"],
};

export function progressOf(restore: Restore): Progress {
  const count = (result: string): number => restore.steps.filter((step) => step.result === result).length;
  return { ...wordOf(restore.state), verified: count("verified"), failed: count("failed") };
}

const began = (restore: { began_at: string }): number => moment(restore.began_at) ?? 0;

/** The restore of a snapshot that was begun last, at `since` or later; null when there is none. */
export function latestOf(restores: readonly RestoreLine[], snapshot: string, since = 0): RestoreLine | null {
  return restores
    .filter((each) => each.snapshots.includes(snapshot) && began(each) >= since)
    .reduce<RestoreLine | null>((best, each) => (best === null || began(each) > began(best) ? each : best), null);
}

/** The restore of a snapshot that somebody is at, or that was interrupted; an earlier one does not matter once there is a later. */
export function unfinished(restores: readonly RestoreLine[], snapshot: string): RestoreLine | null {
  const latest = latestOf(restores, snapshot);
  return latest?.state === "running" || latest?.state === "interrupted" ? latest : null;
}

/**
 * In how many milliseconds to ask for a restore again; null: never. One that was interrupted may have gone on without the
 * daemon, and its journal tells.
 */
export function nextLook(restore: Restore | null): number | null {
  if (restore?.state === "running") return 400;
  return restore?.state === "interrupted" ? 2000 : null;
}

/** How many panes a plan would bring back. */
export function wanting(plan: Plan): number {
  return plan.steps.filter((step) => step.result === "planned").length;
}

const CHANGES = new Set(["run_created", "run_deleted", "run_returned", "identity_changed", "server_died", "restored"]);

/** Whether a plan for a server may be otherwise after such an event. Whoever restores in a terminal is told of by what is saved there. */
export function changesPlans({ kind, data }: { kind: string; data: Record<string, unknown> }, socket: string): boolean {
  return CHANGES.has(kind) || (kind === "saved" && data.socket === socket);
}
