import { useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import type { Explanation, Run } from "../api/shapes";
import { Context } from "../runs/RunRow";
import { Trouble } from "../shell/Trouble";
import { knownBy } from "../text/causes";
import { Said } from "../text/Said";

/** Which conversation it is in, and how that is known. */
export function Conversation({ run }: { run: Run }) {
  const [explained, setExplained] = useState<Explanation | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  if (run.agent === null) return <Nobody run={run} />;
  const explain = (): void => {
    ask<Explanation>("GET", `/api/runs/${run.id}/explain`).then(setExplained, (error: unknown) => setTrouble(sentence(error)));
  };
  return (
    <div class="stack">
      <dl class="facts">
        <dt>Title</dt>
        <dd>{run.conversation_title === null ? <span class="soft">none yet</span> : <Said text={run.conversation_title} />}</dd>
        <dt>Id</dt>
        <dd class="mono">{run.conversation === null ? <span class="soft">unknown</span> : <Said text={run.conversation} />}</dd>
        <dt>Known by</dt>
        <dd>
          {run.evidence === null ? "nothing" : knownBy(run.evidence)}
          {run.evidence !== null && (run.certain ? <span class="sure">, certain</span> : <span class="guess">, only a guess</span>)}
        </dd>
        <dt>Agent</dt>
        <dd>
          {run.agent} {run.agent_version}
        </dd>
        {run.model !== null && (
          <>
            <dt>Model</dt>
            <dd>
              <Said text={run.model} />
            </dd>
          </>
        )}
        {run.context_used !== null && (
          <>
            <dt>Context</dt>
            <dd>
              <Context run={run} />
            </dd>
          </>
        )}
      </dl>
      {explained === null ? (
        <button class="button" onClick={explain}>
          How is that known?
        </button>
      ) : (
        <Reasons explained={explained} />
      )}
      <Trouble text={trouble} />
    </div>
  );
}

function Nobody({ run }: { run: Run }) {
  if (run.last_agent === null) return <p class="soft">A shell; no agent is in it.</p>;
  return (
    <div class="stack">
      <p class="soft">No agent is in it any more.</p>
      <dl class="facts">
        <dt>Last</dt>
        <dd>{run.last_agent}</dd>
        {run.last_conversation !== null && (
          <>
            <dt>Id</dt>
            <dd class="mono">
              <Said text={run.last_conversation} />
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}

function Reasons({ explained }: { explained: Explanation }) {
  const parts: [string, string[]][] = [
    ["The agent", explained.recognition],
    ["The conversation", explained.because],
    ["Not taken for it", explained.rejected],
    ["The screen", explained.screen.because],
    ["Brought back by", explained.resume === null ? [] : [explained.resume.join(" ")]],
  ];
  return (
    <dl class="because">
      {parts
        .filter(([, lines]) => lines.length > 0)
        .map(([name, lines]) => (
          <div key={name}>
            <dt>{name}</dt>
            {lines.map((line) => (
              <dd key={line}>
                <Said text={line} />
              </dd>
            ))}
          </div>
        ))}
    </dl>
  );
}
