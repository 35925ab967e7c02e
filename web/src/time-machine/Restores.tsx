import { useEffect, useState } from "preact/hooks";
import { ask } from "../api/ask";
import { follow, now } from "../api/live";
import type { Page, SnapshotLine } from "../api/shapes";
import { useAnswer } from "../shell/loading";
import { addressOf } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { Said } from "../text/Said";
import { clock, lasting, moment } from "../text/times";
import { cameTo, wordOf, type Restore, type RestoreLine } from "./progress";
import { Steps } from "./Steps";

const SHOWN = 20;

interface RestoresProps {
  snapshots: readonly SnapshotLine[];
  /** Only those of this snapshot. */
  of?: string;
}

/** What was brought back, when, from which moment, and what came of it. Nothing where nothing was. */
export function Restores({ snapshots, of }: RestoresProps) {
  const loaded = useAnswer<Page<RestoreLine>>(() => ask("GET", "/api/restores?limit=200"), []);
  useEffect(() => follow((event) => { if (event.kind === "restored") loaded.again(); }), []);
  const meant = (loaded.value?.items ?? []).filter((each) => of === undefined || each.snapshots.includes(of));
  if (meant.length === 0) return <Trouble text={loaded.error} />;
  return (
    <section class="panel restores" aria-label={of === undefined ? "Restores" : "Restores of this moment"}>
      <h2>{of === undefined ? "What was brought back" : "Brought back before"}</h2>
      <Trouble text={loaded.error} />
      <ul>
        {meant.slice(0, SHOWN).map((each) => (
          <OneRestore key={each.id} restore={each} from={of === undefined ? each.snapshots.map((id) => snapshotOf(id, snapshots)) : []} />
        ))}
      </ul>
    </section>
  );
}

interface From {
  id: string;
  /** When it was taken; null of one that is not listed any more. */
  at: number | null;
}

function snapshotOf(id: string, snapshots: readonly SnapshotLine[]): From {
  return { id, at: moment(snapshots.find((each) => each.id === id)?.taken_at) };
}

function OneRestore({ restore, from }: { restore: RestoreLine; from: readonly From[] }) {
  const [isOpen, setOpen] = useState(false);
  const { word, tone } = wordOf(restore.state);
  const began = moment(restore.began_at) ?? 0;
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <time class="number strong" dateTime={restore.began_at} title={`${lasting(began, now.value)} ago`}>
            {clock(began, now.value, true)}
          </time>{" "}
          <span class={`tone-${tone}`}>{word}:</span> <Said text={cameTo(restore)} />
        </summary>
        {isOpen && <Detail restore={restore} />}
      </details>
      {from.length > 0 && (
        <p class="soft small">
          from{" "}
          {from.map(({ id, at }, place) => (
            <span key={id}>
              {place > 0 && ", "}
              {at === null ? "a snapshot that is not kept any more" : <a href={addressOf("time-machine", id)}>the moment {clock(at, now.value, true)}</a>} <code class="detail">{id}</code>
            </span>
          ))}
        </p>
      )}
    </li>
  );
}

function Detail({ restore }: { restore: RestoreLine }) {
  const loaded = useAnswer<Restore>(() => ask("GET", `/api/restores/${encodeURIComponent(restore.id)}`), [restore.id, restore.state]);
  return (
    <>
      <Trouble text={loaded.error} />
      {loaded.value && <Steps steps={loaded.value.steps} />}
      <p class="soft small">
        {restore.here ? "Asked for here" : "Asked for in a terminal, or done without being asked"}
        {restore.user !== null && <>, for <Said text={restore.user} /></>} <code class="detail">{restore.id}</code>
      </p>
    </>
  );
}
