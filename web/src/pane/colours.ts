import type { ITheme } from "@xterm/xterm";

/** A terminal is dark in either look: agents choose their colours for that. */
export const COLOURS: ITheme = {
  background: "#0f1317",
  foreground: "#dfe3e8",
  cursor: "#f0b35a",
  cursorAccent: "#0f1317",
  selectionBackground: "#33506e",
  black: "#20262d",
  red: "#f0776c",
  green: "#7cc48f",
  yellow: "#e5c07b",
  blue: "#74aef0",
  magenta: "#c792ea",
  cyan: "#67c5cf",
  white: "#c9d1d9",
  brightBlack: "#7d8894",
  brightRed: "#ff9a90",
  brightGreen: "#9be0ac",
  brightYellow: "#f5d99a",
  brightBlue: "#9cc8ff",
  brightMagenta: "#dcb5f7",
  brightCyan: "#92e0e8",
  brightWhite: "#ffffff",
};
