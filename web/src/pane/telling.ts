// What a run is told, whom that is meant for, and what came of it. Pure.

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

/** What stands in the field, and for whom: null for whoever is shown when it is sent. */
export interface Writing {
  text: string;
  who: string | null;
}

/** The field with another text. It is for who was shown when the writing began, whoever is shown by now. */
export function written(before: Writing, text: string, shown: string | null): Writing {
  return { text, who: before.text === "" ? shown : (before.who ?? shown) };
}

/** Whom a text is for that is sent now. */
export function meantFor({ who }: Writing, shown: string | null): string | null {
  return who ?? shown;
}

/** What is left of it: nothing of what was typed. What was refused stays, for who is shown when somebody has looked again. */
export function cameOf(sent: Writing, { result, draft }: Delivered): Writing {
  if (result !== "refused") return { text: "", who: null };
  return typeof draft === "string" ? sent : { text: sent.text, who: null };
}
