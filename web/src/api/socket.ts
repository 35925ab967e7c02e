// One connection for everything that happens: events from a number on, without a gap across reconnects, and terminals.
// Nothing of a browser is used but what is handed in, so a test can play the server.

import type { Happening } from "./shapes";

export interface ScreenFrame {
  type: "screen";
  run: string;
  cols: number;
  rows: number;
  cursor: { x: number; y: number };
  title: string;
  /** Whether the program has the screen to itself: nothing of it scrolls away. */
  alternate?: boolean;
  text: string;
}

export type TerminalFrame =
  | ScreenFrame
  | { type: "output"; run: string; text: string }
  | { type: "resized"; run: string; cols: number; rows: number }
  /** Whether the pane has the size it was given from here. */
  | { type: "size"; run: string; taken: boolean }
  | { type: "closed"; run: string; why: string };

export type Frame =
  | TerminalFrame
  | { type: "subscribed"; after: number }
  | { type: "event"; event: Happening }
  | { type: "lagged"; after: number }
  | { type: "ack"; id: number; result: "sent" | "refused"; why?: string | null }
  | { type: "error"; code: string; message: string; run?: string | null }
  | { type: "pong" };

/** What is used of a WebSocket. */
export interface Wire {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onclose: (() => void) | null;
  onmessage: ((message: { data: string }) => void) | null;
}

export interface Surroundings {
  /** A ticket for one connection. */
  ticket: () => Promise<string>;
  connect: (ticket: string) => Wire;
  later: (action: () => void, ms: number) => () => void;
}

/** What is typed: as it is, by the names of keys, or as one paste. */
export type Typed = { text: string } | { keys: string[] } | { paste: string };

export type Connection = "connecting" | "live" | "lost";

export interface Listener {
  event: (event: Happening) => void;
  connection: (state: Connection) => void;
}

const SOONEST = 500;
const LATEST = 5000;
const PULSE = 20_000;
const PATIENCE = 10_000;
/** How long a connection may take to say that it lives when somebody comes back to it. */
const BRIEF_PATIENCE = 3000;

/** Why nothing is sent, answered or ended now, null when it may be: what is shown may be old, and somebody else there. */
export function notNow(connection: Connection): string | null {
  if (connection === "live") return null;
  if (connection === "lost") return "The connection is lost: what is shown may be old. Wait until it is back, and look again.";
  return "Not connected yet: what is shown may be old.";
}

/** How long to wait before the next try: twice as long each time, up to some seconds. */
export function pause(failures: number): number {
  return Math.min(LATEST, SOONEST * 2 ** Math.max(0, failures - 1));
}

/** The connection, made again whenever it is lost, from the last event that was handed on. */
export class Socket {
  private wire: Wire | null = null;
  private isOpen = false;
  /** A ticket is being asked for. */
  private isOpening = false;
  private failures = 0;
  private numbers = 0;
  private stopped = false;
  private cancelRetry: (() => void) | null = null;
  private cancelPulse: (() => void) | null = null;
  private readonly terminals = new Map<string, (frame: TerminalFrame) => void>();
  private readonly awaited = new Map<number, (answer: { result: "sent" | "refused"; why?: string | null }) => void>();

  constructor(
    private readonly around: Surroundings,
    private readonly listener: Listener,
    /** The last event that was handed on; null: from now on. */
    public cursor: number | null,
  ) {}

  start(): void {
    this.stopped = false;
    void this.open();
  }

  stop(): void {
    this.stopped = true;
    this.cancelRetry?.();
    this.drop();
  }

  /** Somebody is back: try at once, whatever the time until the next try; and see whether a connection that is there lives. */
  hurry(): void {
    if (this.stopped) return;
    this.failures = 0;
    if (this.isOpen) this.probe(BRIEF_PATIENCE);
    if (this.wire !== null || this.isOpening) return;
    this.cancelRetry?.();
    void this.open();
  }

