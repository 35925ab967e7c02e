import { expect, test } from "vitest";
import { agentsOf, doing, grouped, groupOf, matches, nameOf } from "../src/runs/grouping";
import { aRun } from "./runs";

test("whoever needs somebody comes first, then the busy, the idle, shells and what has ended", () => {
  const runs = [
    aRun({ id: "r1", state: "exited" }),
    aRun({ id: "r2", agent: null, state: "busy" }),
    aRun({ id: "r3", state: "idle" }),
    aRun({ id: "r4", state: "busy" }),
    aRun({ id: "r5", state: "attention", reason: "question" }),
    aRun({ id: "r6", state: "unknown" }),
  ];
  expect(grouped(runs).map((group) => [group.name, group.runs.map((run) => run.id)])).toEqual([
    ["needs", ["r5"]],
    ["busy", ["r4"]],
    ["idle", ["r3"]],
    ["unknown", ["r6"]],
    ["shells", ["r2"]],
    ["ended", ["r1"]],
  ]);
});

test("a permission comes before a turn that is done, and of two who waits longer", () => {
  const runs = [
    aRun({ id: "r1", state: "attention", reason: "done", since: "2026-11-15T10:00:00Z" }),
    aRun({ id: "r2", state: "attention", reason: "permission", since: "2026-11-15T12:00:00Z" }),
    aRun({ id: "r3", state: "attention", reason: "permission", since: "2026-11-15T11:00:00Z" }),
    aRun({ id: "r4", state: "error", since: "2026-11-15T09:00:00Z" }),
  ];
  expect(grouped(runs)[0]?.runs.map((run) => run.id)).toEqual(["r3", "r2", "r4", "r1"]);
});

test("every run is in exactly one group, whatever it says of itself", () => {
  const states = ["idle", "busy", "attention", "error", "exited", "unknown", "something new"] as const;
  const runs = states.flatMap((state, place) => [
    aRun({ id: `a${place}`, state: state as "idle" }),
    aRun({ id: `s${place}`, state: state as "idle", agent: null }),
  ]);
  const ids = grouped(runs).flatMap((group) => group.runs.map((run) => run.id));
  expect([...ids].sort()).toEqual(runs.map((run) => run.id).sort());
});

test("a shell that needs somebody is not hidden among the shells", () => {
  expect(groupOf(aRun({ agent: null, state: "attention", reason: "done" }))).toBe("needs");
});

test("every word has to be somewhere, in any case", () => {
  const run = aRun({ thought: "Editing parser.py", cwd: "/home/dev/roof", agent: "simulant" });
  expect(matches(run, { text: "PARSER roof", agent: null })).toBe(true);
  expect(matches(run, { text: "parser cellar", agent: null })).toBe(false);
  expect(matches(run, { text: "", agent: "shell" })).toBe(false);
});

test("agents are counted, shells last", () => {
  expect(agentsOf([aRun({ agent: null }), aRun({ agent: "zed" }), aRun({ agent: "amp" }), aRun({ agent: "zed" })])).toEqual([
    ["amp", 1],
    ["zed", 2],
    ["shell", 1],
  ]);
});

test("a session with one pane is called by its name, panes of one session by their places", () => {
  const alone = aRun({ session: "fix", target: "fix:0.0" });
  const two = [aRun({ id: "r2", session: "web", target: "web:0.0" }), aRun({ id: "r3", session: "web", target: "web:0.1" })];
  expect(nameOf(alone, [alone, ...two])).toBe("fix");
  expect(two.map((run) => nameOf(run, [alone, ...two]))).toEqual(["web:0.0", "web:0.1"]);
});

test("a thought says more than a title, and a shell is told by its program", () => {
  expect(doing(aRun({ thought: "running the tests", title: "x" }))).toBe("running the tests");
  expect(doing(aRun({ agent: null, command: "make", title: "x" }))).toBe("make");
  expect(doing(aRun({}))).toBeNull();
});
