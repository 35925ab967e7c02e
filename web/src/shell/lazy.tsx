import type { ComponentChildren, ComponentType } from "preact";
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

const Waiting = createContext<ComponentChildren>(null);

/** What is shown while a part is still being loaded. */
export function Suspense({ fallback, children }: { fallback: ComponentChildren; children: ComponentChildren }) {
  return <Waiting.Provider value={fallback}>{children}</Waiting.Provider>;
}

/** A part that is loaded once somebody needs it. */
export function lazy<Props extends object>(load: () => Promise<{ default: ComponentType<Props> }>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const waiting = useContext(Waiting);
    const [, setTurn] = useState(0);
    useEffect(() => {
      if (loaded !== null) return;
      void load().then((module) => {
        loaded = module.default;
        setTurn((before) => before + 1);
      });
    }, []);
    const Part = loaded;
    return Part === null ? <>{waiting}</> : <Part {...props} />;
  };
}
