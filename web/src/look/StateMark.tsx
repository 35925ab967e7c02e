import type { Confidence, Reason, Run, State } from "../api/shapes";
import { LET_GO, lookOf, type Look } from "../runs/states";
import { Shape } from "./Shape";

/** A state by word, colour and shape; a question mark where it is not certain. */
export function StateMark({ state, reason, confidence = "high" }: { state: State; reason: Reason | null; confidence?: Confidence }) {
  return <Mark look={lookOf(state, reason)} confidence={confidence} />;
}

/** How a run stands, the same wherever it is shown: one that is over is in no state any more. */
export function RunMark({ run }: { run: Run }) {
  if (run.ended_at === null) return <StateMark state={run.state} reason={run.reason} confidence={run.confidence} />;
  return run.detached ? <Mark look={LET_GO} confidence="high" /> : <StateMark state="exited" reason={null} />;
}

function Mark({ look: { word, tone, shape }, confidence }: { look: Look; confidence: Confidence }) {
  const unsure = confidence === "high" ? "" : "?";
  return (
    <span class={`state tone-${tone}`} title={unsure ? `${word}: not certain (${confidence} confidence)` : undefined}>
      <Shape shape={shape} />
      {word}
      {unsure}
    </span>
  );
}
