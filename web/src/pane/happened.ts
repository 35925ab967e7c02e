// Why a run's state changed, or what else happened to it. Pure.

import type { Happening } from "../api/shapes";
import { causeOf, heard, knownBy, reasonOf, type Told } from "../text/causes";

/** Why an event came to be. */
export function becauseOf({ kind, data }: Happening): Told {
  const { cause, confidence, reason, evidence, result, exit_status: status, exit_signal: sign } = data;
  const said: string[] = [];
  let id: string | null = null;
  const say = (told: Told): void => {
    said.push(told.words);
    id = told.id;
  };
  if (typeof cause === "string") say(causeOf(cause));
  else if (kind !== "state_changed" && typeof reason === "string") say(reasonOf(reason));
  if (typeof evidence === "string") said.push(`known by ${knownBy(evidence)}`);
  if (typeof result === "string") said.push(heard(result));
  if (typeof status === "number") said.push(`exit status ${status}`);
  if (typeof sign === "number") said.push(`signal ${sign}`);
  if (typeof confidence === "string" && confidence !== "high") said.push(confidence === "low" ? "not certain" : "fairly certain");
  return { words: said.join(", "), id };
}
