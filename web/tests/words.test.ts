import { expect, test } from "vitest";
import { applied } from "../src/runs/applying";
import { stretches, turnIn, wordsOf } from "../src/chats/words";
import { inWords } from "../src/events/words";
import { commandOf } from "../src/jobs/words";
import { becauseOf } from "../src/pane/happened";
import { closedBecause, knownBy, toldOf } from "../src/text/causes";
import { letterSize, redraw } from "../src/pane/fitting";
import { choicesOf } from "../src/pane/prompts";
import { saidOf } from "../src/pane/telling";
import { isPaste, type Pressed } from "../src/pane/typing";
import { endedLately } from "../src/runs/ended";
import { parseWord } from "../src/runs/states";
import { addressOf, placeOf } from "../src/shell/route";
import { latestOf, nextLook, progressOf, unfinished, wanting, type RestoreLine } from "../src/time-machine/progress";
import { grown, heaped, placed } from "../src/time-machine/timeline";
import type { Job, RestoreStep, Run, SnapshotLine } from "../src/api/shapes";
import { lostOf, saidOfLost } from "../src/runs/hosts";
import { changeOf, type Settings } from "../src/settings/shapes";
import { aRun } from "./runs";

test("an event shows at once in the run it is about, and in no other", () => {
  const runs = [aRun({ id: "r1" }), aRun({ id: "r2", thought: "working" })];
  const event = {
    seq: 9, at: "2026-11-15T13:00:00Z", kind: "state_changed", run: "r2", server: null,
    data: { state: "attention", reason: "permission", cause: "screen:ask", confidence: "high", from: "busy", to: "attention(permission)", because: "Its screen shows it.", thought: null },
  };
  const [first, second] = applied(runs, event);
  expect(first).toBe(runs[0]);
  expect(second).toMatchObject({ state: "attention", reason: "permission", since: event.at, previous: "busy", because: "Its screen shows it.", thought: null });
  const [, back] = applied([aRun({ id: "r1" }), second ?? aRun({})], { ...event, data: { state: "idle", cause: "seen" } });
  expect(back?.reason).toBeNull();
});

test("a state with its reason is read", () => {
  expect(parseWord("attention(permission)")).toEqual({ state: "attention", reason: "permission" });
  expect(parseWord("idle")).toEqual({ state: "idle", reason: null });
});

test("what was found is marked by characters, and marks that fit nowhere are none", () => {
  expect(stretches("👩 tiles", [[2, 7]])).toEqual([{ text: "👩 ", isFound: false }, { text: "tiles", isFound: true }]);
  expect(stretches("abc", [[2, 9], [1, 1]])).toEqual([{ text: "abc", isFound: false }]);
  expect(stretches("abcd", [[1, 3], [0, 2]]).map((each) => each.text).join("")).toBe("abcd");
});

test("a turn is told with its parts and its calls", () => {
  const turn = { position: 1, role: "assistant", at: "", content: [{ type: "text", text: "Hello" }, { type: "image" }], tool_calls: [{ function: { name: "run", arguments: "{}" } }] };
  expect(wordsOf(turn)).toBe('Hello\n{"type":"image"}\ncalls run {}');
});

test("addresses lead where they came from, whatever is in an id", () => {
  for (const id of ["r7", "a/b", "ü %", "?#"]) expect(placeOf(addressOf("chats", id))).toEqual({ screen: "chats", id });
  expect(placeOf("/nowhere")).toEqual({ screen: "runs", id: null });
  expect(placeOf("/runs/%E0%A4")).toEqual({ screen: "runs", id: "%E0%A4" });
});

test("a prompt always has a way out, and an answer where the screen does not tell which there are", () => {
  const choices = [{ key: "1", label: "Yes" }, { key: "2", label: "No" }];
  expect(choicesOf({ prompt: "?", choices }).map((each) => each.key)).toEqual(["1", "2", "Escape"]);
  expect(choicesOf({ prompt: "?", choices: [] }).map((each) => each.key)).toEqual(["Enter", "Escape"]);
});

