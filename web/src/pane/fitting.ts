// How large a terminal of somebody else's size is drawn. Pure.

export interface Room {
  width: number;
  height: number;
}

const LARGEST = 15;
const SMALLEST = 9;

/**
 * The size of the letters with which so many columns fit into the width, neither too small to read nor larger than usual.
 * `ratio` is how wide a letter is by its size.
 */
export function letterSize(cols: number, room: Room, ratio: number): number {
  if (cols <= 0 || room.width <= 0 || ratio <= 0) return 13;
  const fitting = room.width / (cols * ratio);
  return Math.max(SMALLEST, Math.min(LARGEST, Math.floor(fitting * 4) / 4));
}

/** What makes a fresh terminal look like the screen that was captured: its lines, the cursor where it was. */
export function redraw(text: string, cursor: { x: number; y: number }): string {
  const lines = text.replace(/\n$/, "").replace(/\r?\n/g, "\r\n");
  return `${lines}\u001b[0m\u001b[${cursor.y + 1};${cursor.x + 1}H`;
}
