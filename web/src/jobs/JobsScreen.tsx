import { useEffect, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { follow, mayWrite, now } from "../api/live";
import type { Job, Page } from "../api/shapes";
import { useRowKeys } from "../keys/rows";
import { Shape } from "../look/Shape";
import { useAnswer } from "../shell/loading";
import { addressOf, go } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { cut } from "../text/clean";
import { Said } from "../text/Said";
import { lasting, moment } from "../text/times";
import { OneJob } from "./OneJob";
import { commandOf, lookOfJob } from "./words";
import "./jobs.css";

/** Commands that go on when whoever asked for them is gone. */
export function JobsScreen({ id }: { id: string | null }) {
  const loaded = useAnswer<Page<Job>>(() => ask("GET", "/api/jobs?limit=200"), []);
  useRowKeys();
  useEffect(() => follow((event) => { if (event.kind === "job_started" || event.kind === "job_ended") loaded.again(); }), []);
  const jobs = loaded.value?.items ?? [];
  return (
    <>
      <h1>Jobs</h1>
      <Trouble text={loaded.error} />
      <div class={id === null ? "split" : "split chosen"}>
        <div class="stack">
          {mayWrite() && <NewJob onBegun={loaded.again} />}
          {loaded.value !== null && jobs.length === 0 && (
            <p class="panel empty">
              No job was started yet. A job goes on when you close this page, your terminal, or the daemon: <code>perdure jobs run -- make -j8 all</code>
            </p>
          )}
          {jobs.length > 0 && (
            <ul class="list panel">
              {jobs.map((job) => (
                <JobRow key={job.job} job={job} isChosen={job.job === id} />
              ))}
            </ul>
          )}
        </div>
        {id === null ? <p class="panel empty">Choose a job to see what it prints.</p> : <OneJob key={id} id={id} onChange={loaded.again} />}
      </div>
    </>
  );
}

function JobRow({ job, isChosen }: { job: Job; isChosen: boolean }) {
  const { word, tone, shape } = lookOfJob(job);
  const ended = moment(job.ended_at);
  return (
    <li>
      <a href={addressOf("jobs", job.job)} data-row aria-current={isChosen ? "true" : undefined}>
        <code class="cut">
          <Said text={cut(commandOf(job), 200)} />
        </code>
        <span class="row">
          <span class={`state tone-${tone}`}>
            <Shape shape={shape} />
            {word}
          </span>
          <span class="soft number grow">{ended === null ? `for ${lasting(moment(job.ordered_at) ?? 0, now.value)}` : `${lasting(ended, now.value)} ago`}</span>
          {job.owner !== null && (
            <span class="soft cut">
              <Said text={job.owner} />
            </span>
          )}
        </span>
      </a>
    </li>
  );
}

function NewJob({ onBegun }: { onBegun: () => void }) {
  const [text, setText] = useState("");
  const [trouble, setTrouble] = useState<string | null>(null);
  const begin = async (): Promise<void> => {
    try {
      const { job } = await ask<{ job: Job }>("POST", "/api/jobs", { shell: text });
      setText("");
      setTrouble(null);
      onBegun();
      go("jobs", job.job);
    } catch (error) {
      setTrouble(sentence(error));
    }
  };
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        void begin();
      }}
    >
      <input class="field grow mono" data-find value={text} placeholder="make -j8 all" aria-label="A command for your shell" autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
      <button class="button" disabled={text.trim() === ""}>
        Run
      </button>
      <Trouble text={trouble} />
    </form>
  );
}
