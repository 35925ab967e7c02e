// A job in words. Pure.

import type { Job } from "../api/shapes";
import type { Look } from "../runs/states";

/** What it runs, in a line. */
export function commandOf(job: Job): string {
  return job.shell ?? (job.argv ?? []).map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

export function lookOfJob(job: Pick<Job, "status" | "exit_code">): Look {
  if (job.status === "running") return { word: "running", tone: "work", shape: "spinner" };
  if (job.status === "lost") return { word: "lost", tone: "call", shape: "question" };
  if (job.status === "killed") return { word: "killed", tone: "dim", shape: "pause" };
  if (job.exit_code === 0) return { word: "done", tone: "news", shape: "check" };
  return { word: `failed (${job.exit_code ?? "?"})`, tone: "trouble", shape: "cross" };
}
