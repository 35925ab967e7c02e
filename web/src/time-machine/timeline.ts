// Where snapshots stand on a line of time. Pure.

import type { SnapshotLine } from "../api/shapes";
import { moment } from "../text/times";

export interface Mark {
  snapshot: SnapshotLine;
  /** From 0, the oldest, to 1, the newest. */
  at: number;
}

const taken = (snapshot: SnapshotLine): number => moment(snapshot.taken_at) ?? 0;

/**
 * The newest first, placed by the logarithm of their age: the last hour takes as much room as the last month, since that is
 * where people look.
 */
export function placed(snapshots: readonly SnapshotLine[], now: number): Mark[] {
  const sorted = [...snapshots].sort((a, b) => taken(b) - taken(a) || b.id.localeCompare(a.id));
  const ages = sorted.map((each) => Math.log1p(Math.max(0, now - taken(each)) / 60_000));
  const oldest = Math.max(...ages, 0);
  const newest = Math.min(...ages, oldest);
  const span = oldest - newest;
  return sorted.map((snapshot, place) => ({ snapshot, at: span > 0 ? 1 - ((ages[place] ?? 0) - newest) / span : 1 }));
}

/** Marks that would stand on each other are one mark, as many as there are: `width` is how near that is. */
export function heaped(marks: readonly Mark[], width: number): Mark[][] {
  const heaps: Mark[][] = [];
  for (const mark of marks) {
    const last = heaps.at(-1);
    const first = last?.[0];
    if (last && first && first.at - mark.at < width) last.push(mark);
    else heaps.push([mark]);
  }
  return heaps;
}

/** By day, in the order they come. */
export function byDay<Item>(items: readonly Item[], day: (item: Item) => string): [string, Item[]][] {
  const days: [string, Item[]][] = [];
  for (const item of items) {
    const name = day(item);
    const last = days.at(-1);
    if (last?.[0] === name) last[1].push(item);
    else days.push([name, [item]]);
  }
  return days;
}
