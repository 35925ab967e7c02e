// Keys that work wherever nobody is typing.

import { signal } from "@preact/signals";
import { go, type Screen } from "../shell/route";

export interface Binding {
  keys: string[];
  does: string;
  action: () => void;
}

const bindings = new Set<Binding[]>();

export const isHelpShown = signal(false);

/** Let keys mean something until the function that is returned is called; what was bound last comes first. */
export function bind(list: Binding[]): () => void {
  bindings.add(list);
  return () => void bindings.delete(list);
}

/** Every key that means something now, for the help. */
export function bound(): Binding[] {
  return [...bindings].reverse().flat();
}

const JUMPS: [string, Screen, string][] = [
  ["r", "runs", "runs"],
  ["t", "time-machine", "time machine"],
  ["c", "chats", "chats"],
  ["j", "jobs", "jobs"],
  ["e", "events", "events"],
  ["s", "settings", "settings"],
];

bind([
  { keys: ["?"], does: "show this help", action: () => (isHelpShown.value = true) },
  ...JUMPS.map(([key, screen, name]) => ({ keys: [`g ${key}`], does: `go to ${name}`, action: () => go(screen) })),
]);

/** Whether keys that come from here are somebody's text. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || target.closest("input, textarea, select, .xterm, dialog[open]") !== null);
}

let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

export function listen(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const key = prefix === "" ? event.key : `${prefix} ${event.key}`;
    prefix = "";
    clearTimeout(prefixTimer);
    const binding = bound().find((each) => each.keys.includes(key));
    if (binding) {
      // Enter on a button or a link is that button's or link's.
      if (key === "Enter" && event.target instanceof Element && event.target.closest("a, button, summary")) return;
      event.preventDefault();
      binding.action();
    } else if (bound().some((each) => each.keys.some((known) => known.startsWith(`${key} `)))) {
      prefix = key;
      prefixTimer = setTimeout(() => (prefix = ""), 1200);
    }
  });
}
