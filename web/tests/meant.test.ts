import { expect, test } from "vitest";
import { notNow } from "../src/api/socket";
import { cameOf, isForAnother, isReplaced, meantFor, written } from "../src/pane/telling";

const NOTHING = { text: "", who: null };

test("a text is meant for who was shown when its writing began, whoever is shown by now", () => {
  const begun = written(NOTHING, "r", "first");
  const done = written(begun, "run the tests", "second");
  expect(done).toEqual({ text: "run the tests", who: "first" });
  expect(meantFor(done, "second")).toBe("first");
});

test("who has emptied the field begins anew", () => {
  const emptied = written({ text: "r", who: "first" }, "", "second");
  expect(written(emptied, "w", "second").who).toBe("second");
});

const ANOTHER = { result: "refused", why: "another agent was started there meanwhile; look again" };

test("what was not typed stays, for who it was meant for, until somebody turns it to who is shown", () => {
  const text = { text: "run the tests", who: "first" };
  const refused = cameOf(text, text, ANOTHER);
  expect(refused).toEqual(text);
  // Sent again, or gone on with, it is for no other.
  expect(meantFor(refused, "second")).toBe("first");
  expect(written(refused, "run the tests!", "second").who).toBe("first");
  expect(isForAnother(refused, "second")).toBe(true);
  expect(isForAnother(refused, "first")).toBe(false);
  expect(isForAnother(NOTHING, "first")).toBe(false);
  expect(isReplaced(ANOTHER)).toBe(true);
  expect(isReplaced({ result: "refused", why: "it asks something" })).toBe(false);
});

test("what is added to what somebody has begun is for the one who was asked about", () => {
  const text = { text: "run", who: "first" };
  const refused = cameOf(text, text, { result: "refused", why: "'x' stands in its input", draft: "x" });
  expect(meantFor(refused, "second")).toBe("first");
});

test.each(["delivered", "unconfirmed"])("what was typed is gone from the field, and nothing else: %s", (result) => {
  const sent = { text: "run", who: "first" };
  expect(cameOf(sent, sent, { result })).toEqual(NOTHING);
  // What was written while it was sent goes on, for the same.
  expect(cameOf({ text: "run\nand then stop", who: "first" }, sent, { result })).toEqual({ text: "and then stop", who: "first" });
  expect(cameOf({ text: "something else", who: "second" }, sent, { result })).toEqual({ text: "something else", who: "second" });
});

test("what was written while something was refused stays behind it", () => {
  const sent = { text: "run", who: "first" };
  expect(cameOf({ text: "run it", who: "first" }, sent, ANOTHER)).toEqual({ text: "run it", who: "first" });
});

test("nothing is sent, answered or ended while what is shown may be old", () => {
  expect(notNow("live")).toBeNull();
  expect(notNow("lost")).toContain("connection is lost");
  expect(notNow("connecting")).toContain("connect");
});
