import type { Told } from "./causes";
import { Said } from "./Said";

/** Why something is so: in words, and by its name where somebody wants to know exactly. */
export function Because({ told }: { told: Told }) {
  return (
    <>
      <Said text={told.words} />
      {told.id !== null && (
        <>
          {" "}
          <code class="detail">
            <Said text={told.id} />
          </code>
        </>
      )}
    </>
  );
}
