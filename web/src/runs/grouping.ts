// Which run stands where on the first screen. Pure.

import type { Run } from "../api/shapes";
import { moment } from "../text/times";
import { urgency } from "./states";

export type GroupName = "needs" | "busy" | "idle" | "unknown" | "shells" | "ended";

export interface Group {
  name: GroupName;
  title: string;
  runs: Run[];
}

export interface Filter {
  /** Words that all have to be somewhere in what is known of a run. */
  text: string;
  /** An agent's name, or null for all. */
  agent: string | null;
}

const TITLES: [GroupName, string][] = [
  ["needs", "Needs you"],
  ["busy", "Busy"],
  ["idle", "Idle"],
  ["unknown", "Cannot be told"],
  ["shells", "Shells"],
  ["ended", "Ended"],
];

export function groupOf(run: Run): GroupName {
  if (run.ended_at !== null || run.state === "exited") return "ended";
  if (run.state === "attention" || run.state === "error") return "needs";
  if (run.agent === null) return "shells";
  if (run.state === "busy" || run.state === "idle") return run.state;
  return "unknown";
}

/** The groups that have anybody in them, the most urgent first; within one, who has waited longest stands first. */
export function grouped(runs: readonly Run[]): Group[] {
  return TITLES.map(([name, title]) => ({
    name,
    title,
    runs: runs.filter((run) => groupOf(run) === name).sort(ORDERS[name]),
  })).filter((group) => group.runs.length > 0);
}

const since = (run: Run): number => moment(run.since) ?? 0;
const byPlace = (a: Run, b: Run): number => a.target.localeCompare(b.target, "en", { numeric: true }) || a.id.localeCompare(b.id);
const newestFirst = (a: Run, b: Run): number => since(b) - since(a) || byPlace(a, b);

const ORDERS: Record<GroupName, (a: Run, b: Run) => number> = {
  needs: (a, b) => urgency(a) - urgency(b) || since(a) - since(b) || byPlace(a, b),
  // Not by time: a row that jumps about with every turn cannot be clicked.
  busy: byPlace,
  idle: newestFirst,
  unknown: byPlace,
  shells: byPlace,
  ended: newestFirst,
};

export function matches(run: Run, filter: Filter): boolean {
  if (filter.agent !== null && (run.agent ?? "shell") !== filter.agent) return false;
  const hay = [
    run.id, run.target, run.window_name, run.agent, run.conversation, run.conversation_title, run.thought, run.objective,
    run.task, run.cwd, run.user, run.host, run.branch, run.model, run.reason, run.state, run.title,
  ]
    .filter((each) => each)
    .join("\n")
    .toLowerCase();
  return filter.text.toLowerCase().split(/\s+/).every((word) => hay.includes(word));
}

/** The agents there are, by name, with how many runs each has; shells last. */
export function agentsOf(runs: readonly Run[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const run of runs) {
    const name = run.agent ?? "shell";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([a], [b]) => Number(a === "shell") - Number(b === "shell") || a.localeCompare(b));
}

/** What a run is called: by its session where that has one pane, else by its place. */
export function nameOf(run: Run, all: readonly Run[]): string {
  const siblings = all.filter((each) => each.socket === run.socket && each.host === run.host && each.session === run.session && each.ended_at === null);
  return siblings.length <= 1 ? run.session : run.target;
}

/** What it is doing, in a line. */
export function doing(run: Run): string | null {
  return run.thought ?? run.task ?? run.conversation_title ?? (run.agent === null ? run.command : run.title || null);
}
