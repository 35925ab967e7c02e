interface FindProps {
  value: string;
  onFind: (text: string) => void;
  label: string;
}

/** The field `/` goes to; Escape leaves it. */
export function Find({ value, onFind, label }: FindProps) {
  return (
    <input
      class="field find"
      type="search"
      data-find
      value={value}
      placeholder={`${label}  /`}
      aria-label={label}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onFind(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        onFind("");
        event.currentTarget.blur();
      }}
    />
  );
}
