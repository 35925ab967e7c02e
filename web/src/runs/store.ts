import { computed, signal } from "@preact/signals";
import { askAgain, isKnown, sentence } from "../api/ask";
import { connection, follow } from "../api/live";
import type { Happening, Page, Run } from "../api/shapes";
import { applied } from "./applying";
import { refreshHosts, themes } from "./hosts";

/** Every run whose pane is there; null until they were first asked for. */
export const runs = signal<Run[] | null>(null);

/** Why they could not be asked for, the last time. */
export const trouble = signal<string | null>(null);

/** The run whose pane was looked at last. */
export const lastOpened = signal<string | null>(null);

/** How many need somebody. */
export const needy = computed(() => (runs.value ?? []).filter((run) => run.state === "attention" || run.state === "error").length);

// Whether servers may have come or gone since they were last asked for.
let areServersNew = true;
let isAsking = false;
let isStale = false;
let timer: ReturnType<typeof setTimeout> | null = null;

/** Ask for the runs; while that goes on, one more time at most is remembered. */
export async function refresh(): Promise<void> {
  if (isAsking) {
    isStale = true;
    return;
  }
  isAsking = true;
  try {
    runs.value = (await askAgain<Page<Run>>("/api/runs?limit=1000")).items;
    trouble.value = null;
    if (areServersNew || runs.value.some((run) => run.theme !== null && !(run.theme in themes.value))) {
      areServersNew = false;
      void refreshHosts();
    }
  } catch (error) {
    trouble.value = sentence(error);
  } finally {
    isAsking = false;
    if (isStale) {
      isStale = false;
      soon();
    }
  }
}

function soon(): void {
  timer ??= setTimeout(() => {
    timer = null;
    void refresh();
  }, 250);
}

/** What an event says is shown at once; the whole truth is asked for right after. */
function heard(event: Happening): void {
  if (event.run === null && !event.kind.startsWith("server_")) return;
  if (event.kind.startsWith("server_")) areServersNew = true;
  if (runs.value) runs.value = applied(runs.value, event);
  soon();
}

/** Keep the runs up to date from now on. */
export function keep(): void {
  follow(heard);
  void refresh();
  connection.subscribe((state) => {
    if (state !== "live") return;
    areServersNew = true;
    void refresh();
  });
  // Nothing should need this; should an event ever be missed, it is not for long.
  setInterval(() => {
    if (isKnown.value && document.visibilityState === "visible") void refresh();
  }, 30_000);
}
