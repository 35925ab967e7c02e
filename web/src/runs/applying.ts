// What an event makes of the runs that are shown, before they are asked for again. Pure.

import type { Confidence, Happening, Reason, Run, State } from "../api/shapes";

const text = (value: unknown): string | null => (typeof value === "string" ? value : null);

export function applied(runs: Run[], event: Happening): Run[] {
  if (event.run === null) return runs;
  return runs.map((run) => (run.id === event.run ? changed(run, event) : run));
}

function changed(run: Run, event: Happening): Run {
  const data = event.data;
  switch (event.kind) {
    case "state_changed":
      return {
        ...run,
        state: (text(data.state) ?? run.state) as State,
        reason: text(data.reason) as Reason | null,
        cause: text(data.cause) ?? run.cause,
        because: text(data.because) ?? run.because,
        confidence: (text(data.confidence) ?? run.confidence) as Confidence,
        previous: text(data.from),
        // Both in one: words of before would contradict what it does now.
        thought: "thought" in data ? text(data.thought) : run.thought,
        since: event.at,
      };
    case "thought":
      return { ...run, thought: text(data.thought), objective: text(data.objective) };
    case "title_changed":
      return { ...run, title: text(data.title) ?? run.title };
    case "run_deleted":
      return { ...run, ended_at: event.at, detached: data.mode === "detach" };
    default:
      return run;
  }
}
