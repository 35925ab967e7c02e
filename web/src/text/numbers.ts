/** 950, 12k, 1.2M: as much as tells one amount from another. */
export function amount(number: number): string {
  if (number < 1000) return String(number);
  if (number < 1_000_000) return `${Math.round(number / 1000)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

/** `1 pane`, `2 panes`. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
