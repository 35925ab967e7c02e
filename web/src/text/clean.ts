// What agents, panes and strangers say is shown as text; this makes what cannot be seen, or would turn the line
// around, visible and harmless.

const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const HIDDEN = /[\u00ad\u180e\u200b\u2060-\u2064\ufeff\u{e0000}-\u{e007f}\ufff9-\ufffb]/gu;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const LATE_CONTROLS = /[\u0080-\u009f\u2028\u2029]/g;
const HALVES = /[\ud800-\udfff]/gu;

const asCode = (char: string): string =>
  `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

const asPicture = (char: string): string => {
  const code = char.charCodeAt(0);
  return String.fromCharCode(code === 0x7f ? 0x2421 : 0x2400 + code);
};

/** The text with everything visible: lines and tabs stay, other controls and marks of direction are written out. */
export function cleanText(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(CONTROLS, asPicture)
    .replace(LATE_CONTROLS, asCode)
    .replace(BIDI, asCode)
    .replace(HIDDEN, asCode)
    .replace(HALVES, asCode);
}

/** The same on one line. */
export function cleanLine(text: string): string {
  return cleanText(text).replace(/\s*\n\s*/g, " ⏎ ").replace(/\t/g, " ");
}

// A control sequence a terminal would obey; in a log it is only noise.
const SEQUENCE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

/** What a program printed, for a page: colours and cursor movements taken out, a line that was drawn over shown as it ended. */
export function plainOutput(text: string): string {
  return text
    .replace(SEQUENCE, "")
    .replace(/\r+\n/g, "\n")
    .split("\n")
    .map((line) => line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1).replace(/\r+$/, ""))
    .join("\n");
}

/** A text cut to so many characters, never through the middle of one. */
export function cut(text: string, most: number): string {
  const chars = Array.from(text);
  return chars.length <= most ? text : `${chars.slice(0, most - 1).join("")}…`;
}
