// The settings that are safe to change, and how hooks stand, as the API tells them.

export interface Settings {
  version: string;
  file: string;
  restore: { programs: string[]; max_parallel: number; memory_pressure: number; verify_seconds: number };
  live: { restore: boolean };
  retention: { everything_hours: number; hourly_days: number; daily_days: number; events_days: number; runs_days: number };
  hooks: Hook[];
}

export interface Hook {
  agent: string;
  state: string;
  home: string;
  last_record: string | null;
}

/** One number: where it stands, what it means. */
export interface NumberField {
  table: "restore" | "retention";
  name: string;
  label: string;
  unit: string;
  least: number;
  most: number;
}

export const KEEPING: NumberField[] = [
  { table: "retention", name: "everything_hours", label: "Every snapshot", unit: "hours", least: 0, most: 876_600 },
  { table: "retention", name: "hourly_days", label: "Then one an hour", unit: "days", least: 0, most: 36_525 },
  { table: "retention", name: "daily_days", label: "Then one a day", unit: "days", least: 0, most: 36_525 },
  { table: "retention", name: "events_days", label: "Events", unit: "days", least: 0, most: 36_525 },
  { table: "retention", name: "runs_days", label: "Runs that are over", unit: "days", least: 0, most: 36_525 },
];

export const RESTORING: NumberField[] = [
  { table: "restore", name: "max_parallel", label: "Agents starting at once", unit: "at most", least: 1, most: 64 },
  { table: "restore", name: "memory_pressure", label: "Hold agents back while memory is short", unit: "% stalled", least: 0, most: 100 },
  { table: "restore", name: "verify_seconds", label: "Time to be verified", unit: "seconds", least: 1, most: 3600 },
];

/** The change that makes the settings what a form says; nothing of what is the same. */
export function changeOf(settings: Settings, form: Map<string, string>): Record<string, Record<string, unknown>> {
  const change: Record<string, Record<string, unknown>> = {};
  const set = (table: string, name: string, value: unknown): void => {
    (change[table] ??= {})[name] = value;
  };
  for (const { table, name } of [...KEEPING, ...RESTORING]) {
    const value = Number(form.get(`${table}.${name}`));
    const before = (settings[table] as Record<string, unknown>)[name];
    if (form.has(`${table}.${name}`) && Number.isFinite(value) && value !== before) set(table, name, value);
  }
  const restore = form.get("live.restore") === "on";
  if (restore !== settings.live.restore) set("live", "restore", restore);
  const programs = (form.get("restore.programs") ?? "").split(/[\s,]+/).filter((word) => word !== "");
  if (programs.join(" ") !== settings.restore.programs.join(" ")) set("restore", "programs", programs);
  return change;
}
