import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, askAll } from "../api/ask";
import { follow, now } from "../api/live";
import type { Page, SnapshotLine } from "../api/shapes";
import { useRowKeys } from "../keys/rows";
import { useAnswer } from "../shell/loading";
import { addressOf, go } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { counted } from "../text/numbers";
import { Said } from "../text/Said";
import { clock, dayOf, lasting, moment } from "../text/times";
import { Differences } from "./Differences";
import { Restores } from "./Restores";
import { Restoring } from "./Restoring";
import { byDay, grown, heaped, placed } from "./timeline";
import "./time-machine.css";

/** How many are looked through for one that is not among the latest. */
const MOST = 20_000;

/** What was there, when, and how to have it back. */
export function TimeMachineScreen({ chosen }: { chosen: string | null }) {
  const loaded = useAnswer<Page<SnapshotLine>>(() => ask("GET", "/api/snapshots?limit=200"), []);
  const [other, setOther] = useState<string | null>(null);
  useRowKeys();
  useEffect(() => follow((event) => { if (event.kind === "saved" || event.kind === "server_died") loaded.again(); }), []);
  const snapshots = loaded.value?.items ?? [];
  const listed = snapshots.find((each) => each.id === chosen);
  const older = useAnswer<SnapshotLine | undefined>(
    async () => (chosen === null || listed || loaded.value === null ? undefined : unlisted(chosen)),
    [chosen, listed === undefined, loaded.value === null],
  );
  const one = chosen === null ? undefined : (listed ?? older.value ?? undefined);
  const changes = useMemo(() => grown(snapshots), [loaded.value]);
  return (
    <>
      <h1>Time machine</h1>
      <Trouble text={loaded.error ?? (chosen === null || listed ? null : older.error)} />
      {loaded.value !== null && snapshots.length === 0 && <Nothing />}
      {snapshots.length > 0 && <Line snapshots={snapshots} chosen={chosen} />}
      {snapshots.length > 0 && (
        <div class={one ? "split chosen" : "split"}>
          <div class="panel snapshots">
            {byDay(snapshots, (each) => dayOf(moment(each.taken_at) ?? 0, now.value)).map(([day, those]) => (
              <section key={day} aria-label={day}>
                <h2 class="day">{day}</h2>
                <ul class="list">
                  {those.map((each) => (
                    <SnapshotRow key={each.id} snapshot={each} change={changes.get(each.id)} isChosen={each.id === chosen} />
                  ))}
                </ul>
              </section>
            ))}
          </div>
          {one ? <OneSnapshot key={one.id} snapshot={one} all={snapshots} other={other} onOther={setOther} /> : <p class="panel empty">Choose a moment to see what was there, what has changed since, and to bring it back.</p>}
        </div>
      )}
      {!one && <Restores snapshots={snapshots} />}
    </>
  );
}

/** One that is not among the latest, or of which only the beginning of its id was given. Fails with why there is none. */
async function unlisted(id: string): Promise<SnapshotLine | undefined> {
  const whole = await ask<{ id: string }>("GET", `/api/snapshots/${encodeURIComponent(id)}`);
  return (await askAll<SnapshotLine>("/api/snapshots?limit=1000", MOST)).find((each) => each.id === whole.id);
}

function Nothing() {
  return (
    <p class="panel empty">
      Nothing is saved yet. While <code>perdure up</code> runs, every change of sessions, windows, panes and conversations is; <code>perdure save</code> keeps everything now.
    </p>
  );
}

