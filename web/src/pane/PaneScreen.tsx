import { effect } from "@preact/signals";
import { lazy, Suspense } from "../shell/lazy";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { connection, follow, mayWrite, socket } from "../api/live";
import type { Happening, Page, Run } from "../api/shapes";
import { bind } from "../keys/keys";
import { RunMark } from "../look/StateMark";
import { Since } from "../runs/RunRow";
import { lastOpened, refresh, runs, trouble as troubleOfRuns } from "../runs/store";
import { useAnswer } from "../shell/loading";
import { go } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { Because } from "../text/Because";
import { toldOf } from "../text/causes";
import { Said } from "../text/Said";
import { Approval } from "./Approval";
import { Conversation } from "./Conversation";
import { Ending } from "./Ending";
import { KeyBar } from "./KeyBar";
import { isLeft } from "./left";
import { isMore, next, type Fetched } from "./scrollback";
import { Tell } from "./Tell";
import type { TerminalHandle } from "./TerminalView";
import { Timeline } from "./Timeline";
import { refusalOf } from "./typing";
import "./pane.css";

const TerminalView = lazy(() => import("./TerminalView"));

/** One run: its terminal, and everything that is known of it. */
export function PaneScreen({ id }: { id: string }) {
  const listed = runs.value?.find((run) => run.id === id);
  // A run that is over is in no list, but can still be looked at.
  const kept = useAnswer<Run>(() => ask("GET", `/api/runs/${encodeURIComponent(id)}`), [id, listed === undefined]);
  const run = listed ?? kept.value;
  useEffect(() => void (lastOpened.value = id), [id]);
  // Before it is shown: whoever sees it may press a key at once.
  useLayoutEffect(() => bind([{ keys: ["Escape", "u"], does: "back to all runs", action: () => go("runs") }]), []);
  if (!run) {
    return kept.error !== null ? <Trouble text={kept.error} /> : <p class="empty">Looking…</p>;
  }
  return <Pane run={run} />;
}

function Pane({ run }: { run: Run }) {
  const isOver = run.ended_at !== null;
  const asks = run.reason === "permission" || run.reason === "question";
  return (
    <>
      <header class="pane-head">
        <a class="back" href="/" aria-label="All runs">
          ‹
        </a>
        <h1 class="cut">
          <Said text={run.target} />
        </h1>
        <RunMark run={run} />
        {run.since !== null && <span class="for soft">for <Since at={run.since} /></span>}
        <span class="soft number id">{run.id}</span>
        {run.reason === "done" && mayWrite() && <Seen run={run} />}
        {mayWrite() && !isOver && <Ending run={run} />}
      </header>
      <Trouble text={troubleOfRuns.value} />
      <div class="pane">
        <div class={asks ? "left asking" : "left"}>
          {asks && <Approval run={run} />}
          {isOver ? <Over run={run} /> : <Live run={run} />}
        </div>
        <div class="right">
          <section class="panel">
            <h2>What it is doing</h2>
            <div class="body stack">
              <p class="thought">{run.thought === null ? <span class="soft">Nothing to say yet.</span> : <Said text={run.thought} />}</p>
              <dl class="facts">
                {run.objective !== null && (
                  <>
                    <dt>Asked for</dt>
                    <dd>
                      <Said text={run.objective} />
                    </dd>
                  </>
                )}
                <dt>State by</dt>
                <dd><Because told={toldOf(run.cause, run.because)} /></dd>
                <dt>Directory</dt>
                <dd>
                  <Said text={run.cwd} />
                </dd>
                <dt>Where</dt>
                <dd>
                  {run.user}@{run.host}, <Said text={run.socket.split("/").at(-1) ?? ""} />
                </dd>
              </dl>
            </div>
          </section>
          <section class="panel">
            <h2>Conversation</h2>
            <div class="body">
              <Conversation run={run} />
            </div>
          </section>
          <section class="panel">
            <h2>What happened</h2>
            <div class="body">
              <History run={run} />
            </div>
          </section>
        </div>
      </div>
    </>
  );
}

/** What is there in place of a terminal. */
function Over({ run }: { run: Run }) {
  const [trouble, setTrouble] = useState<string | null>(null);
  if (!run.detached) {
    return (
      <p class="notice">
        Its pane is gone. <a href="/time-machine">The time machine</a> may bring it back.
      </p>
    );
  }
  const again = (): void => void ask("POST", `/api/runs/${run.id}/follow`, {}).then(refresh).catch((error: unknown) => setTrouble(sentence(error)));
  return (
    <>
      <p class="notice row">
        <span class="grow">It is not followed any more, as somebody asked for. Its pane was left as it was.</span>
        {mayWrite() && (
          <button class="button" onClick={again}>
            Follow it again
          </button>
        )}
      </p>
      <Trouble text={trouble} />
    </>
  );
}

function Seen({ run }: { run: Run }) {
  const [trouble, setTrouble] = useState<string | null>(null);
  return (
    <>
      <button class="button" onClick={() => void ask("POST", `/api/runs/${run.id}/seen`, {}).catch((error: unknown) => setTrouble(sentence(error)))}>
        I have seen it
      </button>
      <Trouble text={trouble} />
    </>
  );
}

interface Scrollback {
  /** What has scrolled away, and what is visible. */
  lines: string[];
  /** How many have scrolled away. */
  history: number;
  alternate: boolean;
}

