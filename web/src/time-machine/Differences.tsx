import { ask } from "../api/ask";
import type { Change } from "../api/shapes";
import { useAnswer } from "../shell/loading";
import { Trouble } from "../shell/Trouble";
import { Said } from "../text/Said";
import { cut } from "../text/clean";

const SIGNS: Record<Change["change"], [string, string]> = { gone: ["−", "trouble"], new: ["+", "news"], changed: ["~", "work"] };

/** What changed from one snapshot to another. */
export function Differences({ from, to }: { from: string; to: string }) {
  const loaded = useAnswer<{ changes: Change[] }>(() => ask("GET", `/api/snapshots/${from}/diff/${to}`), [from, to]);
  const changes = loaded.value?.changes;
  return (
    <>
      <Trouble text={loaded.error} />
      {changes?.length === 0 && <p class="soft">Nothing a person would call a difference.</p>}
      {changes !== undefined && changes.length > 0 && (
        <ul class="changes">
          {changes.map((change) => (
            <OneChange key={`${change.kind} ${change.target} ${change.property ?? change.change}`} change={change} />
          ))}
        </ul>
      )}
    </>
  );
}

function OneChange({ change }: { change: Change }) {
  const [sign, tone] = SIGNS[change.change];
  return (
    <li>
      <span class={`sign mono tone-${tone}`} aria-hidden="true">
        {sign}
      </span>
      <span>
        <span class="unseen">{change.change}: </span>
        {change.kind} <Said text={change.target} class="strong" />
        {change.change === "changed" && (
          <>
            {" "}
            <span class="soft">{change.property}</span> <del><Said text={shown(change.before)} /></del> → <ins><Said text={shown(change.after)} /></ins>
          </>
        )}
      </span>
    </li>
  );
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return cut(value.join(" "), 120);
  return cut(typeof value === "string" ? value : JSON.stringify(value), 120);
}
