import { socket } from "../api/live";
import { refusalOf } from "./typing";

/** What phones have no keys for, by tmux's names. */
const KEYS: [string, string, string][] = [
  ["Escape", "Esc", "Esc"],
  ["Tab", "Tab", "Tab"],
  ["BTab", "⇤", "Shift Tab"],
  ["Enter", "⏎", "Enter"],
  ["C-c", "^C", "Ctrl C"],
  ["C-d", "^D", "Ctrl D"],
  ["Up", "↑", "Up"],
  ["Down", "↓", "Down"],
  ["Left", "←", "Left"],
  ["Right", "→", "Right"],
  ["PPage", "PgUp", "PgUp"],
  ["NPage", "PgDn", "PgDn"],
];

interface KeyBarProps {
  run: string;
  /** It was pressed, or why it was not. */
  onTyped: (refused: string | null) => void;
}

/** Keys to press with a finger. */
export function KeyBar({ run, onTyped }: KeyBarProps) {
  const press = (key: string): void => {
    void socket.type(run, { keys: [key] }).then((answer) => onTyped(refusalOf(answer, "It was not pressed.")));
  };
  return (
    <div class="keybar" role="group" aria-label="Keys">
      {KEYS.map(([key, shown, name]) => (
        <button key={key} class="key" aria-label={name} onPointerDown={(event) => event.preventDefault()} onClick={() => press(key)}>
          {shown}
        </button>
      ))}
    </div>
  );
}
