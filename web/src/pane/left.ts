// What somebody wanted a run to be told when it was started, and what came of that, for whoever opens its page.

import { signal } from "@preact/signals";
import type { Writing } from "./telling";

export interface Left {
  /** What was not typed. */
  writing: Writing;
  said: string;
}

const left = signal<ReadonlyMap<string, Left>>(new Map());

/** Leave something at a run's page. */
export function leave(run: string, what: Left): void {
  left.value = new Map([...left.value, [run, what]]);
}

/** Whether something is left there that nobody has taken. */
export function isLeft(run: string): boolean {
  return left.value.has(run);
}

/** Take what is left there; null when nothing is. */
export function taken(run: string): Left | null {
  const found = left.value.get(run) ?? null;
  if (found !== null) left.value = new Map([...left.value].filter(([each]) => each !== run));
  return found;
}
