import { effect, signal } from "@preact/signals";
import { ask, isKnown } from "./ask";
import type { Happening, Me } from "./shapes";
import { Socket, type Connection, type Wire } from "./socket";

/** Whether what is shown is up to date. */
export const connection = signal<Connection>("connecting");

/** Who is looking, and what they may do; null until that was asked. */
export const me = signal<Me | null>(null);

/** The time, for everything that says how long ago something was. */
export const now = signal(Date.now());

const followers = new Set<(event: Happening) => void>();

/** Hear of everything that happens, until the function that is returned is called. */
export function follow(take: (event: Happening) => void): () => void {
  followers.add(take);
  return () => void followers.delete(take);
}

export const socket = new Socket(
  {
    ticket: async () => (await ask<{ ticket: string }>("POST", "/api/tickets", {})).ticket,
    connect: (ticket) => {
      const scheme = location.protocol === "https:" ? "wss" : "ws";
      return new WebSocket(`${scheme}://${location.host}/api/socket?ticket=${encodeURIComponent(ticket)}`) as unknown as Wire;
    },
    later: (action, ms) => {
      const timer = setTimeout(action, ms);
      return () => clearTimeout(timer);
    },
  },
  {
    event: (event) => {
      for (const take of followers) take(event);
    },
    connection: (state) => (connection.value = state),
  },
  null,
);

/** Begin: ask who is looking, connect, and keep the time. */
export async function begin(): Promise<void> {
  setInterval(() => (now.value = Date.now()), 1000);
  addEventListener("online", () => socket.hurry());
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") socket.hurry();
  });
  effect(() => {
    if (!isKnown.value) socket.stop();
  });
  try {
    me.value = await ask<Me>("GET", "/api/me");
  } catch {
    // Who is not known is told so by the page; whoever does not answer is tried again by the socket.
  }
  if (isKnown.value) socket.start();
}

/** Whether whoever looks may change something. */
export const mayWrite = (): boolean => me.value?.scope === "write";
