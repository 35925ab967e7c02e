import { useRef } from "preact/hooks";
import { ask } from "../api/ask";
import { connection } from "../api/live";
import type { Run } from "../api/shapes";
import { notNow } from "../api/socket";
import { refresh } from "../runs/store";
import { Confirm } from "../shell/Confirm";
import { go } from "../shell/route";
import { Said } from "../text/Said";

/** End a run, or follow it no longer; asked twice, since what is typed into a killed pane is nobody's. */
export function Ending({ run }: { run: Run }) {
  // Who was shown when it was asked for, and nobody who is there by the time it is said again.
  const meant = useRef(run.who);
  const end = async (mode: "kill" | "detach"): Promise<void> => {
    await ask("DELETE", `/api/runs/${run.id}?mode=${mode}&who=${encodeURIComponent(meant.current)}`);
    await refresh();
    go("runs");
  };
  return (
    <Confirm
      label="End…"
      class="danger ending"
      name="end-title"
      onOpen={() => (meant.current = run.who)}
      notNow={notNow(connection.value)}
      title={
        <>
          End <Said text={run.target} />?
        </>
      }
      choices={[
        { label: "Only stop following", action: () => end("detach") },
        { label: "End the pane", isDanger: true, action: () => end("kill") },
      ]}
    >
      <p>Its server is saved first, so the time machine can bring it back, in the same conversation.</p>
    </Confirm>
  );
}
