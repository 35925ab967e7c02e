// Why something is so, in words. What causes mean the daemon says; the rest of what programs have names for is said here. Pure.

export interface Told {
  words: string;
  /** The name itself, for whoever wants to know exactly; null where the words say it already. */
  id: string | null;
}

type Words = Readonly<Record<string, string>>;

/** What a table says: names come from programs, and some are also those of what every object has. */
const found = (table: Words, name: string): string | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);

/** Why something is so: by a name, and by the sentence the daemon has for it. */
export function toldOf(name: unknown, sentence: unknown): Told {
  const id = typeof name === "string" ? name : "";
  if (typeof sentence !== "string") return { words: id, id: null };
  // A name of one word says no more than the sentence.
  return { words: within(sentence), id: /[:_]/.test(id) ? id : null };
}

/** A sentence as a part of another. */
function within(sentence: string): string {
  return sentence.slice(0, 1).toLowerCase() + sentence.slice(1).replace(/\.$/, "");
}

const EVIDENCE: Words = {
  registry: "its own list of what runs",
  hook: "its own hook",
  "open-file": "the file it has open",
  remembered: "the same process, known from before",
  argv: "its command line",
  title: "its title",
  guess: "what was used last here",
  launch: "what it waits to start",
  kept: "what could not be resumed here",
};

/** How a conversation was found. */
export function knownBy(evidence: string): string {
  return found(EVIDENCE, evidence) ?? evidence;
}

const CLOSED: Words = {
  idle: "nothing was said for long",
  daily: "a new day began",
  asked: "a new one was asked for",
  switched: "another was gone on with",
  suspended: "it was suspended for too long",
  resume_expired: "it was interrupted and not gone on with in time",
  compressed: "made shorter, it goes on in another",
  imported: "closed where it was taken over from",
};

/** Why a chat is not gone on with. */
export function closedBecause(reason: string): string {
  return found(CLOSED, reason) ?? reason;
}

const HEARD: Words = { delivered: "it was heard", unconfirmed: "nothing showed that it was heard" };

/** What came of something that was typed. */
export function heard(result: string): string {
  return found(HEARD, result) ?? result;
}
