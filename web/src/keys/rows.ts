import { useLayoutEffect } from "preact/hooks";
import { bind, type Binding } from "./keys";

/** The rows of the screen, in the order they are seen. */
const rows = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>("[data-row]")];

/** Go so many rows further; from nowhere, to the first. */
export function step(by: number): void {
  const all = rows();
  const at = all.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by));
  all[next]?.focus();
  all[next]?.scrollIntoView({ block: "nearest" });
}

/** j and k go through the rows, / goes to the field that finds, and whatever else a screen wants. */
export function useRowKeys(more: Binding[] = []): void {
  // Before the rows are shown: whoever sees them may press a key at once.
  useLayoutEffect(
    () =>
      bind([
        { keys: ["j", "ArrowDown"], does: "next row", action: () => step(1) },
        { keys: ["k", "ArrowUp"], does: "row before", action: () => step(-1) },
        { keys: ["Enter"], does: "open it", action: () => step(0) },
        { keys: ["/"], does: "find", action: () => document.querySelector<HTMLElement>("[data-find]")?.focus() },
        ...more,
      ]),
    [],
  );
}
