// Runs that are over: asked for apart from the others, and seldom, since there may be many.

import { signal } from "@preact/signals";
import { askAll } from "../api/ask";
import { follow } from "../api/live";
import type { Run } from "../api/shapes";
import { moment } from "../text/times";

/** Those that ended not long ago. */
export const ended = signal<Run[]>([]);

const LATELY = 24 * 60 * 60 * 1000;
const MOST = 20_000;

const SHELLS = new Set(["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "yash", "tcsh", "csh", "nu", "xonsh"]);

/** Nobody was in it and nothing ran there: somebody has closed a shell, or nothing could be started in it. */
const wasShell = (run: Run): boolean =>
  run.agent === null && run.last_agent === null && !run.detached && SHELLS.has(run.command.replace(/^-/, ""));

/**
 * Those that ended within the last day, the latest first, without shells that were closed and without what somebody has gone on with: the
 * same conversation elsewhere.
 */
export function endedLately(runs: readonly Run[], now: number): Run[] {
  const conversations = new Set(runs.filter((run) => run.ended_at === null && run.conversation !== null).map((run) => run.conversation));
  const end = (run: Run): number => moment(run.ended_at) ?? 0;
  return runs
    .filter((run) => run.ended_at !== null && now - end(run) < LATELY && !wasShell(run) && !conversations.has(run.conversation))
    .sort((a, b) => end(b) - end(a) || b.id.localeCompare(a.id));
}

async function refresh(): Promise<void> {
  try {
    const now = Date.now();
    // They are kept for months: only those of the last day are asked for.
    const after = new Date(now - LATELY).toISOString();
    ended.value = endedLately(await askAll<Run>(`/api/runs?ended_after=${after}&limit=1000`, MOST), now);
  } catch {
    // Those that are there matter more, and say themselves when they cannot be asked for.
  }
}

/** Keep them up to date until the function that is returned is called. */
export function keepEnded(): () => void {
  void refresh();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const leave = follow((event) => {
    if (event.kind !== "run_deleted" && event.kind !== "run_returned" && event.kind !== "run_created") return;
    clearTimeout(timer);
    timer = setTimeout(() => void refresh(), 1000);
  });
  return () => {
    clearTimeout(timer);
    leave();
  };
}
