// How far a restore has come. Pure.

import type { RestoreStep } from "../api/shapes";

export interface Restore {
  /** None for what is only a plan. */
  id: string | null;
  snapshot: string;
  steps: RestoreStep[];
  summary: Record<string, number>;
  /** planned, running, ended … */
  status?: string | null;
  exit_code?: number | null;
  message?: string | null;
}

export interface Progress {
  settled: number;
  total: number;
  verified: number;
  failed: number;
  isOver: boolean;
}

const OVER = new Set(["ended", "done", "failed", "over", "lost"]);

export function progressOf(restore: Restore): Progress {
  const count = (...results: string[]): number => restore.steps.filter((step) => results.includes(step.result)).length;
  const open = count("planned", "running");
  return {
    settled: restore.steps.length - open,
    total: restore.steps.length,
    verified: count("verified"),
    failed: count("failed"),
    isOver: restore.status ? OVER.has(restore.status) : open === 0,
  };
}
