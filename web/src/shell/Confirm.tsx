import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { sentence } from "../api/ask";
import { Trouble } from "./Trouble";

export interface Choice {
  label: string;
  isDanger?: boolean;
  action: () => Promise<void>;
}

interface ConfirmProps {
  /** What the button says that asks. */
  label: string;
  class?: string;
  /** The id of the heading; one of its kind on a screen. */
  name: string;
  title: ComponentChildren;
  choices: readonly Choice[];
  /** Called when it asks. */
  onOpen?: () => void;
  /** Why none of it can be done at the moment. */
  notNow?: string | null;
  children: ComponentChildren;
}

/** A button that asks once more, and says what will be, before anything is done. */
export function Confirm({ label, class: kind, name, title, choices, onOpen, notNow = null, children }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const close = (): void => dialog.current?.close();
  const take = async (choice: Choice): Promise<void> => {
    setBusy(true);
    setTrouble(null);
    try {
      await choice.action();
      close();
    } catch (error) {
      setTrouble(sentence(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button
        class={`button ${kind ?? ""}`}
        onClick={() => {
          onOpen?.();
          dialog.current?.showModal();
        }}
      >
        {label}
      </button>
      <dialog ref={dialog} aria-labelledby={name} onClose={() => setTrouble(null)}>
        <h2 id={name}>{title}</h2>
        <div class="stack">
          {children}
          <Trouble text={trouble ?? notNow} />
          <div class="row end">
            <button class="button" onClick={close}>
              Cancel
            </button>
            {choices.map((choice) => (
              <button key={choice.label} class={`button ${choice.isDanger ? "danger" : ""}`} disabled={isBusy || notNow !== null} onClick={() => void take(choice)}>
                {choice.label}
              </button>
            ))}
          </div>
        </div>
      </dialog>
    </>
  );
}
