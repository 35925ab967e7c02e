import { useEffect, useState } from "preact/hooks";
import { ask } from "../api/ask";
import { follow, now } from "../api/live";
import type { Happening, Page } from "../api/shapes";
import { Find } from "../keys/Find";
import { useRowKeys } from "../keys/rows";
import { runs } from "../runs/store";
import { useAnswer } from "../shell/loading";
import { addressOf } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { Said } from "../text/Said";
import { clock, moment } from "../text/times";
import { GROUPS, inWords, subjectOf } from "./words";
import "./events.css";

const MOST = 1000;
const FIRST = 300;

/** The last events there are. */
async function latest(): Promise<Page<Happening>> {
  const { last } = await ask<{ last: number }>("GET", "/api/events?limit=1");
  return ask("GET", `/api/events?after=${Math.max(0, last - FIRST)}&limit=${FIRST}`);
}

/** What has happened, the latest first, and what happens. */
export function EventsScreen() {
  const loaded = useAnswer(latest, []);
  const [fresh, setFresh] = useState<Happening[]>([]);
  const [group, setGroup] = useState<string | null>(null);
  const [query, setQuery] = useState("");
  useRowKeys();
  useEffect(() => follow((event) => setFresh((before) => [event, ...before].slice(0, MOST))), []);
  const known = new Map([...(loaded.value?.items ?? []), ...fresh].map((event) => [`${event.seq} ${event.at}`, event]));
  const names = new Map((runs.value ?? []).map((run) => [run.id, run.target]));
  const isMeant = (event: Happening): boolean => {
    if (group !== null && !GROUPS.find(([name]) => name === group)?.[1](event.kind)) return false;
    const hay = `${event.seq} ${event.kind} ${event.run ?? ""} ${names.get(event.run ?? "") ?? ""} ${inWords(event)}`.toLowerCase();
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
          {shown.slice(0, MOST).map((event) => (
            <EventRow key={`${event.seq} ${event.at}`} event={event} names={names} />
          ))}
        </ol>
      )}
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
        <Said text={inWords(event)} />
      </span>
    </li>
  );
}
