import { expect, test } from "vitest";
import type { Happening } from "../src/api/shapes";
import { applied } from "../src/runs/applying";
import { aRun } from "./runs";

const happened = (kind: string, data: Record<string, unknown>): Happening => (
  { seq: 7, at: "2026-11-15T12:00:00Z", kind, run: "r1", server: null, data }
);

test("what is said of a run changes with its state, in one event", () => {
  const busy = aRun({ id: "r1", state: "busy", thought: "running the tests" });
  const change = { state: "attention", reason: "done", cause: "hook:Stop", confidence: "high", from: "busy", to: "attention(done)" };
  const [done] = applied([busy], happened("state_changed", { ...change, thought: "done: All is well." }));
  expect([done?.state, done?.reason, done?.thought]).toEqual(["attention", "done", "done: All is well."]);
  const [silent] = applied([busy], happened("state_changed", { ...change, thought: null }));
  expect(silent?.thought).toBeNull();
  // An event of before does not say.
  expect(applied([busy], happened("state_changed", change))[0]?.thought).toBe("running the tests");
});

test("a thought that says nothing takes the words of before away", () => {
  const busy = aRun({ id: "r1", state: "busy", thought: "running the tests", objective: "make it faster" });
  const [run] = applied([busy], happened("thought", { thought: null, objective: "make it faster" }));
  expect([run?.thought, run?.objective]).toEqual([null, "make it faster"]);
  // Nobody is asked for anything where the agent has left, or another has come.
  expect(applied([busy], happened("thought", { thought: null, objective: null }))[0]?.objective).toBeNull();
});

test("what is followed no longer is told from what is gone", () => {
  const [letGo] = applied([aRun({ id: "r1" })], happened("run_deleted", { reason: "api_delete", mode: "detach" }));
  expect([letGo?.detached, letGo?.ended_at]).toEqual([true, "2026-11-15T12:00:00Z"]);
  const [gone] = applied([aRun({ id: "r1" })], happened("run_deleted", { reason: "tmux_reconcile_missing" }));
  expect([gone?.detached, gone?.ended_at]).toEqual([false, "2026-11-15T12:00:00Z"]);
});
