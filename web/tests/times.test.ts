import { expect, test } from "vitest";
import { amount, counted } from "../src/text/numbers";
import { dayOf, lasting, moment } from "../src/text/times";

const NOW = Date.parse("2026-11-15T12:00:00Z");

test.each([
  [0, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_599_999, "59 min"],
  [3_600_000, "1 h"],
  [86_400_000, "1 d"],
  [40 * 86_400_000, "40 d"],
])("%i ms are %s", (ms, words) => {
  expect(lasting(NOW - ms, NOW)).toBe(words);
});

test("a clock that is ahead makes nothing negative", () => {
  expect(lasting(NOW + 5000, NOW)).toBe("0 s");
});

test("what is no moment is none", () => {
  expect(moment(null)).toBeNull();
  expect(moment("soon")).toBeNull();
  expect(moment("2026-11-15T12:00:00Z")).toBe(NOW);
});

test("days have names", () => {
  expect(dayOf(NOW, NOW)).toBe("Today");
  expect(dayOf(NOW - 86_400_000, NOW)).toBe("Yesterday");
});

test("amounts and counts", () => {
  expect([amount(950), amount(12_345), amount(1_234_567)]).toEqual(["950", "12k", "1.2M"]);
  expect([counted(1, "pane"), counted(2, "pane")]).toEqual(["1 pane", "2 panes"]);
});
