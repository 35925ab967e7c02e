import type { Screen } from "./route";

const PATHS: Record<Screen, string> = {
  runs: "M3 5h14M3 10h14M3 15h9",
  "time-machine": "M10 4a6 6 0 1 1-5.6 3.9M4 4v4h4M10 7v3.4l2.4 1.4",
  chats: "M3 4h14v9H9l-4 3.5V13H3Z",
  jobs: "M4 5l4 4-4 4M10 14h6",
  events: "M11 2 4 11h5l-1 7 7-9h-5Z",
  settings: "M3 6h6m4 0h4M3 14h2m4 0h8M9 4v4M5 12v4",
};

/** A screen's picture; its name stands below. */
export function TabIcon({ screen }: { screen: Screen }) {
  return (
    <svg viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[screen]} />
    </svg>
  );
}
