import { useEffect, useRef } from "preact/hooks";
import { bound, isHelpShown } from "./keys";

const NAMES: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc" };

/** Every key that means something on this screen. */
export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const shown = isHelpShown.value;
  useEffect(() => {
    if (shown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [shown]);
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => (isHelpShown.value = false)}>
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        {bound().map((each) => (
          <div key={each.keys.join()}>
            <dt>
              {each.keys.map((key) => (
                <kbd key={key}>{NAMES[key] ?? key}</kbd>
              ))}
            </dt>
            <dd>{each.does}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button class="button">Close</button>
      </form>
    </dialog>
  );
}
