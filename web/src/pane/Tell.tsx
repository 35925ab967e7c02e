import { useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";

/** What came of telling a run something. */
export interface Delivered {
  result: string;
  by?: string | null;
  why?: string | null;
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
  const [said, setSaid] = useState<{ tone: string; text: string } | null>(null);

  const send = async (): Promise<void> => {
    if (text.trim() === "" || isSending) return;
    setSending(true);
    setSaid(null);
    try {
      const { result, by, why } = await ask<Delivered>("POST", `/api/runs/${run}/input`, { text });
      const how = [SAID[result] ?? result, by ? `(${by})` : "", why ? `: ${why}` : ""].join(" ").replace(" :", ":").trim();
      setSaid({ tone: result === "delivered" ? "news" : "call", text: how });
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
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <button class="button main" disabled={isSending || text.trim() === ""}>
        {isSending ? "Sending…" : "Send"}
      </button>
      <p class={`said soft ${said ? `tone-${said.tone}` : ""}`} role="status">
        {said?.text ?? ""}
      </p>
    </form>
  );
}
