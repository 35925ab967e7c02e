// What is known of the machine as a whole: the colours of its repositories, and servers that are gone.

import { signal } from "@preact/signals";
import { askAgain } from "../api/ask";
import type { Page, Theme } from "../api/shapes";
import { lasting, moment } from "../text/times";

interface ServerRow {
  key: string;
  socket: string;
  alive: boolean;
  snapshot: string | null;
  last_seen_at: string | null;
}

interface HostRow {
  host: string;
  users: { user: string; servers: ServerRow[] }[];
  themes: Theme[];
}

export interface LostServer {
  key: string;
  socket: string;
  snapshot: string;
  /** When its last snapshot was last found to be true, which may be well before it ended. */
  savedAt: number;
}

/** The colours of repositories, by their directories. */
export const themes = signal<Record<string, Theme>>({});

/** Servers that are gone and can be brought back. */
export const lost = signal<LostServer[]>([]);

const LATELY = 24 * 60 * 60 * 1000;

/** Servers that ended not long ago, the latest first. What was closed before yesterday is the time machine's. */
export function lostOf(servers: readonly ServerRow[], now: number): LostServer[] {
  return servers
    .filter((server) => !server.alive)
    .map(({ key, socket, snapshot, last_seen_at: seen }) => ({ key, socket, snapshot, savedAt: moment(seen) ?? 0 }))
    .filter((server): server is LostServer => server.snapshot !== null && now - server.savedAt < LATELY)
    .sort((a, b) => b.savedAt - a.savedAt);
}

/** What is known of one: how old what was saved of it is, and not when it ended. */
export function saidOfLost({ savedAt }: LostServer, now: number): string {
  return `has ended. What was last saved of it is from ${lasting(savedAt, now)} ago.`;
}

export async function refreshHosts(): Promise<void> {
  try {
    const { items } = await askAgain<Page<HostRow>>("/api/hosts");
    themes.value = Object.fromEntries(items.flatMap((host) => host.themes).map((theme) => [theme.root, theme]));
    lost.value = lostOf(items.flatMap((host) => host.users).flatMap((user) => user.servers), Date.now());
  } catch {
    // Without colours everything else is still there.
  }
}
