// Which answers a prompt offers. Pure.

export interface Choice {
  key: string;
  label: string;
}

export interface Prompt {
  /** Who asks; handed back with the answer. */
  who: string | null;
  /** As the screen shows it; handed back with the answer. */
  prompt: string;
  /** None where the screen does not tell. */
  choices: Choice[];
}

/** The answers that can be given, always with a way out. */
export function choicesOf({ choices }: Omit<Prompt, "who">): Choice[] {
  const found = choices.length > 0 ? [...choices] : [{ key: "Enter", label: "what is marked" }];
  return found.some(({ key }) => key === "Escape") ? found : [...found, { key: "Escape", label: "leave it" }];
}
