import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { mayWrite } from "../api/live";
import type { Run } from "../api/shapes";
import { Find } from "../keys/Find";
import { useRowKeys } from "../keys/rows";
import { addressOf } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { counted } from "../text/numbers";
import { FirstSteps } from "./FirstSteps";
import { ended, keepEnded } from "./ended";
import { agentsOf, grouped, matches, nameOf, type Filter, type Group } from "./grouping";
import { lost } from "./hosts";
import { Lost } from "./Lost";
import { NewRun } from "./NewRun";
import { RunRow } from "./RunRow";
import { lastOpened, needy, runs, trouble } from "./store";
import "./runs.css";

// Outlives the screen: whoever comes back from a pane finds the list as they left it.
const filter = signal<Filter>({ text: "", agent: null });

/** Who needs me? */
export function RunsScreen() {
  const [isNew, setNew] = useState(false);
  useRowKeys([{ keys: ["n"], does: "start an agent", action: () => setNew(mayWrite()) }]);
  useEffect(backToRow, []);
  useEffect(keepEnded, []);
  const all = runs.value;
  if (all === null) {
    return trouble.value === null ? <p class="empty">Looking…</p> : <Trouble text={trouble.value} />;
  }
  const gone = ended.value.filter((run) => !all.some((each) => each.id === run.id));
  const shown = [...all, ...gone].filter((run) => matches(run, filter.value));
  return (
    <>
      <header class="row headline">
        <h1 class="grow">{headline(all)}</h1>
        {mayWrite() && (
          <button class="button" onClick={() => setNew(true)}>
            New agent
          </button>
        )}
      </header>
      <Trouble text={trouble.value} />
      <Lost />
      {all.length === 0 ? <FirstSteps onNew={() => setNew(true)} /> : <Filters all={all} />}
      {all.length + gone.length > 0 && shown.length === 0 && <p class="empty">No run is like that.</p>}
      {grouped(shown).map((group) => (
        <GroupOfRuns key={group.name} group={group} all={all} />
      ))}
      {isNew && <NewRun onClose={() => setNew(false)} />}
    </>
  );
}

/** Whoever comes back from a pane goes on at its row. */
function backToRow(): void {
  if (lastOpened.value !== null) document.querySelector<HTMLElement>(`[data-row][href="${addressOf("runs", lastOpened.value)}"]`)?.focus();
}

function headline(all: readonly Run[]): string {
  if (all.length === 0) return lost.value.length > 0 ? "Nothing runs any more" : "Nothing runs yet";
  if (needy.value === 0) return "Nobody needs you";
  return `${counted(needy.value, "run")} need${needy.value === 1 ? "s" : ""} you`;
}

function Filters({ all }: { all: readonly Run[] }) {
  const { text, agent } = filter.value;
  const agents = agentsOf(all);
  return (
    <div class="row filters">
      <Find value={text} label="Find a run" onFind={(next) => (filter.value = { ...filter.value, text: next })} />
      {agents.length > 1 && (
        <div class="chips" role="group" aria-label="Only this agent">
          {agents.map(([name, count]) => (
            <button
              key={name}
              class="chip"
              aria-pressed={agent === name}
              onClick={() => (filter.value = { ...filter.value, agent: agent === name ? null : name })}
            >
              {name} <span class="soft number">{count}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** What has ended is seldom what somebody looks for. */
const MOST_ENDED = 8;

function GroupOfRuns({ group, all }: { group: Group; all: readonly Run[] }) {
  const [wantsWhole, setWhole] = useState(false);
  const isWhole = wantsWhole || group.name !== "ended" || group.runs.length <= MOST_ENDED;
  const owners = new Set(all.map((run) => `${run.user}@${run.host}`));
  return (
    <section class={`group panel ${group.name}`} aria-labelledby={`group-${group.name}`}>
      <h2 id={`group-${group.name}`}>
        {group.title} <span class="soft number">{group.runs.length}</span>
      </h2>
      <ul class={owners.size > 1 ? "runs owned" : "runs"}>
        {(isWhole ? group.runs : group.runs.slice(0, MOST_ENDED)).map((run) => (
          <RunRow key={run.id} run={run} name={nameOf(run, all)} withOwner={owners.size > 1} />
        ))}
      </ul>
      {!isWhole && (
        <button class="button plain" onClick={() => setWhole(true)}>
          All {group.runs.length}
        </button>
      )}
    </section>
  );
}
