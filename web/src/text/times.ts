// Times as people read them. Pure: whoever calls says what time it is.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long something has gone on, in one unit; a clock that is behind never gives less than nothing. */
export function lasting(since: number, now: number): string {
  const spent = Math.max(0, now - since);
  if (spent < MINUTE) return `${Math.floor(spent / SECOND)} s`;
  if (spent < HOUR) return `${Math.floor(spent / MINUTE)} min`;
  if (spent < DAY) return `${Math.floor(spent / HOUR)} h`;
  return `${Math.floor(spent / DAY)} d`;
}

/** The moment an API's text names; null when there is none. */
export function moment(text: string | null | undefined): number | null {
  if (!text) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

// Making one takes far longer than using it, and a long list asks for a thousand every second.
const formats = new Map<string, Intl.DateTimeFormat>();

function format(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify(options);
  const known = formats.get(key) ?? new Intl.DateTimeFormat("en-GB", options);
  formats.set(key, known);
  return known;
}

/** The time on the reader's clock: today only hours and minutes, else with the day. */
export function clock(at: number, now: number, seconds = false): string {
  const options: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hour12: false };
  if (seconds) options.second = "2-digit";
  if (!isSameDay(at, now)) {
    options.day = "numeric";
    options.month = "short";
    if (new Date(at).getFullYear() !== new Date(now).getFullYear()) options.year = "numeric";
  }
  return format(options).format(at);
}

export function isSameDay(a: number, b: number): boolean {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

/** Today, Yesterday, or the day. */
export function dayOf(at: number, now: number): string {
  if (isSameDay(at, now)) return "Today";
  if (isSameDay(at, now - DAY)) return "Yesterday";
  return format({ weekday: "long", day: "numeric", month: "long" }).format(at);
}
