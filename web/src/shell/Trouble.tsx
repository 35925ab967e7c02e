/** What went wrong, said aloud by a screen reader. Nothing when nothing did. */
export function Trouble({ text }: { text: string | null }) {
  return text === null ? null : (
    <p class="notice trouble" role="alert">
      {text}
    </p>
  );
}