test("a cause is said as the daemon says it, with its name beside it, and where it says nothing, as it is", () => {
  expect(toldOf("screen:sim.ask", "Its screen shows it.")).toEqual({ words: "its screen shows it", id: "screen:sim.ask" });
  expect(toldOf("seen", "Somebody has seen it.")).toEqual({ words: "somebody has seen it", id: null });
  expect(toldOf("oracle:x", undefined)).toEqual({ words: "oracle:x", id: null });
  expect(toldOf(undefined, undefined)).toEqual({ words: "", id: null });
  const gone = { seq: 1, at: "", kind: "run_deleted", run: "r1", server: null, data: { target: "fix:0.0", reason: "tmux_reconcile_missing", because: "Its pane was closed." } };
  expect(inWords(gone)).toEqual({ words: "fix:0.0, its pane was closed", id: "tmux_reconcile_missing" });
  expect(becauseOf(gone)).toEqual({ words: "its pane was closed", id: "tmux_reconcile_missing" });
});

test("how a conversation is known, and why a chat was closed, is said in words", () => {
  for (const evidence of ["registry", "hook", "open-file", "remembered", "argv", "title", "guess", "launch", "kept"]) expect(knownBy(evidence)).not.toMatch(/^[\w-]+$/);
  expect(closedBecause("resume_expired")).toMatch(/ /);
  // Whatever it is called.
  expect([knownBy("stars"), closedBecause("constructor")]).toEqual(["stars", "constructor"]);
});

test("states in events are called what they are called everywhere on the page", () => {
  const event = { seq: 1, at: "", kind: "state_changed", run: "r1", server: null, data: { from: "busy", to: "attention(permission)", cause: "hook:PermissionRequest", because: "A hook of the agent's has told it." } };
  expect(inWords(event)).toEqual({ words: "busy → wants permission: a hook of the agent's has told it", id: "hook:PermissionRequest" });
});

test("events nobody has words for are told by what they hold", () => {
  expect(inWords({ seq: 1, at: "", kind: "moon_rose", run: null, server: null, data: { over: "sea", deep: {}, none: null } }).words).toBe("over sea");
});

test("what came of telling somebody something is a sentence", () => {
  expect(saidOf({ result: "refused", why: "'and then' stands in its input, and the text would be joined with it" })).toBe("Nothing was typed: 'and then' stands in its input, and the text would be joined with it.");
  expect(saidOf({ result: "delivered", by: "transcript", why: "its transcript says so" })).toBe("It heard you: its transcript says so.");
  expect(saidOf({ result: "unconfirmed" })).toBe("It was typed, but nothing shows yet that it was heard.");
});

test("letters are neither too small nor too large", () => {
  const room = { width: 800, height: 600 };
  expect(letterSize(80, room, 0.6)).toBe(15);
  expect(letterSize(400, room, 0.6)).toBe(9);
  expect(letterSize(120, room, 0.6)).toBeCloseTo(11, 0);
});

test("a screen is drawn with the cursor where it was", () => {
  expect(redraw("a\nb\n", { x: 3, y: 1 })).toBe("a\r\nb\u001b[0m\u001b[2;4H");
});

const snapshot = (id: string, minutes: number): SnapshotLine => ({
  id, host: "h", user: "u", socket: "s", taken_at: new Date(Date.parse("2026-11-15T12:00:00Z") - minutes * 60_000).toISOString(),
  last_seen_at: "", sessions: 1, windows: 1, panes: 1, agents: 1, origin: "capture",
});

