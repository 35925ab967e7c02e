// Which answers a prompt offers, read off its own words where the API does not name them. Pure.

export interface Choice {
  key: string;
  label: string;
}

export interface Prompt {
  /** As the screen shows it; handed back with the answer. */
  prompt: string;
  choices?: Choice[] | null;
}

const NUMBERED = /^[\s│|❯›▸>*●○•-]*(\d)[.)]\s+(\S.*?)[\s│|]*$/;
const LETTERED = /[[(]([A-Za-z])[\])]\s*([A-Za-z][\w' ]*?)(?=\s{2,}|\s*[[(,▸]|[\s│|]*$)/g;
const YES_NO = /[[(]\s*y\s*\/\s*n\s*[\])]/i;

/** The answers that can be given with one key; always with a way out. */
export function choicesOf(prompt: Prompt): Choice[] {
  const found = prompt.choices?.length ? [...prompt.choices] : readOff(prompt.prompt);
  if (!found.some(({ key }) => key === "Escape")) found.push({ key: "Escape", label: "leave it" });
  return found;
}

function readOff(text: string): Choice[] {
  const lines = text.split("\n");
  const numbered = lines.flatMap((line) => {
    const match = NUMBERED.exec(line);
    return match?.[1] && match[2] ? [{ key: match[1], label: match[2] }] : [];
  });
  if (numbered.length > 1) return numbered;
  const lettered = lines.flatMap((line) => [...line.matchAll(LETTERED)]).map((match) => ({ key: (match[1] ?? "").toLowerCase(), label: match[2] ?? "" }));
  if (lettered.length > 1) return lettered;
  if (YES_NO.test(text)) return [{ key: "y", label: "yes" }, { key: "n", label: "no" }];
  return [{ key: "Enter", label: "what is marked" }];
}
