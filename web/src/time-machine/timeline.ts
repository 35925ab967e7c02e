// Where snapshots stand on a line of time. Pure.

import type { SnapshotLine } from "../api/shapes";
import { counted } from "../text/numbers";
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

/** What has come and gone since the one before of the same server, by id; the first of a server has none before it. */
export function grown(snapshots: readonly SnapshotLine[]): Map<string, string> {
  const found = new Map<string, string>();
  const last = new Map<string, SnapshotLine>();
  for (const each of [...snapshots].sort((a, b) => taken(a) - taken(b) || a.id.localeCompare(b.id))) {
    const server = `${each.host} ${each.user} ${each.socket}`;
    const before = last.get(server);
    last.set(server, each);
    if (!before) continue;
    const said = [signed(each.agents - before.agents, "agent"), signed(each.panes - before.panes, "pane")].filter((words) => words !== "");
    // Only what changed is kept: where the numbers are the same, something else did.
    found.set(each.id, said.join(", ") || "changed in detail");
  }
  return found;
}

function signed(more: number, noun: string): string {
  return more === 0 ? "" : `${more > 0 ? "+" : "\u2212"}${counted(Math.abs(more), noun)}`;
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
