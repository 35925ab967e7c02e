// Why a run's state changed, or what else happened to it. Pure.

import type { Happening } from "../api/shapes";
import { heard, knownBy, toldOf, type Told } from "../text/causes";

/** Why an event came to be. */
export function becauseOf({ kind, data }: Happening): Told {
  const { cause, because, confidence, reason, evidence, result, exit_status: status, exit_signal: sign } = data;
  const said: string[] = [];
  const why = toldOf(cause ?? (kind === "state_changed" ? null : reason), because);
  if (why.words !== "") said.push(why.words);
  if (typeof evidence === "string") said.push(`known by ${knownBy(evidence)}`);
  if (typeof result === "string") said.push(heard(result));
  if (typeof status === "number") said.push(`exit status ${status}`);
  if (typeof sign === "number") said.push(`signal ${sign}`);
  if (typeof confidence === "string" && confidence !== "high") said.push(confidence === "low" ? "not certain" : "fairly certain");
  return { words: said.join(", "), id: why.id };
}
