import { signal } from "@preact/signals";

export type Screen = "runs" | "time-machine" | "chats" | "jobs" | "events" | "settings";

export interface Place {
  screen: Screen;
  /** What is looked at there, null for all. */
  id: string | null;
}

const SCREENS: readonly Screen[] = ["runs", "time-machine", "chats", "jobs", "events", "settings"];

/** Where an address leads; anything unknown leads to the first screen. */
export function placeOf(path: string): Place {
  const [first, second] = path.split("/").filter((part) => part !== "");
  const screen = SCREENS.find((each) => each === first) ?? "runs";
  return { screen, id: second === undefined ? null : decoded(second) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // Half a character: nothing is called so, and the screen says so.
    return part;
  }
}

export function addressOf(screen: Screen, id: string | null = null): string {
  if (id === null) return screen === "runs" ? "/" : `/${screen}`;
  return `/${screen}/${encodeURIComponent(id)}`;
}

export const place = signal<Place>(typeof location === "undefined" ? placeOf("/") : placeOf(location.pathname));

/** Which part of it: `#turn-7`, or "". */
export const part = signal(typeof location === "undefined" ? "" : location.hash);

/** Go there; with a part (`#turn-7`), to that of it. */
export function go(screen: Screen, id: string | null = null, which = ""): void {
  const address = addressOf(screen, id);
  if (address + which !== location.pathname + location.hash) history.pushState(null, "", address + which);
  part.value = which;
  place.value = placeOf(address);
  // Whoever hears the page, and whoever has only keys, goes on with what is new on it.
  const main = document.getElementById("main");
  main?.scrollTo(0, 0);
  main?.focus();
}

/** Follow links and the browser's own buttons without loading anything again. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    part.value = location.hash;
    place.value = placeOf(location.pathname);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
    event.preventDefault();
    const { screen, id } = placeOf(link.pathname);
    go(screen, id, link.hash);
  });
}
