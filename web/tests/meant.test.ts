import { expect, test } from "vitest";
import { notNow } from "../src/api/socket";
import { cameOf, meantFor, written } from "../src/pane/telling";

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

test("what was not typed stays, and is meant for who is shown once somebody has looked again", () => {
  const text = { text: "run the tests", who: "first" };
  const refused = cameOf(text, { result: "refused", why: "another agent was started there meanwhile; look again" });
  expect(refused.text).toBe("run the tests");
  expect(meantFor(refused, "second")).toBe("second");
  expect(written(refused, "run the tests!", "second").who).toBe("second");
});

test("what is added to what somebody has begun is for the one who was asked about", () => {
  const refused = cameOf({ text: "run", who: "first" }, { result: "refused", why: "'x' stands in its input", draft: "x" });
  expect(meantFor(refused, "second")).toBe("first");
});

test("what was typed is gone from the field", () => {
  expect(cameOf({ text: "run", who: "first" }, { result: "delivered" })).toEqual(NOTHING);
  expect(cameOf({ text: "run", who: "first" }, { result: "unconfirmed" })).toEqual(NOTHING);
});

test("nothing is sent, answered or ended while what is shown may be old", () => {
  expect(notNow("live")).toBeNull();
  expect(notNow("lost")).toContain("connection is lost");
  expect(notNow("connecting")).toContain("connect");
});
