import { useEffect, useRef, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { follow, mayWrite, now } from "../api/live";
import type { Chat, Turn } from "../api/shapes";
import { useAnswer } from "../shell/loading";
import { go, part } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { closedBecause } from "../text/causes";
import { counted } from "../text/numbers";
import { Passage, Said } from "../text/Said";
import { clock, moment } from "../text/times";
import { Reset } from "./Reset";
import { turnIn, wordsOf } from "./words";

interface WholeChat {
  chat: Chat;
  turns: Turn[];
}

const LAST = 200;

/** What was said in a chat, the latest at the end. */
export function Transcript({ id }: { id: string }) {
  const wanted = turnIn(part.value);
  const loaded = useAnswer<WholeChat>(async () => {
    const path = `/api/chats/${encodeURIComponent(id)}`;
    const turns = async (which: string): Promise<Turn[]> => (await ask<{ items: Turn[] }>("GET", `${path}/transcript?${which}&limit=${LAST}`)).items;
    const [{ chat }, last] = await Promise.all([ask<{ chat: Chat }>("GET", path), turns("last=true")]);
    const isEarlier = wanted !== null && last[0] !== undefined && wanted < last[0].position;
    return { chat, turns: isEarlier ? await turns(`before=${wanted + LAST / 2}`) : last };
  }, [id, wanted]);
  useEffect(() => follow((event) => { if (event.data.chat === id) loaded.again(); }), [id]);
  const shown = loaded.value;
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (shown === null) return;
    const turn = wanted === null ? list.current?.lastElementChild : document.getElementById(`turn-${wanted}`);
    turn?.scrollIntoView({ block: wanted === null ? "nearest" : "center" });
  }, [shown?.turns[0]?.position, wanted]);
  if (shown === null) return loaded.error === null ? <p class="panel empty">Reading…</p> : <Trouble text={loaded.error} />;
  const { chat, turns } = shown;
  return (
    <article class="panel transcript" aria-label="Transcript">
      <header class="stack">
        <button class="button only-narrow back-to-list" onClick={() => go("chats")}>
          ‹ All chats
        </button>
        <Title chat={chat} onChange={loaded.again} />
        <p class="soft">
          <Said text={chat.where} /> · {counted(chat.turns, "turn")} · {chat.open ? "open" : `closed${chat.close_reason ? `: ${closedBecause(chat.close_reason)}` : ""}`}
        </p>
      </header>
      <Trouble text={loaded.error} />
      <ol ref={list}>
        {turns.map((turn) => (
          <li key={turn.position} id={`turn-${turn.position}`} class={`turn ${turn.role === "user" ? "person" : ""} ${turn.position === wanted ? "wanted" : ""}`}>
            <p class="soft">
              <strong>{turn.role}</strong> {turn.tool_name}{" "}
              <time class="number" dateTime={turn.at}>
                {clock(moment(turn.at) ?? 0, now.value)}
              </time>
            </p>
            <Passage text={wordsOf(turn)} />
          </li>
        ))}
      </ol>
    </article>
  );
}

/** Whoever renames types at once: letters elsewhere are shortcuts. */
function begun(field: HTMLInputElement | null): void {
  field?.focus();
  field?.select();
}

function Title({ chat, onChange }: { chat: Chat; onChange: () => void }) {
  const [draft, setDraft] = useState<string | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const rename = async (title: string): Promise<void> => {
    try {
      await ask("PUT", `/api/chats/${encodeURIComponent(chat.id)}/title`, { title: title.trim() === "" ? null : title });
      setDraft(null);
      onChange();
    } catch (error) {
      setTrouble(sentence(error));
    }
  };
  if (draft === null) {
    return (
      <div class="row">
        <h2 class="grow cut">{chat.title === null ? "Untitled" : <Said text={chat.title} />}</h2>
        {mayWrite() && (
          <button class="button" onClick={() => setDraft(chat.title ?? "")}>
            Rename
          </button>
        )}
        {mayWrite() && chat.open && <Reset chat={chat} />}
      </div>
    );
  }
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        void rename(draft);
      }}
    >
      <input class="field grow" ref={begun} aria-label="Title" value={draft} maxLength={100} onInput={(event) => setDraft(event.currentTarget.value)} />
      <button class="button main">Keep</button>
      <button type="button" class="button" onClick={() => setDraft(null)}>
        Cancel
      </button>
      <Trouble text={trouble} />
    </form>
  );
}
