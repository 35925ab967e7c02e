// An event in words. Pure.

import type { Happening } from "../api/shapes";
import { lookOf, parseWord } from "../runs/states";
import { counted } from "../text/numbers";
import { cameOf, type Summary } from "../time-machine/progress";
import { closedBecause, heard, knownBy, toldOf, type Told } from "../text/causes";

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown): string | null => (typeof value === "number" ? String(value) : null);

const counts = (value: unknown, noun: string): string | null => (typeof value === "number" ? counted(value, noun) : null);
const DEMISES = new Set(["exited", "signal", "oom", "reboot", "unknown"]);

/** `attention(permission)` as it is called on the page. */
function stateIn(word: unknown): string {
  if (typeof word !== "string") return "?";
  const { state, reason } = parseWord(word);
  return lookOf(state, reason).word;
}

/** What happened, in a line, and by which name of programs. */
export function inWords(event: Happening): Told {
  const { kind, data } = event;
  if (kind === "state_changed") {
    const { words, id } = toldOf(data.cause, data.because);
    return { words: `${stateIn(data.from)} → ${stateIn(data.to ?? data.state)}: ${words}`, id };
  }
  if (kind === "run_created" || kind === "run_returned" || kind === "run_deleted") {
    const why = toldOf(data.reason, data.because);
    return { words: joined(text(data.target), text(data.agent), why.words), id: why.id };
  }
  if (kind === "server_died") {
    const cause = text(data.cause);
    return { words: joined(text(data.socket), text(data.message)), id: cause !== null && DEMISES.has(cause) ? cause : null };
  }
  return { words: line(event), id: null };
}

function line({ kind, data }: Happening): string {
  switch (kind) {
    case "thought":
      return text(data.thought) ?? "nothing to say";
    case "title_changed":
      return text(data.title) ?? "no title";
    case "identity_changed": {
      const evidence = text(data.evidence);
      return joined(text(data.agent), text(data.conversation), evidence && `known by ${knownBy(evidence)}`, data.certain === false ? "only a guess" : null);
    }
    case "sent":
      return heard(text(data.result) ?? "");
    case "saved":
      return joined(text(data.snapshot), counts(data.agents, "agent"), counts(data.panes, "pane"));
    case "server_appeared":
      return joined(text(data.socket), counts(data.panes, "pane"));
    case "server_health":
      return joined(text(data.socket), text(data.health));
    case "restoring":
      return `${number(data.settled) ?? "?"} of ${counts(data.total, "pane") ?? "?"}`;
    case "restored":
      return joined(text(data.socket), restored(data), text(data.message));
    case "chat_closed":
      return closedBecause(text(data.reason) ?? "");
    case "job_output":
      return text(data.output) ?? "";
    case "job_started":
      return data.backend === "local" ? "" : `on ${text(data.backend) ?? "?"}`;
    case "job_ended":
      return joined(data.status === "exited" ? `exit code ${number(data.exit_code) ?? "?"}` : text(data.status), text(data.why));
    case "chat_opened":
    case "chat_resumed":
      return joined(text(data.title), text(data.platform));
    case "chat_titled":
      return text(data.title) ?? "no title any more";
    case "chat_said":
      return data.first === data.last ? `turn ${number(data.first) ?? "?"}` : `turns ${number(data.first) ?? "?"} to ${number(data.last) ?? "?"}`;
    default:
      return Object.entries(data)
        .filter(([, value]) => value !== null && value !== "" && typeof value !== "object")
        .map(([name, value]) => `${name.replaceAll("_", " ")} ${String(value)}`)
        .join(", ");
  }
}

/** What came of a restore, by its summary or by how its command ended. */
function restored({ summary, exit_code: code }: Record<string, unknown>): string | null {
  if (typeof summary === "object" && summary !== null) return cameOf(summary as Summary);
  return code === 0 ? "brought back" : null;
}

function joined(...parts: (string | null | undefined)[]): string {
  return parts.filter((part) => part).join(", ");
}

/** What an event is about that has a screen of its own: a run, a job or a chat. */
export function subjectOf({ run, data }: Happening): { screen: "runs" | "jobs" | "chats"; id: string } | null {
  if (run !== null) return { screen: "runs", id: run };
  const job = text(data.job);
  if (job !== null) return { screen: "jobs", id: job };
  const chat = text(data.chat);
  return chat === null ? null : { screen: "chats", id: chat };
}

/** The groups events are filtered by, and what belongs to each. */
export const GROUPS: [string, (kind: string) => boolean][] = [
  ["states", (kind) => kind === "state_changed" || kind === "seen" || kind === "sent"],
  ["runs", (kind) => kind.startsWith("run_") || kind === "identity_changed"],
  ["thoughts", (kind) => kind === "thought" || kind === "title_changed" || kind === "skill_changed"],
  ["servers", (kind) => kind.startsWith("server_") || kind === "saved" || kind === "restored" || kind.startsWith("daemon_")],
  ["jobs", (kind) => kind.startsWith("job_")],
  ["chats", (kind) => kind.startsWith("chat_")],
];
