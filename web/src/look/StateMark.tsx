import type { Confidence, Reason, State } from "../api/shapes";
import { lookOf } from "../runs/states";
import { Shape } from "./Shape";

/** A state by word, colour and shape; a question mark where it is not certain. */
export function StateMark({ state, reason, confidence = "high" }: { state: State; reason: Reason | null; confidence?: Confidence }) {
  const { word, tone, shape } = lookOf(state, reason);
  const unsure = confidence === "high" ? "" : "?";
  return (
    <span class={`state tone-${tone}`} title={unsure ? `${word}: not certain (${confidence} confidence)` : undefined}>
      <Shape shape={shape} />
      {word}
      {unsure}
    </span>
  );
}
