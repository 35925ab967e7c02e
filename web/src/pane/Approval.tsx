import { useState } from "preact/hooks";
import { ask, Refused, sentence } from "../api/ask";
import { connection, mayWrite } from "../api/live";
import type { Run } from "../api/shapes";
import { notNow } from "../api/socket";
import { useAnswer } from "../shell/loading";
import { Trouble } from "../shell/Trouble";
import { cleanText } from "../text/clean";
import { Said } from "../text/Said";
import { choicesOf, type Prompt } from "./prompts";
import type { Delivered } from "./telling";

/** What is asked stands at the end of what is shown. */
function atItsEnd(box: HTMLPreElement | null): void {
  if (box) box.scrollTop = box.scrollHeight;
}

/** What a run wants to be allowed or told, as its screen shows it, and the answers to it. */
export function Approval({ run }: { run: Run }) {
  const prompt = useAnswer<Prompt>(() => ask("GET", `/api/runs/${run.id}/prompt`), [run.id, run.who, run.state, run.reason, run.since]);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const shown = prompt.value;
  const isOld = notNow(connection.value);

  const answer = async (choice: string): Promise<void> => {
    if (shown === null) return;
    setSending(true);
    setTrouble(null);
    try {
      const { result, why } = await ask<Delivered>("POST", `/api/runs/${run.id}/answer`, { prompt: shown.prompt, who: shown.who, choice });
      if (result === "refused") {
        setTrouble(`Nothing was sent: ${why ?? "it was refused"}.`);
        prompt.again();
      }
    } catch (error) {
      setTrouble(error instanceof Refused && error.status === 409 ? `Nothing was sent. ${error.message}` : sentence(error));
      if (error instanceof Refused && error.code === "SCREEN_CHANGED") prompt.again();
    } finally {
      setSending(false);
    }
  };

  return (
    <section class="approval panel" aria-label="What it asks">
      <h2>{run.reason === "permission" ? "It wants your permission" : "It asks you something"}</h2>
      <div class="body stack">
        <Trouble text={trouble ?? prompt.error} />
        {shown && (
          <pre class="output prompt" ref={atItsEnd} tabIndex={0} aria-label="The prompt as it is shown">
            {cleanText(shown.prompt)}
          </pre>
        )}
        {shown && mayWrite() && (
          <div class="row">
            {choicesOf(shown).map(({ key, label }) => (
              <button key={key} class="button choice" disabled={isSending || isOld !== null} onClick={() => void answer(key)}>
                <kbd>{key}</kbd>
                <Said text={label} />
              </button>
            ))}
          </div>
        )}
        <p class="soft small">{isOld ?? "An answer is sent only while the same agent still shows this."}</p>
      </div>
    </section>
  );
}