  private async open(): Promise<void> {
    this.listener.connection("connecting");
    let wire: Wire;
    this.isOpening = true;
    try {
      wire = this.around.connect(await this.around.ticket());
    } catch {
      this.retry();
      return;
    } finally {
      this.isOpening = false;
    }
    if (this.isStopped()) {
      wire.close();
      return;
    }
    this.wire = wire;
    wire.onopen = () => this.opened();
    wire.onmessage = (message) => {
      if (this.wire === wire) this.take(message.data);
    };
    wire.onclose = () => {
      if (this.wire === wire) this.lost();
    };
  }

  private isStopped(): boolean {
    return this.stopped;
  }

  private opened(): void {
    this.isOpen = true;
    this.failures = 0;
    this.listener.connection("live");
    this.say({ op: "subscribe", after: this.cursor });
    for (const run of this.terminals.keys()) this.say({ op: "open", run });
    this.pulse();
  }

  /** A connection that is half dead says nothing: whoever does not answer in time is left. */
  private pulse(): void {
    this.cancelPulse = this.around.later(() => this.probe(PATIENCE), PULSE);
  }

  private probe(patience: number): void {
    this.cancelPulse?.();
    this.say({ op: "ping" });
    this.cancelPulse = this.around.later(() => this.lost(), patience);
  }

  private take(text: string): void {
    const frame = JSON.parse(text) as Frame;
    if (this.cancelPulse) {
      this.cancelPulse();
      this.pulse();
    }
    switch (frame.type) {
      case "event":
        // A number that was handed on already comes again only by mistake; 0 is a thought that was not stored.
        if (frame.event.seq !== 0) {
          if (this.cursor !== null && frame.event.seq <= this.cursor) return;
          this.cursor = frame.event.seq;
        }
        this.listener.event(frame.event);
        return;
      case "subscribed":
        // From here on nothing is missed, also when the connection is lost before anything has happened.
        this.cursor ??= frame.after;
        return;
      case "lagged":
        this.say({ op: "subscribe", after: this.cursor ?? frame.after });
        return;
      case "ack":
        this.awaited.get(frame.id)?.(frame);
        this.awaited.delete(frame.id);
        return;
      case "screen":
      case "output":
      case "resized":
      case "size":
      case "closed":
        this.terminals.get(frame.run)?.(frame);
        return;
      case "error":
        if (frame.run) this.terminals.get(frame.run)?.({ type: "closed", run: frame.run, why: frame.message });
        return;
      case "pong":
        return;
    }
  }

  private lost(): void {
    this.drop();
    for (const answer of this.awaited.values()) answer({ result: "refused", why: "The connection was lost; whether it arrived is not known." });
    this.awaited.clear();
    if (!this.stopped) this.retry();
  }

  private drop(): void {
    const wire = this.wire;
    this.wire = null;
    this.isOpen = false;
    this.cancelPulse?.();
    this.cancelPulse = null;
    wire?.close();
  }

  private retry(): void {
    this.failures += 1;
    this.listener.connection("lost");
    this.cancelRetry = this.around.later(() => void this.open(), pause(this.failures));
  }

  private say(message: object): boolean {
    if (!this.isOpen || this.wire === null) return false;
    this.wire.send(JSON.stringify(message));
    return true;
  }

  /** Follow a terminal, also across reconnects, until the function that is returned is called. */
  watch(run: string, take: (frame: TerminalFrame) => void): () => void {
    this.terminals.set(run, take);
    this.say({ op: "open", run });
    return () => {
      if (this.terminals.get(run) !== take) return;
      this.terminals.delete(run);
      this.say({ op: "close", run });
    };
  }

  /** Type into a terminal; says what came of it. */
  type(run: string, what: Typed): Promise<{ result: "sent" | "refused"; why?: string | null }> {
    const id = ++this.numbers;
    if (!this.say({ op: "input", run, id, ...what })) {
      return Promise.resolve({ result: "refused", why: "There is no connection; nothing was typed." });
    }
    return new Promise((resolve) => this.awaited.set(id, resolve));
  }

  takeSize(run: string, cols: number, rows: number): void {
    this.say({ op: "take_size", run, cols, rows });
  }

  releaseSize(run: string): void {
    this.say({ op: "release_size", run });
  }
}
