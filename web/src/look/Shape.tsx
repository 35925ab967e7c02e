import type { Look } from "../runs/states";

const PATHS: Record<Look["shape"], preact.JSX.Element> = {
  hand: (
    <g>
      <path d="M8 1.2 15 14.2H1Z" fill="currentColor" />
      <path d="M8 5.6v4" stroke="var(--panel)" stroke-width="1.8" stroke-linecap="round" />
      <circle cx="8" cy="12" r="1.05" fill="var(--panel)" />
    </g>
  ),
  question: (
    <g>
      <circle cx="8" cy="8" r="7" fill="none" stroke="currentColor" stroke-width="1.6" />
      <path d="M5.9 6.3a2.1 2.1 0 1 1 3.1 1.9c-.7.4-1 .8-1 1.5" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" />
      <circle cx="8" cy="12" r=".95" fill="currentColor" />
    </g>
  ),
  cross: (
    <g>
      <path d="M5 1h6l4 4v6l-4 4H5l-4-4V5Z" fill="currentColor" />
      <path d="m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8" stroke="var(--panel)" stroke-width="1.7" stroke-linecap="round" />
    </g>
  ),
  check: (
    <g>
      <circle cx="8" cy="8" r="7" fill="currentColor" />
      <path d="m4.8 8.3 2.2 2.2 4.2-4.6" fill="none" stroke="var(--panel)" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" />
    </g>
  ),
  spinner: (
    <g class="spins">
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-opacity=".28" stroke-width="2.2" />
      <path d="M8 2a6 6 0 0 1 6 6" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" />
    </g>
  ),
  pause: <path d="M3.5 2h3v12h-3zM9.5 2h3v12h-3z" fill="currentColor" />,
  clock: (
    <g fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round">
      <circle cx="8" cy="8" r="6.4" />
      <path d="M8 4.4V8l2.5 1.6" />
    </g>
  ),
  ring: <circle cx="8" cy="8" r="5" fill="none" stroke="currentColor" stroke-width="2" />,
  dot: <circle cx="8" cy="8" r="3" fill="currentColor" />,
};

/** The shape of a state; the word stands beside it. */
export function Shape({ shape }: { shape: Look["shape"] }) {
  return (
    <svg viewBox="0 0 16 16" class="shape" aria-hidden="true">
      {PATHS[shape]}
    </svg>
  );
}
