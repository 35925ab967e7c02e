import { ask } from "../api/ask";
import type { Run } from "../api/shapes";
import { refresh } from "../runs/store";
import { Confirm } from "../shell/Confirm";
import { go } from "../shell/route";
import { Said } from "../text/Said";

/** End a run, or follow it no longer; asked twice, since what is typed into a killed pane is nobody's. */
export function Ending({ run }: { run: Run }) {
  const end = async (mode: "kill" | "detach"): Promise<void> => {
    await ask("DELETE", `/api/runs/${run.id}?mode=${mode}`);
    await refresh();
    go("runs");
  };
  return (
    <Confirm
      label="End…"
      class="danger ending"
      name="end-title"
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
