import { useEffect, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { connection } from "../api/live";
import type { Run } from "../api/shapes";
import { notNow } from "../api/socket";
import { Said } from "../text/Said";
import { isLeft, taken } from "./left";
import { cameOf, isForAnother, isReplaced, meantFor, saidOf, written, type Delivered, type Writing } from "./telling";

/** A text for the agent, delivered as `perdure send` does, with what came of it. */
export function Tell({ run }: { run: Run }) {
  const [writing, setWriting] = useState<Writing>({ text: "", who: null });
  const { text } = writing;
  const isOld = notNow(connection.value) ?? (run.agent === null ? "No agent is there now." : null);
  const [isSending, setSending] = useState(false);
  const [said, setSaid] = useState<{ tone: string; text: string; isDraft?: boolean; isReplaced?: boolean } | null>(null);
  const hasLeft = isLeft(run.id);
  useEffect(() => {
    const left = taken(run.id);
    if (left === null) return;
    setSaid({ tone: "call", text: left.said });
    setWriting((now) => (now.text === "" ? left.writing : { ...now, text: `${left.writing.text}\n${now.text}`.trimStart() }));
  }, [run.id, hasLeft]);

  // Whoever looks at a conversation tells that one something, and no other that may be there by now.
  const send = async (joined = false, who = meantFor(writing, run.who)): Promise<void> => {
    if (text.trim() === "" || isSending || isOld !== null) return;
    setSending(true);
    setSaid(null);
    setWriting((now) => ({ ...now, who }));
    try {
      const came = await ask<Delivered>("POST", `/api/runs/${run.id}/input`, { text, joined, who });
      const isDraft = typeof came.draft === "string";
      setSaid({ tone: came.result === "delivered" ? "news" : "call", text: saidOf(came), isDraft, isReplaced: isReplaced(came) });
      setWriting((now) => cameOf(now, { text, who }, came));
    } catch (error) {
      setSaid({ tone: "trouble", text: sentence(error) });
    } finally {
      setSending(false);
    }
  };

  return (
    <form
      class="tell"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        class="field"
        rows={1}
        value={text}
        placeholder="Tell it something"
        aria-label="Tell it something"
        data-after-terminal
        onInput={(event) => setWriting(written(writing, event.currentTarget.value, run.who))}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            // A key that is held down says nothing twice.
            if (!event.repeat) void send();
          }
        }}
      />
      <button class="button main" disabled={isSending || isOld !== null || text.trim() === ""} title={isOld ?? undefined}>
        {isSending ? "Sending…" : "Send"}
      </button>
      <p class={`said soft ${said ? `tone-${said.tone}` : ""}`} role="status">
        {said !== null && <Said text={said.text} />} {text !== "" && isOld}
      </p>
      {said?.isReplaced && text.trim() !== "" && isForAnother(writing, run.who) && (
        <div class="row choose">
          <button type="button" class="button" disabled={isSending || isOld !== null} onClick={() => void send(false, run.who)}>
            Send it to the one that is there now
          </button>
          <span class="soft small">You wrote it for another. It goes to nobody else before you say so.</span>
        </div>
      )}
      {said?.isDraft && (
        <div class="row choose">
          <button type="button" class="button" disabled={isSending || isOld !== null} onClick={() => void send(true)}>
            Add it to that and send both
          </button>
          <span class="soft small">Or take it back in the terminal, and send yours again.</span>
        </div>
      )}
    </form>
  );
}
