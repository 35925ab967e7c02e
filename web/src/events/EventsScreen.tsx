import { useEffect, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { follow, now } from "../api/live";
import type { Happening, Page } from "../api/shapes";
import { Find } from "../keys/Find";
import { useRowKeys } from "../keys/rows";
import { runs } from "../runs/store";
import { useAnswer } from "../shell/loading";
import { addressOf } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { Because } from "../text/Because";
import { Said } from "../text/Said";
import { clock, moment } from "../text/times";
import { GROUPS, inWords, subjectOf } from "./words";
import "./events.css";

const MOST = 1000;
const AT_ONCE = 300;

interface Stretch {
  items: Happening[];
  /** What came behind this number is among them. */
  after: number;
  /** The number of the first event there is. */
  first: number;
}

async function upTo(last: number, first: number): Promise<Stretch> {
  const after = Math.max(0, last - AT_ONCE);
  const { items } = await ask<Page<Happening>>("GET", `/api/events?after=${after}&limit=${AT_ONCE}`);
  // Where some are somebody else's, a page reaches further.
  return { items: items.filter((event) => event.seq <= last), after, first };
}

/** The last events there are. */
async function latest(): Promise<Stretch> {
  const { last, items } = await ask<Page<Happening> & { last: number }>("GET", "/api/events?limit=1");
  return upTo(last, items[0]?.seq ?? last + 1);
}

/** What has happened, the latest first, and what happens. */
export function EventsScreen() {
  const loaded = useAnswer(latest, []);
  const [fresh, setFresh] = useState<Happening[]>([]);
  const [older, setOlder] = useState<Stretch | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [group, setGroup] = useState<string | null>(null);
  const [query, setQuery] = useState("");
  useRowKeys();
  useEffect(() => follow((event) => setFresh((before) => [event, ...before].slice(0, MOST))), []);
  const oldest = older ?? loaded.value;
  const earlier = async (): Promise<void> => {
    if (oldest === null) return;
    try {
      const more = await upTo(oldest.after, oldest.first);
      setOlder({ ...more, items: [...more.items, ...(older?.items ?? [])] });
      setTrouble(null);
    } catch (error) {
      setTrouble(sentence(error));
    }
  };
  const known = new Map([...(older?.items ?? []), ...(loaded.value?.items ?? []), ...fresh].map((event) => [`${event.seq} ${event.at}`, event]));
  const names = new Map((runs.value ?? []).map((run) => [run.id, run.target]));
  const isMeant = (event: Happening): boolean => {
    if (group !== null && !GROUPS.find(([name]) => name === group)?.[1](event.kind)) return false;
    const hay = `${event.seq} ${event.kind} ${event.run ?? ""} ${names.get(event.run ?? "") ?? ""} ${inWords(event).words} ${inWords(event).id ?? ""}`.toLowerCase();
    return query.toLowerCase().split(/\s+/).every((word) => hay.includes(word));
  };
  const shown = [...known.values()].filter(isMeant).sort((a, b) => b.seq - a.seq || b.at.localeCompare(a.at));
  return (
    <>
      <h1>Events</h1>
      <Trouble text={loaded.error} />
      <div class="row filters">
        <Find value={query} label="Find an event" onFind={setQuery} />
        <div class="chips" role="group" aria-label="Only these">
          {GROUPS.map(([name]) => (
            <button key={name} class="chip" aria-pressed={group === name} onClick={() => setGroup(group === name ? null : name)}>
              {name}
            </button>
          ))}
        </div>
      </div>
      {loaded.value !== null && shown.length === 0 && <p class="panel empty">Nothing like that has happened.</p>}
      {shown.length > 0 && (
        <ol class="panel events">
          {shown.map((event) => (
            <EventRow key={`${event.seq} ${event.at}`} event={event} names={names} />
          ))}
        </ol>
      )}
      {oldest !== null && oldest.after >= oldest.first && (
        <div class="row earlier">
          <button class="button" onClick={() => void earlier()}>
            Earlier
          </button>
          <span class="soft">{shown.length < known.size && "Only what is shown has been looked through."}</span>
        </div>
      )}
      <Trouble text={trouble} />
    </>
  );
}

function EventRow({ event, names }: { event: Happening; names: ReadonlyMap<string, string> }) {
  const subject = subjectOf(event);
  return (
    <li>
      <span class="number soft">{event.seq || "–"}</span>
      <time class="number soft" dateTime={event.at}>
        {clock(moment(event.at) ?? 0, now.value, true)}
      </time>
      <span class="kind">{event.kind.replaceAll("_", " ")}</span>
      <span class="cut who-run">
        {subject !== null && (
          <a href={addressOf(subject.screen, subject.id)} data-row>
            <Said text={names.get(subject.id) ?? subject.id} />
          </a>
        )}
      </span>
      <span class="words">
        <Because told={inWords(event)} />
      </span>
    </li>
  );
}
