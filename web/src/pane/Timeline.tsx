import { now } from "../api/live";
import type { Happening } from "../api/shapes";
import { StateMark } from "../look/StateMark";
import { lookOf, parseWord } from "../runs/states";
import { Because } from "../text/Because";
import { clock, moment } from "../text/times";
import { becauseOf } from "./happened";

/** What a run has been through, the latest first, each with who decided. */
export function Timeline({ events }: { events: readonly Happening[] }) {
  if (events.length === 0) return <p class="soft">Nothing has changed since it was first seen.</p>;
  return (
    <ol class="timeline">
      {events.map((event) => (
        <Step key={event.seq} event={event} />
      ))}
    </ol>
  );
}

function Step({ event }: { event: Happening }) {
  const at = moment(event.at) ?? 0;
  const to = typeof event.data.to === "string" ? parseWord(event.data.to) : null;
  return (
    <li class={to ? `tone-${lookOf(to.state, to.reason).tone}` : "tone-dim"}>
      <time class="number soft" dateTime={event.at}>
        {clock(at, now.value, true)}
      </time>
      <span>
        {to ? <StateMark state={to.state} reason={to.reason} /> : <span class="state tone-calm">{kindOf(event)}</span>}
        <span class="soft why"><Because told={becauseOf(event)} /></span>
      </span>
    </li>
  );
}

function kindOf({ kind, data }: Happening): string {
  return kind === "run_deleted" && data.mode === "detach" ? "not followed" : (KINDS[kind] ?? kind);
}

const KINDS: Record<string, string> = {
  run_created: "first seen",
  run_returned: "came back",
  run_deleted: "pane gone",
  identity_changed: "another conversation",
  seen: "seen by you",
  sent: "told something",
};
