// How far a restore has come. Pure.

import type { RestoreStep } from "../api/shapes";

/** What a restore would do. */
export interface Plan {
  steps: RestoreStep[];
  errors: { socket: string; message: string }[];
}

/** One that is done, or was. */
export interface Restore extends Plan {
  id: string;
  state: "running" | "done" | "partly" | "failed" | "interrupted";
  settled: number;
  total: number;
  message: string;
}

export interface Progress {
  word: string;
  tone: "work" | "news" | "trouble";
  verified: number;
  failed: number;
  isOver: boolean;
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
  return { word, tone, verified: count("verified"), failed: count("failed"), isOver: restore.state !== "running" };
}

/** How many panes a plan would bring back. */
export function wanting(plan: Plan): number {
  return plan.steps.filter((step) => step.result === "planned").length;
}