test("the newest snapshot stands at the right end, the oldest at the left, and neighbours are heaped", () => {
  const marks = placed([snapshot("old", 10_000), snapshot("new", 1), snapshot("mid", 60), snapshot("mid2", 60.5)], Date.parse("2026-11-15T12:00:00Z"));
  expect(marks.map((each) => each.snapshot.id)).toEqual(["new", "mid", "mid2", "old"]);
  expect([marks[0]?.at, marks[3]?.at]).toEqual([1, 0]);
  expect(heaped(marks, 0.02).map((heap) => heap.length)).toEqual([1, 2, 1]);
});

test("a restore says how far it has come, and a plan what it would bring back", () => {
  const step = (result: string): RestoreStep => ({ n: 1, target: "", action: "resume", agent: null, conversation: null, argv: [], cwd: "", result, why: "", user: "", socket: "", pane: null, screen: [] });
  const steps = [step("verified"), step("failed"), step("planned")];
  const restore = { id: "x", steps, errors: [], settled: 2, total: 3, message: "", began_at: "2026-11-15T12:00:00Z" };
  expect(progressOf({ ...restore, state: "running" })).toMatchObject({ verified: 1, failed: 1 });
  expect(progressOf({ ...restore, state: "partly" })).toMatchObject({ word: "Partly back" });
  expect(wanting(restore)).toBe(1);
  expect(nextLook({ ...restore, state: "running" })).toBeLessThan(nextLook({ ...restore, state: "interrupted" }) ?? 0);
  expect(nextLook({ ...restore, state: "done" })).toBeNull();
});

test("a restore that was interrupted is found again by its snapshot, unless a later one of it came to its end", () => {
  const line = (id: string, state: RestoreLine["state"], hour: number, ...snapshots: string[]): RestoreLine => ({ id, state, snapshot: snapshots[0] ?? null, snapshots, began_at: `2026-11-15T${hour}:00:00Z`, ended_at: null, settled: 0, total: 0, summary: null, message: "", here: true, user: null });
  const lines = [line("other", "running", 15, "b"), line("cut", "interrupted", 14, "a", "c"), line("old", "done", 13, "a")];
  expect(unfinished(lines, "a")?.id).toBe("cut");
  expect(unfinished([...lines, line("again", "done", 16, "a")], "a")).toBeNull();
  expect(unfinished(lines, "nobody's")).toBeNull();
  // What became of one that was begun at three.
  expect(latestOf([...lines, line("ours", "done", 15, "a")], "a", Date.parse("2026-11-15T15:00:00Z"))?.id).toBe("ours");
  expect(latestOf(lines, "a", Date.parse("2026-11-15T15:00:00Z"))).toBeNull();
});

test("keys that paste are the browser's, and all others are the pane's", () => {
  const pressed = (key: string, held: Partial<Pressed> = {}): Pressed => ({ key, ctrlKey: false, shiftKey: false, altKey: false, metaKey: false, ...held });
  expect(isPaste(pressed("v", { ctrlKey: true }))).toBe(true);
  expect(isPaste(pressed("V", { ctrlKey: true, shiftKey: true }))).toBe(true);
  expect(isPaste(pressed("v", { metaKey: true }))).toBe(true);
  expect(isPaste(pressed("v"))).toBe(false);
  expect(isPaste(pressed("v", { ctrlKey: true, altKey: true }))).toBe(false);
  expect(isPaste(pressed("c", { ctrlKey: true }))).toBe(false);
});

test("what has ended is shown for a day, unless its conversation goes on elsewhere", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  const over = (id: string, at: string, conversation: string | null = null): Run => aRun({ id, ended_at: at, conversation });
  const runs = [
    aRun({ id: "r9", conversation: "went on" }), aRun({ id: "r8" }),
    over("r1", "2026-11-15T10:00:00Z"), over("r2", "2026-11-15T11:00:00Z", "over"),
    over("r3", "2026-11-15T11:30:00Z", "went on"), over("r4", "2026-11-13T11:00:00Z"),
  ];
  expect(endedLately(runs, now).map((run) => run.id)).toEqual(["r2", "r1"]);
});

