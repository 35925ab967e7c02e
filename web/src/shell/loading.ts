import { useEffect, useState } from "preact/hooks";
import { sentence } from "../api/ask";

export interface Loaded<Value> {
  value: Value | null;
  error: string | null;
  again: () => void;
}

/** What a question comes to, asked anew when one of the `depends` changes; an old answer never replaces a newer one. */
export function useAnswer<Value>(question: () => Promise<Value>, depends: readonly unknown[]): Loaded<Value> {
  const [answer, setAnswer] = useState<{ value: Value | null; error: string | null }>({ value: null, error: null });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    question().then(
      (value) => {
        if (isCurrent) setAnswer({ value, error: null });
      },
      (error: unknown) => {
        if (isCurrent) setAnswer((before) => ({ value: before.value, error: sentence(error) }));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [...depends, turn]);
  return { ...answer, again: () => setTurn((before) => before + 1) };
}

/** Do something again and again while a screen is shown; the next time only once the last is over. */
export function useEvery(ms: number, action: () => Promise<void> | void, depends: readonly unknown[]): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const turn = async (): Promise<void> => {
      if (document.visibilityState === "visible") await action();
      if (!isOver) timer = setTimeout(() => void turn(), ms);
    };
    timer = setTimeout(() => void turn(), ms);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [ms, ...depends]);
}
