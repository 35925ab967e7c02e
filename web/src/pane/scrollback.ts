// What has scrolled away: how much of it is fetched, and where whoever reads it is. Pure.

const FIRST = 2000;
/** How many a browser keeps. */
export const MOST = 10_000;

export interface Fetched {
  /** How many lines were asked for. */
  asked: number;
  /** How many there are. */
  history: number;
}

/** How many lines to ask for next. */
export function next(before: Fetched | null): number {
  if (before === null) return FIRST;
  return before.history <= before.asked ? before.asked : Math.min(MOST, before.asked * 4);
}

/** Whether there is more to be had than was fetched. */
export function isMore(before: Fetched | null): boolean {
  return before !== null && before.history > before.asked && before.asked < MOST;
}

export interface Reading {
  /** The first line that is shown. */
  top: number;
  /** How many lines stood above the live screen when it was drawn. */
  above: number;
  /** How many had scrolled away by then. */
  history: number;
}

/**
 * The line to be shown first once other lines stand above: for whoever reads there the same as before; for whoever does not (null), a page
 * above what is live, so that the newest that has scrolled away is seen.
 */
export function placeAfter(before: Reading | null, now: { above: number; rows: number; history: number }): number {
  if (before === null) return Math.max(0, now.above - now.rows);
  const scrolled = Math.max(0, now.history - before.history);
  return Math.max(0, before.top + now.above - before.above - scrolled);
}