test("a shell that was closed is not told of for a day, unless an agent was there or somebody let go of it", () => {
  const over = { ended_at: "2026-11-15T12:00:00Z", agent: null };
  const runs = [
    aRun({ id: "r1", ...over, command: "bash" }),
    aRun({ id: "r2", ...over, command: "-zsh" }),
    aRun({ id: "r3", ...over, command: "make" }),
    aRun({ id: "r4", ...over, command: "sh", last_agent: "simulant" }),
    aRun({ id: "r5", ...over, command: "sh", detached: true }),
  ];
  expect(endedLately(runs, Date.parse("2026-11-15T13:00:00Z")).map((run) => run.id)).toEqual(["r5", "r4", "r3"]);
});

test("an address leads to a turn of a chat, or to none", () => {
  expect(turnIn("#turn-17")).toBe(17);
  expect([turnIn(""), turnIn("#turn-"), turnIn("#main")]).toEqual([null, null, null]);
});

test("a command is shown as one would type it", () => {
  expect(commandOf({ shell: null, argv: ["echo", "it's", "a b"] } as unknown as Job)).toBe(`echo 'it'"'"'s' 'a b'`);
});

test("only what differs is asked to be changed", () => {
  const settings: Settings = {
    version: "v", file: "", hooks: [], live: { restore: false },
    restore: { programs: ["vim", "less"], max_parallel: 4, memory_pressure: 20, verify_seconds: 60 },
    retention: { everything_hours: 24, hourly_days: 7, daily_days: 90, events_days: 30, runs_days: 90 },
  };
  const form = new Map([["restore.programs", "vim, less"], ["restore.max_parallel", "4"]]);
  expect(changeOf(settings, form)).toEqual({});
  expect(changeOf(settings, new Map([["restore.programs", "vim"], ["restore.max_parallel", "8"], ["live.restore", "on"]]))).toEqual({
    restore: { max_parallel: 8, programs: ["vim"] },
    live: { restore: true },
  });
});

test("a server that is gone is offered to be brought back for a day", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  const server = { key: "k", socket: "/tmp/x", alive: false, snapshot: "abc", last_seen_at: "2026-11-15T11:00:00Z" };
  expect(lostOf([server], now)).toHaveLength(1);
  expect(lostOf([{ ...server, alive: true }, { ...server, snapshot: null }, { ...server, last_seen_at: "2026-11-13T11:00:00Z" }], now)).toEqual([]);
});

test("a snapshot's age is told as what it is, not as when its server was last there", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  const [gone] = lostOf([{ key: "k", socket: "/tmp/tmux-1000/work", alive: false, snapshot: "abc", last_seen_at: "2026-11-15T11:20:00Z" }], now);
  if (gone === undefined) throw new Error("It is offered.");
  const said = saidOfLost(gone, now);
  expect(said).toMatch(/saved.*40 min/);
  expect(said).not.toMatch(/seen/);
});

test("moments that look alike are told apart by what has come and gone since the one before, on the same server", () => {
  const taken = (id: string, at: string, agents: number, panes: number, socket = "/tmp/default"): SnapshotLine => ({
    id, host: "laptop", user: "dev", socket, taken_at: at, last_seen_at: at, sessions: 1, windows: 1, panes, agents, origin: "capture",
  });
  const found = grown([
    taken("d", "2026-11-15T12:00:03Z", 1, 4),
    taken("c", "2026-11-15T12:00:02Z", 1, 4),
    taken("x", "2026-11-15T12:00:02Z", 9, 9, "/tmp/other"),
    taken("b", "2026-11-15T12:00:01Z", 2, 3),
    taken("a", "2026-11-15T12:00:00Z", 1, 1),
  ]);
  expect(Object.fromEntries(found)).toEqual({ b: "+1 agent, +2 panes", c: "\u22121 agent, +1 pane", d: "changed in detail" });
});
