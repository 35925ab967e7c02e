// What is typed into a terminal, and what came of it. Pure.

export interface Pressed {
  key: string;
  ctrlKey: boolean;
  shiftKey: boolean;
  altKey: boolean;
  metaKey: boolean;
}

/** Whether keys are those by which a browser pastes: Ctrl V, Ctrl Shift V, and the same with a Mac's key. */
export function isPaste({ key, ctrlKey, altKey, metaKey }: Pressed): boolean {
  return key.toLowerCase() === "v" && ctrlKey !== metaKey && !altKey;
}

/** Why something was not typed; null: it was. */
export function refusalOf(answer: { result: "sent" | "refused"; why?: string | null }, otherwise: string): string | null {
  return answer.result === "refused" ? (answer.why ?? otherwise) : null;
}
