import { useRef, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import type { Run } from "../api/shapes";
import { refresh } from "../runs/store";
import { go } from "../shell/route";
import { Trouble } from "../shell/Trouble";
import { Said } from "../text/Said";

/** End a run, or follow it no longer; asked twice, since what is typed into a killed pane is nobody's. */
export function Ending({ run }: { run: Run }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const end = async (mode: "kill" | "detach"): Promise<void> => {
    try {
      await ask("DELETE", `/api/runs/${run.id}?mode=${mode}`);
      dialog.current?.close();
      await refresh();
      go("runs");
    } catch (error) {
      setTrouble(sentence(error));
    }
  };
  return (
    <>
      <button class="button danger ending" onClick={() => dialog.current?.showModal()}>
        End…
      </button>
      <dialog ref={dialog} aria-labelledby="end-title">
        <h2 id="end-title">
          End <Said text={run.target} />?
        </h2>
        <div class="stack">
          <p>Its server is saved first, so the time machine can bring it back, in the same conversation.</p>
          <Trouble text={trouble} />
          <div class="row end">
            <button class="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button class="button" onClick={() => void end("detach")}>
              Only stop following
            </button>
            <button class="button danger" onClick={() => void end("kill")}>
              End the pane
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
