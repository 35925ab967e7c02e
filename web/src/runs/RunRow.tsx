import { now } from "../api/live";
import type { Run } from "../api/shapes";
import { RunMark } from "../look/StateMark";
import { addressOf } from "../shell/route";
import { amount } from "../text/numbers";
import { cleanLine } from "../text/clean";
import { Said } from "../text/Said";
import { clock, lasting, moment } from "../text/times";
import { doing } from "./grouping";
import { themes } from "./hosts";

/** How much of its context a conversation has used. */
export function Context({ run }: { run: Run }) {
  if (run.context_used === null) return <span class="context" />;
  const percent = run.context_pct;
  const used = amount(run.context_used);
  const label = percent === null ? `context: ${used} tokens` : `context: ${percent}% used, ${used} tokens`;
  return (
    <span class="context" title={label}>
      {percent !== null && (
        <span class="bar" aria-hidden="true">
          <span class={percent >= 80 ? "full" : ""} style={{ width: `${Math.min(100, Math.max(2, percent))}%` }} />
        </span>
      )}
      <span class="number soft">
        <span class="unseen">{label}</span>
        <span aria-hidden="true">{percent === null ? used : `${percent}%`}</span>
      </span>
    </span>
  );
}

/** How long it has been so, with the moment itself to be read on demand. */
export function Since({ at }: { at: string | null }) {
  const since = moment(at);
  if (since === null) return <span class="number soft since" />;
  return (
    <time class="number soft since" dateTime={at ?? ""} title={clock(since, now.value, true)}>
      {lasting(since, now.value)}
    </time>
  );
}

/** The directory's last part and the branch: which work this is. */
export function Work({ run }: { run: Run }) {
  const folder = run.cwd.split("/").filter(Boolean).at(-1) ?? "/";
  return (
    <span class="work soft cut" title={run.cwd}>
      <Said text={folder} />
      {run.branch !== null && (
        <>
          {" "}
          <span aria-hidden="true">⎇</span> <Said text={run.branch} />
        </>
      )}
    </span>
  );
}

interface RunRowProps {
  run: Run;
  name: string;
  /** Whether runs of several machines or users are shown. */
  withOwner: boolean;
}

/** One run: state, name, agent, what it is doing, context, where, since when. */
export function RunRow({ run, name, withOwner }: RunRowProps) {
  const theme = run.theme === null ? undefined : themes.value[run.theme];
  const line = doing(run);
  return (
    <li class="run">
      <a href={addressOf("runs", run.id)} data-row>
        <span class="repo" style={theme ? { background: theme.body } : {}} />
        <RunMark run={run} />
        <span class="name cut" title={cleanLine(name)}>
          <Said text={name} />
        </span>
        <span class="agent cut">{run.agent ?? "shell"}</span>
        <span class="doing cut" title={line === null ? undefined : cleanLine(line)}>{line === null ? <span class="soft">nothing said yet</span> : <Said text={line} />}</span>
        <Context run={run} />
        <Work run={run} />
        {withOwner && (
          <span class="owner soft cut">
            {run.user}@{run.host}
          </span>
        )}
        <Since at={run.ended_at ?? run.since} />
        {run.ended_at === null && run.health !== null && run.health !== "healthy" && <span class="health tone-trouble">server {run.health}</span>}
      </a>
    </li>
  );
}
