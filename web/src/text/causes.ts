// Why something is so, in words: the one place that knows what the names programs use mean to people. Pure.

export interface Told {
  words: string;
  /** The name itself, for whoever wants to know exactly; null where the words say it already. */
  id: string | null;
}

type Words = Readonly<Record<string, string>>;

/** What a table says: names come from programs, and some are also those of what every object has. */
const found = (table: Words, name: string): string | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);

const SOURCES: Words = {
  registry: "the agent says so itself",
  hook: "told by its hook",
  screen: "read off the screen",
  process: "seen by its processes",
  input: "it was told something",
  seen: "you have seen it",
  silence: "nothing was heard for long",
  initial: "nothing is known yet",
  remembered: "remembered from before",
  returned: "it is there again",
  output: "it printed something",
};

/** Why a run came to be, or is over; some are a cause's second half, too. */
const REASONS: Words = {
  startup_discovery: "was there when Perdure began to look",
  periodic_tmux_reconcile: "a pane was opened",
  api_create: "started through Perdure",
  shutdown: "found while Perdure ended",
  process_exit: "its program has ended",
  tmux_reconcile_missing: "its pane was closed",
  startup_missing_tmux: "its pane was gone when Perdure began to look",
  server_died: "its tmux server has ended",
  api_delete: "somebody let go of it through Perdure",
};

/** What a rule says that is worth saying in its own words. */
const RULES: Words = {
  "process:prompt": "a shell waits for a command",
  "process:program": "something runs in it",
  "process:started": "another program was started in it",
  "screen:unread": "nothing on its screen tells",
};

/** Why a state is what it is: `screen:claude.busy.footer` is a source and its rule. */
export function causeOf(cause: string): Told {
  const [source = "", ...rest] = cause.split(":");
  const rule = rest.join(":");
  const words = found(RULES, cause) ?? (source === "process" && rule !== "" ? (found(REASONS, rule) ?? `${rule} runs in it`) : found(SOURCES, source));
  if (words === undefined) return { words: cause, id: null };
  return { words, id: rule === "" ? null : cause };
}

/** Why a run began or ended. */
export function reasonOf(reason: string): Told {
  const words = found(REASONS, reason);
  return words === undefined ? { words: reason, id: null } : { words, id: reason };
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
