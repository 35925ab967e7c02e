// A terminal answers what programs ask it: what it is, where its cursor stands, which colours it has. Here tmux is the terminal
// and has answered already. A second answer, from everybody who looks, would be typed into the pane as if a person had.

import type { IParser } from "@xterm/xterm";

/** Sequences that ask: by their prefix, what stands before the last letter, and that letter. */
const QUESTIONS: { prefix?: string; intermediates?: string; final: string }[] = [
  { final: "c" },
  { prefix: ">", final: "c" },
  { prefix: "=", final: "c" },
  { final: "n" },
  { prefix: "?", final: "n" },
  { prefix: ">", final: "q" },
  { intermediates: "$", final: "p" },
  { prefix: "?", intermediates: "$", final: "p" },
  { final: "t" },
];

/** Colours that may be asked for, and set; to set the clipboard or ask for it is nobody's here. */
const COLOURS = [4, 10, 11, 12];
const CLIPBOARD = 52;
/** The mode in which a terminal tells that somebody has come to it, or left. */
const FOCUS = 1004;

/** Let a terminal answer nothing by itself. */
export function silence(parser: IParser): void {
  for (const question of QUESTIONS) parser.registerCsiHandler(question, () => true);
  for (const number of COLOURS) parser.registerOscHandler(number, (data) => data.includes("?"));
  parser.registerOscHandler(CLIPBOARD, () => true);
  parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
  parser.registerCsiHandler({ prefix: "?", final: "h" }, (params) => params.length === 1 && params[0] === FOCUS);
}
