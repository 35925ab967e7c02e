// What came of telling a run something. Pure.

export interface Delivered {
  result: string;
  /** Who says that it was heard. */
  by?: string | null;
  why?: string | null;
  /** What somebody has begun to type there, where nothing was typed because of that. */
  draft?: string | null;
}

const SAID: Record<string, string> = {
  delivered: "It heard you",
  unconfirmed: "It was typed, but nothing shows yet that it was heard",
  refused: "Nothing was typed",
};

export function saidOf({ result, why }: Delivered): string {
  const what = SAID[result] ?? result;
  return why ? `${what}: ${why}.` : `${what}.`;
}
