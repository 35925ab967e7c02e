import { signal } from "@preact/signals";

export type Look = "system" | "dark" | "light";

const KEY = "perdure.look";
const ALOUD = "perdure.aloud";

function chosen(): Look {
  const look = document.documentElement.dataset.look;
  return look === "dark" || look === "light" ? look : "system";
}

/** Dark, light, or as the system has it. */
export const look = signal<Look>(chosen());

export function choose(next: Look): void {
  look.value = next;
  if (next === "system") delete document.documentElement.dataset.look;
  else document.documentElement.dataset.look = next;
  keep(KEY, next);
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Storage is turned off: it holds for as long as the page is open.
  }
}

function kept(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/**
 * Whether terminals are prepared for a screen reader. Not without being asked: it costs, and keyboards of phones that send
 * whole words are not heard then.
 */
export const isReadAloud = signal(kept(ALOUD) === "yes");

export function readAloud(wanted: boolean): void {
  isReadAloud.value = wanted;
  keep(ALOUD, wanted ? "yes" : "no");
}
