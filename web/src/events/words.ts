// An event in words. Pure.

import type { Happening } from "../api/shapes";
import { causeInWords } from "../pane/causes";

const text = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const number = (value: unknown): string | null => (typeof value === "number" ? String(value) : null);

/** What happened, in a line. */
export function inWords({ kind, data }: Happening): string {
  switch (kind) {
    case "state_changed":
      return `${text(data.from) ?? "?"} → ${text(data.to) ?? text(data.state) ?? "?"}: ${causeInWords(text(data.cause) ?? "unknown")}`;
    case "thought":
      return text(data.thought) ?? "nothing to say";
    case "title_changed":
      return text(data.title) ?? "no title";
    case "run_created":
    case "run_returned":
    case "run_deleted":
      return joined(text(data.target), text(data.agent), text(data.reason)?.replaceAll("_", " "));
    case "identity_changed":
      return joined(text(data.agent), text(data.conversation), text(data.evidence), data.certain === false ? "a guess" : null);
    case "saved":
      return joined(text(data.snapshot), number(data.agents) && `${number(data.agents) ?? ""} agents`, number(data.panes) && `${number(data.panes) ?? ""} panes`);
    case "server_died":
      return joined(text(data.socket), text(data.cause), text(data.message));
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
