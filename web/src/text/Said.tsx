import { cleanLine, cleanText } from "./clean";

/** One line of somebody else's words: visible, on its own direction, never markup. */
export function Said({ text, class: kind }: { text: string; class?: string }) {
  const line = cleanLine(text);
  return (
    <bdi class={kind ?? ""} title={line.length > 40 ? line : undefined}>
      {line}
    </bdi>
  );
}

/** Several lines of them, as they were. */
export function Passage({ text, class: kind }: { text: string; class?: string }) {
  return (
    <div class={`passage ${kind ?? ""}`} dir="auto">
      {cleanText(text)}
    </div>
  );
}
