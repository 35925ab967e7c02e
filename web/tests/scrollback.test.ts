import { expect, test } from "vitest";
import { next, placeAfter } from "../src/pane/scrollback";

test("what has scrolled away opens at its newest line, a page above what is live", () => {
  expect(placeAfter(null, { above: 190, rows: 10, history: 190 })).toBe(180);
  // Less than a page of it.
  expect(placeAfter(null, { above: 3, rows: 10, history: 3 })).toBe(0);
});

test("whoever reads keeps their place when older lines come above it", () => {
  const before = { top: 40, above: 2000, history: 9000 };
  expect(placeAfter(before, { above: 4000, rows: 24, history: 9000 })).toBe(2040);
  // Meanwhile five more have scrolled away below.
  expect(placeAfter(before, { above: 4005, rows: 24, history: 9005 })).toBe(2040);
  // Nothing is above the first line.
  expect(placeAfter({ top: 0, above: 50, history: 50 }, { above: 10, rows: 24, history: 10 })).toBe(0);
});

test("it is fetched by and by, and nothing is asked for that is not there", () => {
  expect(next(null)).toBe(2000);
  expect(next({ asked: 2000, history: 9000 })).toBe(8000);
  expect(next({ asked: 8000, history: 900_000 })).toBe(10_000);
  expect(next({ asked: 2000, history: 500 })).toBe(2000);
});
