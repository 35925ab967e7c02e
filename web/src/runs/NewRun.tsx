import { useEffect, useRef, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import type { Run } from "../api/shapes";
import { leave } from "../pane/left";
import { saidOf, type Delivered } from "../pane/telling";
import { go } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { cleanLine, cleanText } from "../text/clean";
import { Said } from "../text/Said";
import { refresh, runs } from "./store";

interface Started {
  result: string;
  why: string;
  name: string;
  run: string | null;
  socket: string;
  pane: string;
  /** Nothing could be started in it at all, and its session was ended again. */
  gone: boolean;
  /** What its pane shows, where it is not ready. */
  screen: string[];
  /** What came of what it was to do; null where that stood on its command line, or there was nothing. */
  delivery: Delivered | null;
}

const MOMENTS = 20;

/** The run of what was started: the daemon may see it a moment later. */
async function runOf(started: Started): Promise<Run | null> {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    await refresh();
    const found = runs.value?.find((run) => run.id === started.run || (run.socket === started.socket && run.pane_id === started.pane));
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return null;
}

/** What there is to say of what it was to do; null where it was told, or had it on its command line. */
function untoldOf(delivery: Delivered | null): string | null {
  return delivery === null || delivery.result === "delivered" ? null : saidOf(delivery);
}

/** Start an agent in a session of its own. */
export function NewRun({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [left, setLeft] = useState<Started | null>(null);
  const [isStarting, setStarting] = useState(false);
  const isOpen = useRef(true);
  useEffect(() => {
    dialog.current?.showModal();
    return () => {
      isOpen.current = false;
    };
  }, []);
  const agents = [...new Set((runs.value ?? []).map((run) => run.agent).filter((name) => name !== null))].sort();
  const folders = [...new Set((runs.value ?? []).map((run) => run.cwd))].sort();

  const start = async (form: HTMLFormElement): Promise<void> => {
    const said = [...new FormData(form)].filter((each): each is [string, string] => typeof each[1] === "string" && each[1].trim() !== "");
    const given: Partial<Record<string, string>> = Object.fromEntries(said);
    setStarting(true);
    setTrouble(null);
    setLeft(null);
    try {
      const started = await ask<Started>("POST", "/api/runs", given);
      // Whoever is told why has to have what they wrote: the dialog stays.
      if (started.result === "ended") {
        setTrouble(`${started.gone ? "It could not be started" : "It has ended already"}: ${cleanLine(started.why)}.`);
        setLeft(started);
        return;
      }
      const run = await runOf(started);
      const untold = untoldOf(started.delivery);
      if (run === null) {
        setTrouble(`It was started in session ${cleanLine(started.name)}, but has not been seen yet. It will be on the first screen. ${cleanLine(untold ?? "")}`);
        return;
      }
      if (untold !== null) {
        const text = started.delivery?.result === "refused" ? (given.prompt ?? "") : "";
        leave(run.id, { writing: { text, who: run.agent === null ? null : run.who }, said: untold });
      }
      // Whoever went elsewhere meanwhile is left there.
      if (!isOpen.current) return;
      onClose();
      go("runs", run.id);
    } catch (error) {
      setTrouble(sentence(error));
    } finally {
      setStarting(false);
    }
  };

  return (
    <dialog ref={dialog} aria-labelledby="new-title" onClose={onClose}>
      <h2 id="new-title">Start an agent</h2>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void start(event.currentTarget);
        }}
      >
        <label class="labelled">
          Agent
          <input class="field" name="agent" list="agents" required autocomplete="off" spellcheck={false} placeholder="claude, codex, gemini …" />
        </label>
        <datalist id="agents">
          {agents.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label class="labelled">
          Directory
          <input class="field" name="cwd" list="folders" autocomplete="off" spellcheck={false} placeholder="your home" />
        </label>
        <datalist id="folders">
          {folders.map((folder) => (
            <option key={folder} value={folder} />
          ))}
        </datalist>
        <label class="labelled">
          What it is to do
          <textarea class="field" name="prompt" />
        </label>
        <label class="labelled">
          Name of the session
          <input class="field" name="name" autocomplete="off" spellcheck={false} placeholder="the next number" />
        </label>
        <Trouble text={trouble} />
        {left !== null && left.screen.some((line) => line.trim() !== "") && (
          <>
            <p class="soft">
              {left.gone ? (
                "Nothing is left of it. It said"
              ) : (
                <>
                  Session <Said text={left.name} /> is still there. It shows
                </>
              )}
            </p>
            <pre class="output left-over">{cleanText(left.screen.join("\n").trim())}</pre>
          </>
        )}
        {isStarting && (
          <p class="soft" role="status">
            It is started all the same when you close this.
          </p>
        )}
        <div class="row end">
          <button type="button" class="button" onClick={onClose}>
            {isStarting ? "Close" : "Cancel"}
          </button>
          <button class="button main" disabled={isStarting}>
            {isStarting ? "Starting…" : "Start"}
          </button>
        </div>
      </form>
    </dialog>
  );
}
