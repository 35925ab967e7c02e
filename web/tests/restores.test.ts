import { expect, test } from "vitest";
import { cameTo, changesPlans, type RestoreLine } from "../src/time-machine/progress";

const line = (given: Partial<RestoreLine>): RestoreLine => ({
  id: "x1", state: "done", snapshot: "abc", snapshots: ["abc"], began_at: "2026-11-15T12:00:00Z", ended_at: "2026-11-15T12:00:09Z",
  settled: 3, total: 3, summary: { panes: 3, created: 3, resumed: 2, verified: 2, skipped: 0, failed: 0 }, message: "", here: true, user: "dev",
  ...given,
});

test("a restore is told by what came of it", () => {
  expect(cameTo(line({}))).toBe("3 panes opened, 2 agents resumed, 2 verified");
  expect(cameTo(line({ summary: { panes: 3, created: 2, resumed: 2, verified: 1, skipped: 0, failed: 1 }, state: "partly" }))).toBe("2 panes opened, 2 agents resumed, 1 verified, 1 failed");
  expect(cameTo(line({ summary: { panes: 3, created: 0, resumed: 0, verified: 0, skipped: 3, failed: 0 } }))).toBe("nothing had to be brought back");
});

test("of a restore that has no end it is told how far it came, and of one that could not be done, why", () => {
  expect(cameTo(line({ state: "running", summary: null, settled: 1 }))).toBe("1 of 3 panes so far");
  expect(cameTo(line({ state: "running", summary: null, settled: 1, message: "Memory is short." }))).toBe("1 of 3 panes so far. Memory is short.");
  expect(cameTo(line({ state: "interrupted", summary: null, settled: 0, total: 0 }))).toBe("how far it came is not known");
  expect(cameTo(line({ state: "failed", summary: null, message: "The server does not answer." }))).toBe("The server does not answer.");
});

test("a plan is made again when anybody has brought something back, also in a terminal, of which only what is saved tells", () => {
  const is = (kind: string, socket = "/tmp/ours"): boolean => changesPlans({ kind, data: { socket } }, "/tmp/ours");
  expect(["restored", "run_returned", "identity_changed", "saved"].every((kind) => is(kind))).toBe(true);
  expect(["seen", "thought", "state_changed"].some((kind) => is(kind))).toBe(false);
  expect([is("saved", "/tmp/another"), is("run_created", "/tmp/another")]).toEqual([false, true]);
});
