import { useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { Said } from "../text/Said";

/** What came of telling a run something. */
export interface Delivered {
  result: string;
  by?: string | null;
  why?: string | null;
  /** What somebody has begun to type there, where nothing was typed because of that. */
  draft?: string | null;
}

const SAID: Record<string, string> = {
  delivered: "It heard you",
  unconfirmed: "It was typed, but nothing shows yet that it was heard",
  refused: "Nothing was typed",
};

/** A text for the agent, delivered as `perdure send` does, with what came of it. */
export function Tell({ run }: { run: string }) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const [said, setSaid] = useState<{ tone: string; text: string; isDraft?: boolean } | null>(null);

  const send = async (joined: boolean): Promise<void> => {
    if (text.trim() === "" || isSending) return;
    setSending(true);
    setSaid(null);
    try {
      const { result, by, why, draft } = await ask<Delivered>("POST", `/api/runs/${run}/input`, { text, joined });
      const how = [SAID[result] ?? result, by ? `(${by})` : "", why ? `: ${why}` : ""].join(" ").replace(" :", ":").trim();
      setSaid({ tone: result === "delivered" ? "news" : "call", text: how, isDraft: typeof draft === "string" });
      if (result !== "refused") setText("");
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
