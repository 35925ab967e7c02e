import { useEffect, useRef, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { mayWrite, now } from "../api/live";
import type { Job } from "../api/shapes";
import { Shape } from "../look/Shape";
import { useAnswer, useEvery } from "../shell/loading";
import { go } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { cleanText, plainOutput } from "../text/clean";
import { Said } from "../text/Said";
import { clock, lasting, moment } from "../text/times";
import { commandOf, lookOfJob } from "./words";

interface Log {
  status: Job["status"];
  exit_code: number | null;
  offset: number;
  total_lines: number;
  truncated: boolean;
  streams: { stream: "stdout" | "stderr"; text: string }[];
}

const LINES = 2000;

/** One job: how it stands, and what it prints as it prints it. */
export function OneJob({ id, onChange }: { id: string; onChange: () => void }) {
  const path = `/api/jobs/${encodeURIComponent(id)}`;
  const job = useAnswer<Job>(() => ask("GET", path), [id]);
  const log = useAnswer<Log>(() => ask("GET", `${path}/log?tail=${LINES}`), [id]);
  const isRunning = (log.value?.status ?? job.value?.status) === "running";
  useEvery(700, () => { if (isRunning) log.again(); }, [id, isRunning]);
  useEffect(() => {
    if (!isRunning) {
      job.again();
      onChange();
    }
  }, [isRunning]);
  const [trouble, setTrouble] = useState<string | null>(null);
  const act = (action: () => Promise<unknown>): void => {
    action().then(
      () => {
        setTrouble(null);
        job.again();
        log.again();
      },
      (error: unknown) => setTrouble(sentence(error)),
    );
  };
  const shown = job.value;
  if (shown === null) return job.error === null ? <p class="panel empty">Looking…</p> : <Trouble text={job.error} />;
  const standing = log.value ?? shown;
  const { word, tone, shape } = lookOfJob(standing);
  return (
    <section class="panel job" aria-label="Job">
      <header class="stack">
        <button class="button only-narrow back-to-list" onClick={() => go("jobs")}>
          ‹ All jobs
        </button>
        <code class="command">
          <Said text={commandOf(shown)} />
        </code>
        <div class="row">
          <span class={`state tone-${tone}`} role="status">
            <Shape shape={shape} />
            {word}
          </span>
          <span class="soft number grow">{span(shown)}</span>
          {isRunning && mayWrite() && (
            <button class="button danger" onClick={() => act(() => ask("POST", `${path}/kill`, {}))}>
              End it
            </button>
          )}
        </div>
        <p class="soft cut">
          {shown.job} · <Said text={shown.cwd} />
          {shown.backend !== "local" && ` · ${shown.backend}`}
        </p>
        {shown.why !== null && (
          <p class="notice">
            <Said text={shown.why} />
          </p>
        )}
      </header>
      <Trouble text={trouble ?? log.error} />
      <Output log={log.value} />
      {isRunning && mayWrite() && <Write onLine={(text) => act(() => ask("POST", `${path}/submit`, { text }))} />}
    </section>
  );
}

function span(job: Job): string {
  const began = moment(job.ordered_at) ?? 0;
  const ended = moment(job.ended_at);
  return ended === null ? `since ${clock(began, now.value)}` : `${clock(began, now.value)}, took ${lasting(began, ended)}`;
}

function Output({ log }: { log: Log | null }) {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  // Whoever has scrolled up is reading: only at the end it goes on by itself.
  useEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log]);
  return (
    <pre
      class="output"
      ref={box}
      tabIndex={0}
      aria-label="What it printed"
      onScroll={(event) => {
        const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 24;
      }}
    >
      {log?.truncated || (log && log.offset > 0) ? <span class="earlier">Earlier lines are not shown here; perdure jobs log has what is kept.{"\n"}</span> : null}
      {log?.streams.map((piece, place) => (
        <span key={place} class={piece.stream}>
          {cleanText(plainOutput(piece.text))}
        </span>
      ))}
      {log?.total_lines === 0 && log.streams.length === 0 ? <span class="earlier">Nothing was printed yet.</span> : null}
    </pre>
  );
}

function Write({ onLine }: { onLine: (text: string) => void }) {
  const [text, setText] = useState("");
  return (
    <form
      class="row write"
      onSubmit={(event) => {
        event.preventDefault();
        onLine(text);
        setText("");
      }}
    >
      <input class="field grow mono" value={text} placeholder="A line for its input" aria-label="A line for its input" autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
      <button class="button">Send</button>
    </form>
  );
}
