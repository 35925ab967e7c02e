import { useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import type { Run } from "../api/shapes";
import { Said } from "../text/Said";
import { saidOf, type Delivered } from "./telling";

/** A text for the agent, delivered as `perdure send` does, with what came of it. */
export function Tell({ run }: { run: Run }) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const [said, setSaid] = useState<{ tone: string; text: string; isDraft?: boolean } | null>(null);

  const send = async (joined: boolean): Promise<void> => {
    if (text.trim() === "" || isSending) return;
    setSending(true);
    setSaid(null);
    try {
      // Whoever looks at a conversation tells that one something, and no other that may be there by now.
      const conversation = run.certain ? run.conversation : null;
      const came = await ask<Delivered>("POST", `/api/runs/${run.id}/input`, { text, joined, conversation });
      setSaid({ tone: came.result === "delivered" ? "news" : "call", text: saidOf(came), isDraft: typeof came.draft === "string" });
      if (came.result !== "refused") setText("");
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
        void send(false);
      }}
    >
      <textarea
        class="field"
        rows={1}
        value={text}
        placeholder="Tell it something"
        aria-label="Tell it something"
        data-after-terminal
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            void send(false);
          }
        }}
      />
      <button class="button main" disabled={isSending || text.trim() === ""}>
        {isSending ? "Sending…" : "Send"}
      </button>
      <p class={`said soft ${said ? `tone-${said.tone}` : ""}`} role="status">
        {said === null ? "" : <Said text={said.text} />}
      </p>
      {said?.isDraft && (
        <div class="row choose">
          <button type="button" class="button" onClick={() => void send(true)}>
            Add it to that and send both
          </button>
          <span class="soft small">Or take it back in the terminal, and send yours again.</span>
        </div>
      )}
    </form>
  );
}
