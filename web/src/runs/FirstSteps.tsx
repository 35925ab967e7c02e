import { ask } from "../api/ask";
import { mayWrite } from "../api/live";
import type { Page, SnapshotLine } from "../api/shapes";
import { useAnswer } from "../shell/loading";

/** What somebody new does next. */
export function FirstSteps({ onNew }: { onNew: () => void }) {
  const saved = useAnswer<Page<SnapshotLine>>(() => ask("GET", "/api/snapshots?limit=1"), []);
  return (
    <section class="first panel">
      <h2>No pane is open</h2>
      <div class="body stack">
        <p>Perdure watches every tmux pane of yours. Open one, and it shows up here by itself, with the agent in it and what it is doing.</p>
        <ol class="stack">
          <li>
            Start an agent in a new tmux session:
            <pre>perdure new fix --agent claude --prompt 'Why is the build slow?'</pre>
          </li>
          <li>
            Or open tmux as you always do, and start your agent in it:
            <pre>tmux new -s work</pre>
          </li>
          <li>
            Nothing at hand? This shows everything with simulated agents, on a server of its own:
            <pre>perdure demo</pre>
          </li>
        </ol>
        <div class="row">
          {mayWrite() && (
            <button class="button main" onClick={onNew}>
              Start an agent here
            </button>
          )}
          {(saved.value?.items.length ?? 0) > 0 && (
            <a class="button" href="/time-machine">
              Bring back what was saved
            </a>
          )}
        </div>
      </div>
    </section>
  );
}
