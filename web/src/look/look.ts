import { signal } from "@preact/signals";

export type Look = "system" | "dark" | "light";

const KEY = "perdure.look";

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
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage is turned off: it holds for as long as the page is open.
  }
}

export const isDark = (): boolean => look.value === "dark" || (look.value === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