const BRIEFLY = 8000;

/** Something that is said for some seconds, unless something else is said before. */
function useBrief(): [string | null, (text: string | null) => void] {
  const [said, setSaid] = useState<{ text: string | null }>({ text: null });
  useEffect(() => {
    if (said.text === null) return;
    const timer = setTimeout(() => setSaid({ text: null }), BRIEFLY);
    return () => clearTimeout(timer);
  }, [said]);
  return [said.text, (text) => setSaid((before) => (before.text === null && text === null ? before : { text }))];
}

function Live({ run }: { run: Run }) {
  const handle = useRef<TerminalHandle | null>(null);
  const [note, setNote] = useBrief();
  const [closed, setClosed] = useState<string | null>(null);
  const [size, setSize] = useState<{ cols: number; rows: number } | null>(null);
  const [isTaken, setTaken] = useState(false);
  const [fetched, setFetched] = useState<Fetched | null>(null);
  // Another may take it, and with the connection it is given back: whose it is the daemon says.
  useEffect(() => effect(() => { if (connection.value !== "live") setTaken(false); }), []);
  const isTakenNow = useRef(false);
  isTakenNow.current = isTaken;
  // Whoever leaves gives the size back.
  useEffect(() => () => { if (isTakenNow.current) socket.releaseSize(run.id); }, [run.id]);

  // Where there is nobody to be told anything, another part of the page comes after the terminal.
  // What was written for an agent stays when it has ended.
  const wasTold = useRef(false);
  wasTold.current ||= run.agent !== null || isLeft(run.id);
  const isTold = mayWrite() && wasTold.current;
  const takeSize = (): void => {
    if (isTaken) socket.releaseSize(run.id);
    else {
      const room = handle.current?.room();
      if (room) socket.takeSize(run.id, room.cols, room.rows);
    }
  };
  const paste = async (): Promise<void> => {
    try {
      setNote(refusalOf(await socket.type(run.id, { paste: await navigator.clipboard.readText() }), "It was not pasted."));
      handle.current?.focus();
    } catch {
      setNote("The browser does not give the clipboard here. Press Ctrl V in the terminal.");
    }
  };
  const earlier = async (): Promise<void> => {
    const asked = next(fetched);
    try {
      const { lines, history, alternate } = await ask<Scrollback>("GET", `/api/runs/${run.id}/scrollback?colours=true&lines=${asked}`);
      if (history === 0) setNote("Nothing has scrolled away yet.");
      else if (alternate) setNote("Its program has the whole screen to itself. What it has scrolled away, only it can show.");
      else {
        setFetched({ asked, history });
        setNote(history > asked ? "Scroll down to be live again. There is more above." : "Scroll down to be live again.");
        handle.current?.showEarlier(lines, history);
      }
    } catch (error) {
      setNote(sentence(error));
    }
  };
  return (
    <section class="live" aria-label="Terminal">
      <div class="terminal-frame">
        <Suspense fallback={<p class="soft waiting">Opening the terminal…</p>}>
          <TerminalView
            run={run.id}
            mayType={mayWrite()}
            onReady={(ready) => (handle.current = ready)}
            onTyped={setNote}
            onClosed={setClosed}
            onSize={(cols, rows) => setSize({ cols, rows })}
            onTaken={setTaken}
          />
        </Suspense>
      </div>
      <div class="row tools">
        {mayWrite() && <KeyBar run={run.id} onTyped={setNote} />}
        <span class="grow" />
        <span class="soft number size">{size && `${size.cols}x${size.rows}`}</span>
        <button class="button" data-after-terminal={isTold ? undefined : true} onClick={() => void earlier()}>
          {isMore(fetched) ? "Older" : "Scrollback"}
        </button>
        {mayWrite() && (
          <>
            <button class="button" onClick={() => void paste()}>
              Paste
            </button>
            <button class="button" aria-pressed={isTaken} onClick={takeSize} title="Gives the pane the size of this window, for everybody who looks at it">
              {isTaken ? "Give size back" : "Take size"}
            </button>
          </>
        )}
      </div>
      <p class="note soft" role="status">
        {note ?? (closed === null ? null : `The terminal is no longer shown: ${closed}`) ?? (mayWrite() ? "Typing in the terminal goes to the pane. F6 leaves it." : "You may look, and not type.")}
      </p>
      {isTold && <Tell run={run} />}
    </section>
  );
}

const SHOWN = new Set(["state_changed", "run_created", "run_returned", "run_deleted", "identity_changed", "seen", "sent"]);

function History({ run }: { run: Run }) {
  const loaded = useAnswer<Page<Happening>>(() => ask("GET", `/api/runs/${run.id}/timeline`), [run.id]);
  const [fresh, setFresh] = useState<Happening[]>([]);
  useEffect(
    () =>
      follow((event) => {
        if (event.run === run.id && SHOWN.has(event.kind)) setFresh((before) => [event, ...before].slice(0, 200));
      }),
    [run.id],
  );
  const known = (loaded.value?.items ?? []).filter((event) => SHOWN.has(event.kind));
  const all = new Map([...known, ...fresh].map((event) => [event.seq, event]));
  return (
    <>
      <Trouble text={loaded.error} />
      <Timeline events={[...all.values()].sort((a, b) => b.seq - a.seq)} />
    </>
  );
}
