// What was said, as text. Pure.

import type { Turn } from "../api/shapes";

function asText(part: unknown): string | null {
  if (part === null || part === undefined) return null;
  if (typeof part === "string") return part;
  if (typeof part === "object" && "text" in part && typeof part.text === "string") return part.text;
  return JSON.stringify(part);
}

/** Everything of a turn that is text, and the calls of tools in a line each. */
export function wordsOf(turn: Turn): string {
  const parts = Array.isArray(turn.content) ? turn.content : [turn.content];
  const calls = (turn.tool_calls ?? []).map((call) => `calls ${callOf(call)}`);
  return [...parts.map(asText).filter((text) => text !== null), ...calls].join("\n");
}

/** Which turn the end of an address (`#turn-7`) leads to. */
export function turnIn(hash: string): number | null {
  const found = /^#turn-(\d{1,9})$/.exec(hash)?.[1];
  return found === undefined ? null : Number(found);
}

function callOf(call: unknown): string {
  if (typeof call !== "object" || call === null) return JSON.stringify(call);
  const form = ("function" in call ? call.function : call) as Record<string, unknown>;
  const name = typeof form.name === "string" ? form.name : "a tool";
  const given = form.arguments ?? form.input ?? form.args;
  return given === undefined ? name : `${name} ${typeof given === "string" ? given : JSON.stringify(given)}`;
}

export interface Stretch {
  text: string;
  isFound: boolean;
}

/** A text in stretches, those that were looked for apart. Marks that lie outside, or over each other, count for nothing. */
export function stretches(text: string, marks: readonly (readonly [number, number])[]): Stretch[] {
  // Marks count characters, not halves of them.
  const chars = Array.from(text);
  const found: Stretch[] = [];
  let done = 0;
  for (const [start, end] of [...marks].sort((a, b) => a[0] - b[0])) {
    if (start < done || end <= start || end > chars.length) continue;
    if (start > done) found.push({ text: chars.slice(done, start).join(""), isFound: false });
    found.push({ text: chars.slice(start, end).join(""), isFound: true });
    done = end;
  }
  if (done < chars.length) found.push({ text: chars.slice(done).join(""), isFound: false });
  return found;
}