function Line({ snapshots, chosen }: { snapshots: readonly SnapshotLine[]; chosen: string | null }) {
  const marks = placed(snapshots, now.value);
  const oldest = moment(marks.at(-1)?.snapshot.taken_at);
  return (
    <nav class="line panel" aria-label="Snapshots on a line of time">
      <div class="track">
        {heaped(marks, 0.02).map((heap) => {
          const mark = heap.find(({ snapshot }) => snapshot.id === chosen) ?? heap[0];
          if (!mark) return null;
          const { snapshot } = mark;
          const at = moment(snapshot.taken_at) ?? 0;
          const agents = Math.max(...heap.map((each) => each.snapshot.agents));
          return (
            <a
              key={snapshot.id}
              class="mark"
              href={addressOf("time-machine", snapshot.id)}
              aria-current={snapshot.id === chosen ? "true" : undefined}
              aria-label={`${clock(at, now.value, true)}, ${counted(snapshot.agents, "agent")}${heap.length > 1 ? `, and ${heap.length - 1} more around it` : ""}`}
              title={`${clock(at, now.value, true)} · ${counted(snapshot.agents, "agent")}`}
              style={{ left: `${mark.at * 100}%`, height: `${14 + Math.min(18, agents * 3)}px` }}
            />
          );
        })}
      </div>
      <div class="ends soft number" aria-hidden="true">
        <span>{oldest === null ? "" : `${lasting(oldest, now.value)} ago`}</span>
        <span>now</span>
      </div>
    </nav>
  );
}

function SnapshotRow({ snapshot, change, isChosen }: { snapshot: SnapshotLine; change: string | undefined; isChosen: boolean }) {
  const at = moment(snapshot.taken_at) ?? 0;
  return (
    <li>
      <a href={addressOf("time-machine", snapshot.id)} data-row aria-current={isChosen ? "true" : undefined}>
        <span class="row">
          <strong class="number">{clock(at, at, true)}</strong>
          <span class="soft cut grow">{change}</span>
          <span class="soft number">{lasting(at, now.value)} ago</span>
        </span>
        <span class="soft cut">
          {counted(snapshot.agents, "agent")}, {counted(snapshot.panes, "pane")} · <Said text={snapshot.socket.split("/").at(-1) ?? ""} />
          {snapshot.origin !== "capture" && ` · from ${snapshot.origin}`}
        </span>
      </a>
    </li>
  );
}

interface OneSnapshotProps {
  snapshot: SnapshotLine;
  all: readonly SnapshotLine[];
  other: string | null;
  onOther: (id: string | null) => void;
}

function OneSnapshot({ snapshot, all, other, onOther }: OneSnapshotProps) {
  const at = moment(snapshot.taken_at) ?? 0;
  const seen = moment(snapshot.last_seen_at) ?? at;
  const others = all.filter((each) => each.id !== snapshot.id && each.socket === snapshot.socket && each.host === snapshot.host);
  // Against the one before, unless somebody says otherwise.
  const before = others.find((each) => (moment(each.taken_at) ?? 0) < at)?.id ?? null;
  const against = other !== null && others.some((each) => each.id === other) ? other : before;
  return (
    <div class="stack">
      <section class="panel">
        <div class="body stack">
          <div class="row">
            <button class="button only-narrow" onClick={() => go("time-machine")}>
              ‹ All moments
            </button>
            <h2 class="grow moment">{clock(at, now.value, true)}</h2>
            <code class="soft">{snapshot.id}</code>
          </div>
          <dl class="facts">
            <dt>Still so at</dt>
            <dd class="number">{clock(seen, now.value, true)}</dd>
            <dt>What was there</dt>
            <dd>
              {counted(snapshot.agents, "agent")} in {counted(snapshot.panes, "pane")}, {counted(snapshot.windows, "window")}, {counted(snapshot.sessions, "session")}
            </dd>
            <dt>Server</dt>
            <dd>
              {snapshot.user}@{snapshot.host} <Said text={snapshot.socket} />
            </dd>
          </dl>
        </div>
      </section>
      <Restoring snapshot={snapshot} />
      <Restores snapshots={all} of={snapshot.id} />
      <section class="panel">
        <h2>What changed</h2>
        <div class="body stack">
          <label class="row">
            <span class="soft">since</span>
            <select class="field against" value={against ?? ""} onChange={(event) => onOther(event.currentTarget.value || null)}>
              {against === null && <option value="">no other snapshot of this server</option>}
              {others.map((each) => (
                <option key={each.id} value={each.id}>
                  {clock(moment(each.taken_at) ?? 0, now.value, true)}, {counted(each.agents, "agent")}, {counted(each.panes, "pane")}
                </option>
              ))}
            </select>
          </label>
          {against !== null && <Differences from={against} to={snapshot.id} />}
        </div>
      </section>
    </div>
  );
}
