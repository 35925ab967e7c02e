import type { RestoreStep } from "../api/shapes";
import { Shape } from "../look/Shape";
import type { Look } from "../runs/states";
import { counted } from "../text/numbers";
import { Said } from "../text/Said";
import { cleanText } from "../text/clean";

const ACTIONS: Record<string, string> = {
  keep: "is there already",
  leave: "left out",
  shell: "open a shell",
  resume: "resume",
  start: "start anew",
  run: "run again",
  show: "show the command only",
  dead: "show how it ended",
};

const RESULTS: Record<string, Look> = {
  planned: { word: "planned", tone: "calm", shape: "ring" },
  running: { word: "at it", tone: "work", shape: "spinner" },
  done: { word: "done", tone: "news", shape: "check" },
  verified: { word: "verified", tone: "news", shape: "check" },
  unverified: { word: "not verified", tone: "call", shape: "question" },
  skipped: { word: "skipped", tone: "dim", shape: "dot" },
  failed: { word: "failed", tone: "trouble", shape: "cross" },
};

/** What is done about every pane, and what came of it; what is there already stands apart. */
export function Steps({ steps }: { steps: readonly RestoreStep[] }) {
  const kept = steps.filter((step) => step.action === "keep");
  const rest = steps.filter((step) => step.action !== "keep");
  return (
    <>
      {rest.length > 0 && <List steps={rest} />}
      {kept.length > 0 && (
        <details>
          <summary>{counted(kept.length, "pane")} left as {kept.length === 1 ? "it is" : "they are"}: there already</summary>
          <List steps={kept} />
        </details>
      )}
    </>
  );
}

function List({ steps }: { steps: readonly RestoreStep[] }) {
  return (
    <ol class="steps">
      {steps.map((step) => (
        <Step key={`${step.socket} ${step.n}`} step={step} />
      ))}
    </ol>
  );
}

function Step({ step }: { step: RestoreStep }) {
  const { word, tone, shape } = RESULTS[step.result] ?? { word: step.result, tone: "dim", shape: "dot" };
  return (
    <li>
      <span class={`state tone-${tone}`}>
        <Shape shape={shape} />
        {word}
      </span>
      <span class="strong cut">
        <Said text={step.target} />
      </span>
      <span class="cut">
        {ACTIONS[step.action] ?? step.action} {step.agent}
        {step.conversation !== null && (
          <>
            {" "}
            <code class="soft">
              <Said text={step.conversation} />
            </code>
          </>
        )}
      </span>
      {step.why !== "" && step.action !== "keep" && (
        <span class="soft why">
          <Said text={step.why} />
        </span>
      )}
      {step.screen.length > 0 && <pre class="output">{cleanText(step.screen.join("\n"))}</pre>}
    </li>
  );
}
