// How far a restore has come. Pure.

import type { RestoreStep } from "../api/shapes";
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

/** One of the list of them. */
export type RestoreLine = Pick<Restore, "id" | "state" | "began_at"> & { snapshots: string[] };

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
  const [word, tone] = WORDS[restore.state];
  return { word, tone, verified: count("verified"), failed: count("failed") };
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
