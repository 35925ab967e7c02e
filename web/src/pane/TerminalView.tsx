import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef } from "preact/hooks";
import { socket } from "../api/live";
import type { TerminalFrame, Typed } from "../api/socket";
import { isReadAloud } from "../look/look";
import { COLOURS } from "./colours";
import { letterSize, redraw } from "./fitting";
import { MOST, placeAfter } from "./scrollback";
import { isPaste, refusalOf } from "./typing";
import { silence } from "./silence";

export interface TerminalHandle {
  focus: () => void;
  /** How many columns and rows there is room for, at a usual size of letters. */
  room: () => { cols: number; rows: number };
  /** Put everything there is above what is shown, the visible lines included. Whoever reads there already keeps their place. */
  showEarlier: (lines: readonly string[], history: number) => void;
}

interface TerminalViewProps {
  run: string;
  mayType: boolean;
  onReady: (handle: TerminalHandle) => void;
  /** What was typed has arrived, or why it has not. */
  onTyped: (refused: string | null) => void;
  /** Why it is no longer shown; null: it is. */
  onClosed: (why: string | null) => void;
  onSize: (cols: number, rows: number) => void;
  /** Whether that is the size it was given from here. */
  onTaken: (taken: boolean) => void;
}

const USUAL = 13;

/** Keys that move, by tmux's names. */
const MOVES: Record<string, string> = { ArrowUp: "Up", ArrowDown: "Down", ArrowLeft: "Left", ArrowRight: "Right", Home: "Home", End: "End" };

/** The terminal of a run as it is now: what it shows comes in, what is typed goes out. */
export default function TerminalView(props: TerminalViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    if (frame.current === null) return;
    return show(frame.current, latest);
  }, [props.run]);
  return <div class="terminal-view" ref={frame} />;
}

function show(frame: HTMLDivElement, props: { current: TerminalViewProps }): () => void {
  const { run } = props.current;
  const terminal = new Terminal({
    allowProposedApi: false,
    convertEol: false,
    cursorBlink: false,
    disableStdin: !props.current.mayType,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: USUAL,
    // The size is the pane's, not ours: lines must not be laid out anew.
    reflowCursorLine: false,
    screenReaderMode: isReadAloud.value,
    scrollback: MOST,
    theme: COLOURS,
    linkHandler: { activate: () => undefined },
  });
  silence(terminal.parser);
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(frame);
  let earlier: readonly string[] = [];
  // What stood above the screen when that was drawn, of how much.
  let drawn: { above: number; history: number } | null = null;
  let last: Extract<TerminalFrame, { type: "screen" }> | null = null;

  // How wide a letter is by its size, measured once there is one.
  const ratio = (): number => {
    const shown = frame.querySelector<HTMLElement>(".xterm-screen");
    const width = shown ? shown.getBoundingClientRect().width / terminal.cols : 0;
    return width > 0 ? width / (terminal.options.fontSize ?? USUAL) : 0.6;
  };
  const adapt = (): void => {
    const room = { width: frame.clientWidth - 18, height: frame.clientHeight };
    const size = letterSize(terminal.cols, room, ratio());
    if (size !== terminal.options.fontSize) terminal.options.fontSize = size;
  };
  const resize = (cols: number, rows: number): void => {
    if (cols !== terminal.cols || rows !== terminal.rows) terminal.resize(cols, rows);
    adapt();
    props.current.onSize(cols, rows);
  };
  let isOld = false;
  const draw = (done?: () => void): void => {
    if (last === null) return;
    isOld = false;
    resize(last.cols, last.rows);
    let above = "";
    if (last.alternate) above = "\u001b[?1049h";
    // As wide as it was there, it is broken into the same lines: the last of them are where the screen is.
    else if (earlier.length > 0) above = `${earlier.join("\r\n")}\u001b[0m\u001b[H\u001b[J`;
    // Emptied by what is written, not before it: nobody is to see it empty.
    terminal.write(`\u001bc${above}${redraw(last.text, last.cursor)}`, done);
  };
  // Where nobody is attached to tmux, every change is a whole screen: not under somebody who reads above or marks something.
  const isRead = (): boolean => {
    const buffer = terminal.buffer.active;
    return terminal.hasSelection() || buffer.viewportY < buffer.baseY;
  };
  const drawIfOld = (): void => {
    if (isOld && !isRead()) draw();
  };
  terminal.onScroll(drawIfOld);
  terminal.onSelectionChange(drawIfOld);
  const take = (message: TerminalFrame): void => {
    if (message.type === "screen") {
      last = message;
      isOld = true;
      props.current.onClosed(null);
      drawIfOld();
    } else if (message.type === "output") terminal.write(message.text);
    else if (message.type === "resized") resize(message.cols, message.rows);
    else if (message.type === "size") props.current.onTaken(message.taken);
    else props.current.onClosed(message.why);
  };
  const type = (what: Typed): void => {
    if (!props.current.mayType) return;
    void socket.type(run, what).then((answer) => props.current.onTyped(refusalOf(answer, "It was not typed.")));
  };

  terminal.onData((text) => type({ text }));
  terminal.onBinary((text) => type({ text }));
  const pasted = (event: ClipboardEvent): void => {
    const text = event.clipboardData?.getData("text/plain");
    event.preventDefault();
    event.stopPropagation();
    if (text) type({ paste: text });
  };
  frame.addEventListener("paste", pasted, { capture: true });
  // A small terminal leaves room below it, which is its own to whoever clicks there.
  const clicked = (): void => { if (!terminal.hasSelection()) terminal.focus(); };
  frame.addEventListener("click", clicked);
  terminal.attachCustomKeyEventHandler((event) => {
    // Tab belongs to the program in the pane, so another key leads out of the terminal.
    if (event.key === "F6") {
      event.preventDefault();
      if (event.type === "keydown") document.querySelector<HTMLElement>("[data-after-terminal]")?.focus();
      return false;
    }
    // The browser pastes, and what is pasted comes as an event of its own.
    if (isPaste(event)) return false;
    // What these send depends on what the program has told its terminal, which tmux knows and this one may not.
    const name = event.shiftKey || event.ctrlKey || event.altKey || event.metaKey ? undefined : MOVES[event.key];
    if (name === undefined) return true;
    event.preventDefault();
    if (event.type === "keydown") type({ keys: [name] });
    return false;
  });
  const observer = new ResizeObserver(adapt);
  observer.observe(frame);
  const leave = socket.watch(run, take);
  props.current.onReady({
    focus: () => terminal.focus(),
    room: () => {
      const shown = terminal.options.fontSize;
      terminal.options.fontSize = USUAL;
      const found = fit.proposeDimensions() ?? { cols: 80, rows: 24 };
      if (shown !== undefined) terminal.options.fontSize = shown;
      return found;
    },
    showEarlier: (lines, history) => {
      const { viewportY: top, baseY } = terminal.buffer.active;
      const before = top < baseY ? { top, ...(drawn ?? { above: baseY, history }) } : null;
      earlier = lines;
      draw(() => {
        const above = terminal.buffer.active.baseY;
        drawn = { above, history };
        terminal.scrollToLine(placeAfter(before, { above, rows: terminal.rows, history }));
      });
    },
  });
  return () => {
    leave();
    frame.removeEventListener("paste", pasted, { capture: true });
    frame.removeEventListener("click", clicked);
    observer.disconnect();
    terminal.dispose();
  };
}
