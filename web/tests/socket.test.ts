import { expect, test } from "vitest";
import type { Happening } from "../src/api/shapes";
import { pause, Socket, type Connection, type Wire } from "../src/api/socket";

class FakeWire implements Wire {
  said: Record<string, unknown>[] = [];
  isClosed = false;
  onopen: (() => void) | null = null;
  onclose: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;

  send(text: string): void {
    this.said.push(JSON.parse(text) as Record<string, unknown>);
  }

  close(): void {
    this.isClosed = true;
  }

  hear(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
}

const anEvent = (seq: number): { type: string; event: Happening } => ({
  type: "event",
  event: { seq, at: "2026-11-15T12:00:00Z", kind: "seen", run: "r1", server: null, data: {} },
});

/** A socket on a server that is played by the test; time passes when the test says so. */
function played(refuses = 0) {
  const wires: FakeWire[] = [];
  const timers: { action: () => void; ms: number; isCancelled: boolean }[] = [];
  const events: number[] = [];
  const states: Connection[] = [];
  let refusals = refuses;
  const socket = new Socket(
    {
      ticket: () => (refusals-- > 0 ? Promise.reject(new Error("no")) : Promise.resolve("once")),
      connect: () => {
        const wire = new FakeWire();
        wires.push(wire);
        return wire;
      },
      later: (action, ms) => {
        const timer = { action, ms, isCancelled: false };
        timers.push(timer);
        return () => (timer.isCancelled = true);
      },
    },
    { event: (event) => events.push(event.seq), connection: (state) => states.push(state) },
    null,
  );
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  const pass = async (most: number) => {
    for (const timer of timers.splice(0)) if (!timer.isCancelled && timer.ms <= most) timer.action();
    await settle();
  };
  return { socket, wires, timers, events, states, settle, pass };
}

test("after a loss it goes on behind the last event it handed on", async () => {
  const { socket, wires, events, states, settle, pass } = played();
  socket.start();
  await settle();
  wires[0]?.onopen?.();
  wires[0]?.hear(anEvent(41));
  wires[0]?.hear(anEvent(42));
  wires[0]?.onclose?.();
  await pass(1000);
  wires[1]?.onopen?.();
  expect(wires[0]?.said).toEqual([{ op: "subscribe", after: null }]);
  expect(wires[1]?.said).toEqual([{ op: "subscribe", after: 42 }]);
  wires[1]?.hear(anEvent(42));
  wires[1]?.hear(anEvent(43));
  expect(events).toEqual([41, 42, 43]);
  expect(states).toEqual(["connecting", "live", "lost", "connecting", "live"]);
});

test("a connection that is lost before anything has happened misses nothing either", async () => {
  const { socket, wires, settle, pass } = played();
  socket.start();
  await settle();
  wires[0]?.onopen?.();
  wires[0]?.hear({ type: "subscribed", after: 40 });
  wires[0]?.onclose?.();
  await pass(1000);
  wires[1]?.onopen?.();
  expect(wires[1]?.said).toEqual([{ op: "subscribe", after: 40 }]);
});

test("who lags subscribes again from where it was", async () => {
  const { socket, wires, settle } = played();
  socket.start();
  await settle();
  wires[0]?.onopen?.();
  wires[0]?.hear(anEvent(7));
  wires[0]?.hear({ type: "lagged", after: 7 });
  expect(wires[0]?.said.at(-1)).toEqual({ op: "subscribe", after: 7 });
});

test("a terminal that is watched is opened again after a loss, one that was left is not", async () => {
  const { socket, wires, settle, pass } = played();
  socket.start();
  await settle();
  wires[0]?.onopen?.();
  const frames: string[] = [];
  socket.watch("r1", (frame) => frames.push(frame.type));
  const leave = socket.watch("r2", () => undefined);
  leave();
  wires[0]?.onclose?.();
  await pass(1000);
  wires[1]?.onopen?.();
  expect(wires[1]?.said.filter((each) => each.op === "open")).toEqual([{ op: "open", run: "r1" }]);
  wires[1]?.hear({ type: "output", run: "r1", text: "x" });
  wires[1]?.hear({ type: "output", run: "r2", text: "x" });
  expect(frames).toEqual(["output"]);
});

test("what was typed is answered, and what a loss left open is not taken for sent", async () => {
  const { socket, wires, settle } = played();
  socket.start();
  await settle();
  expect((await socket.type("r1", { text: "a" })).result).toBe("refused");
  wires[0]?.onopen?.();
  const first = socket.type("r1", { text: "a" });
  const second = socket.type("r1", { keys: ["Enter"] });
  const ids = wires[0]?.said.filter((each) => each.op === "input").map((each) => each.id);
  wires[0]?.hear({ type: "ack", id: ids?.[0], result: "sent" });
  wires[0]?.onclose?.();
  expect((await first).result).toBe("sent");
  expect(await second).toMatchObject({ result: "refused", why: expect.stringContaining("not known") as string });
});

test("a server that does not answer is left, and tried again ever later", async () => {
  const { socket, wires, timers, settle, pass } = played(2);
  socket.start();
  await settle();
  expect(timers.at(-1)?.ms).toBe(500);
  await pass(500);
  expect(timers.at(-1)?.ms).toBe(1000);
  await pass(1000);
  wires[0]?.onopen?.();
  await pass(20_000);
  expect(wires[0]?.said.at(-1)).toEqual({ op: "ping" });
  await pass(10_000);
  expect(wires[0]?.isClosed).toBe(true);
});

test("pauses grow up to some seconds", () => {
  expect([1, 2, 3, 20].map(pause)).toEqual([500, 1000, 2000, 5000]);
});

test("who comes back is connected at once, by one connection, and soon again where that fails", async () => {
  const { socket, wires, timers, settle, pass } = played(5);
  socket.start();
  await settle();
  for (let tries = 0; tries < 3; tries++) await pass(60_000);
  expect(wires).toHaveLength(0);
  timers.splice(0);
  socket.hurry();
  socket.hurry();
  await settle();
  expect(timers.filter(({ isCancelled }) => !isCancelled).map(({ ms }) => ms)).toEqual([500]);
  await pass(500);
  expect(wires).toHaveLength(1);
  socket.hurry();
  await settle();
  expect(wires).toHaveLength(1);
});

test("a connection that may have died while nobody looked is asked at once, and left soon", async () => {
  const { socket, wires, states, settle, pass } = played();
  socket.start();
  await settle();
  wires[0]?.onopen?.();
  socket.hurry();
  expect(wires[0]?.said.at(-1)).toEqual({ op: "ping" });
  wires[0]?.hear({ type: "pong" });
  await pass(3000);
  expect(states.at(-1)).toBe("live");
  socket.hurry();
  await pass(3000);
  expect(wires[0]?.isClosed).toBe(true);
  expect(states.at(-1)).toBe("lost");
});
