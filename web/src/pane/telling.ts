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
export function written(before: Writing, text: string, shown: string): Writing {
  return { text, who: before.text === "" ? shown : (before.who ?? shown) };
}

/** Whom a text is for that is sent now. */
export function meantFor({ who }: Writing, shown: string): string {
  return who ?? shown;
}

/** Whether it was refused because another is there than it was meant for. */
export function isReplaced({ result, why }: Delivered): boolean {
  return result === "refused" && (why ?? "").endsWith("look again");
}

/** Whether a text was begun for another than is shown by now: that one is told it only when somebody says so. */
export function isForAnother({ who }: Writing, shown: string): boolean {
  return who !== null && who !== shown;
}

/** What is left in the field, where something stands by now: what was not typed, and what was written meanwhile. For whom does not change. */
export function cameOf(now: Writing, sent: Writing, { result }: Delivered): Writing {
  if (result === "refused") return { ...now, who: now.who ?? sent.who };
  const text = now.text.startsWith(sent.text) ? now.text.slice(sent.text.length).trimStart() : now.text;
  return text === "" ? { text, who: null } : { ...now, text };
}
