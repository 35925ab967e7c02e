import { useEffect, useState } from "preact/hooks";
import { ask } from "../api/ask";
import { follow, now } from "../api/live";
import type { Chat, Found, Page } from "../api/shapes";
import { Find } from "../keys/Find";
import { useRowKeys } from "../keys/rows";
import { useAnswer } from "../shell/loading";
import { addressOf } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { cleanLine } from "../text/clean";
import { counted } from "../text/numbers";
import { Said } from "../text/Said";
import { lasting, moment } from "../text/times";
import { Transcript } from "./Transcript";
import { stretches } from "./words";
import "./chats.css";

/** A gateway's chats: found by what was said, read as it was said. */
export function ChatsScreen({ id }: { id: string | null }) {
  const [query, setQuery] = useState("");
  useRowKeys();
  return (
    <>
      <h1>Chats</h1>
      <div class={id === null ? "split" : "split chosen"}>
        <div class="stack">
          <Find value={query} label="Search what was said" onFind={setQuery} />
          {query.trim() === "" ? <AllChats chosen={id} /> : <FoundTurns query={query.trim()} />}
        </div>
        {id === null ? <p class="panel empty">Choose a chat to read it.</p> : <Transcript key={id} id={id} />}
      </div>
    </>
  );
}

function AllChats({ chosen }: { chosen: string | null }) {
  const loaded = useAnswer<Page<Chat>>(() => ask("GET", "/api/chats?state=all&limit=200"), []);
  useEffect(() => follow((event) => { if (event.kind.startsWith("chat_")) loaded.again(); }), []);
  const chats = loaded.value?.items ?? [];
  return (
    <>
      <Trouble text={loaded.error} />
      {loaded.value !== null && chats.length === 0 && (
        <p class="panel empty">
          No chat is kept. Chats are a gateway's: a bot's on Telegram or Slack, say. <code>perdure chats import</code> takes those of other programs over.
        </p>
      )}
      {chats.length > 0 && (
        <ul class="list panel">
          {chats.map((chat) => (
            <li key={chat.id}>
              <a href={addressOf("chats", chat.id)} data-row aria-current={chat.id === chosen ? "true" : undefined}>
                <span class="row">
                  <strong class="grow cut">{chat.title === null ? <span class="soft">untitled</span> : <Said text={chat.title} />}</strong>
                  <span class="soft number">{lasting(moment(chat.used_at) ?? 0, now.value)} ago</span>
                </span>
                <span class="soft cut">
                  <Said text={chat.where} /> · {counted(chat.turns, "turn")}
                  {!chat.open && " · closed"}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** What was typed, once nobody has typed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function FoundTurns({ query }: { query: string }) {
  const settled = useSettled(query);
  const loaded = useAnswer<Page<Found>>(() => ask("GET", `/api/chats/search?q=${encodeURIComponent(settled)}`), [settled]);
  const found = loaded.value?.items ?? [];
  return (
    <>
      <Trouble text={loaded.error} />
      {loaded.value !== null && found.length === 0 && loaded.error === null && <p class="panel empty">Nothing was found.</p>}
      {found.length > 0 && (
        <ul class="list panel" aria-label="What was found">
          {found.map((each) => (
            <li key={`${each.chat} ${each.position}`}>
              <a href={`${addressOf("chats", each.chat)}#turn-${each.position}`} data-row>
                <span class="row">
                  <strong class="grow cut">{each.title === null ? <Said text={each.where} /> : <Said text={each.title} />}</strong>
                  <span class="soft number">{lasting(moment(each.at) ?? 0, now.value)} ago</span>
                </span>
                <span class="snippet" dir="auto">
                  <span class="soft">{each.role}: </span>
                  {stretches(each.snippet, each.marks).map((stretch, place) =>
                    stretch.isFound ? <mark key={place}>{cleanLine(stretch.text)}</mark> : cleanLine(stretch.text),
                  )}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
