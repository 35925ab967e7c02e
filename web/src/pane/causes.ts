// Why a state is what it is, in words. Pure.

import type { Happening } from "../api/shapes";

const SOURCES: Record<string, string> = {
  registry: "the agent says so itself",
  hook: "told by its hook",
  screen: "read off the screen",
  process: "seen by its process",
  input: "it was told something",
  seen: "you have seen it",
  silence: "nothing was heard for long",
  initial: "nothing is known yet",
  remembered: "remembered from before",
};

/** `screen:claude.busy.footer` as people say it, with the rule behind it. */
export function causeInWords(cause: string): string {
  const [source = "", ...rest] = cause.split(":");
  const words = SOURCES[source];
  const rule = rest.join(":");
  if (words === undefined) return cause;
  return rule === "" ? words : `${words} (${rule})`;
}

/** Why an event came to be. */
export function causeOf(event: Happening): string {
  const { cause, confidence, reason, evidence, result, exit_status: status, exit_signal: sign } = event.data;
  const said: string[] = [];
  if (typeof cause === "string") said.push(causeInWords(cause));
  else if (event.kind !== "state_changed" && typeof reason === "string") said.push(reason.replaceAll("_", " "));
  if (typeof evidence === "string") said.push(`known by ${evidence}`);
  if (typeof result === "string") said.push(result);
  if (typeof status === "number") said.push(`exit status ${status}`);
  if (typeof sign === "number") said.push(`signal ${sign}`);
  if (typeof confidence === "string" && confidence !== "high") said.push(`${confidence} confidence`);
  return said.join(", ");
}
