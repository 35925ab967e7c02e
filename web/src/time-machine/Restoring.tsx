import { useEffect, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { mayWrite } from "../api/live";
import type { SnapshotLine } from "../api/shapes";
import { refresh } from "../runs/store";
import { Trouble } from "../shell/Trouble";
import { counted } from "../text/numbers";
import { progressOf, type Restore } from "./progress";
import { Steps } from "./Steps";

/** Bring a snapshot back: first what would be done, then do it and watch it be proven. */
export function Restoring({ snapshot }: { snapshot: SnapshotLine }) {
  const [plan, setPlan] = useState<Restore | null>(null);
  const [running, setRunning] = useState<Restore | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);

  const attempt = async (action: () => Promise<void>): Promise<void> => {
    setAsking(true);
    setTrouble(null);
    try {
      await action();
    } catch (error) {
      setTrouble(sentence(error));
    } finally {
      setAsking(false);
    }
  };
  const preview = (): Promise<void> =>
    attempt(async () => {
      setRunning(null);
      setPlan(await ask<Restore>("POST", "/api/restores", { snapshot: snapshot.id, dry_run: true }));
    });
  const begin = (): Promise<void> =>
    attempt(async () => {
      setRunning(await ask<Restore>("POST", "/api/restores", { snapshot: snapshot.id, dry_run: false }));
    });
  useFollowing(running, setRunning, setTrouble);

  const shown = running ?? plan;
  const work = plan?.steps.filter((step) => step.result === "planned") ?? [];
  return (
    <section class="panel restoring" aria-label="Bring it back">
      <h2>Bring it back</h2>
      <div class="body stack">
        {shown === null && <p class="soft">What is there already is left alone. Every agent that comes back is identified again: verified means the same conversation, by certain evidence.</p>}
        {plan !== null && running === null && <p>{work.length === 0 ? "Everything of it is there already." : `${counted(work.length, "pane")} would be brought back.`}</p>}
        {running !== null && <Progress restore={running} />}
        <Trouble text={trouble} />
        <div class="row">
          {(running === null || progressOf(running).isOver) && (
            <button class="button" disabled={isAsking} onClick={() => void preview()}>
              {shown === null ? "Show what would be done" : "Look again"}
            </button>
          )}
          {plan !== null && running === null && work.length > 0 && mayWrite() && (
            <button class="button main" disabled={isAsking} onClick={() => void begin()}>
              Restore {counted(work.length, "pane")}
            </button>
          )}
        </div>
        {shown !== null && shown.steps.length > 0 && <Steps steps={shown.steps} />}
      </div>
    </section>
  );
}

function useFollowing(running: Restore | null, onNews: (restore: Restore) => void, onTrouble: (text: string) => void): void {
  const id = running?.id ?? null;
  const isOver = running === null || progressOf(running).isOver;
  useEffect(() => {
    if (id === null || isOver) return;
    let isCurrent = true;
    const timer = setInterval(() => {
      ask<Restore>("GET", `/api/restores/${encodeURIComponent(id)}`).then(
        (news) => {
          if (!isCurrent) return;
          onNews(news);
          if (progressOf(news).isOver) void refresh();
        },
        (error: unknown) => {
          if (isCurrent) onTrouble(sentence(error));
        },
      );
    }, 400);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [id, isOver]);
}

function Progress({ restore }: { restore: Restore }) {
  const { settled, total, verified, failed, isOver } = progressOf(restore);
  const word = isOver ? (failed > 0 ? "Partly back" : "Back") : "Bringing it back";
  return (
    <div class="stack" role="status">
      <p class={isOver ? (failed > 0 ? "tone-trouble" : "tone-news") : ""}>
        <strong>{word}:</strong> {settled} of {counted(total, "pane")}
        {verified > 0 && `, ${counted(verified, "conversation")} verified`}
        {failed > 0 && `, ${failed} failed`}
      </p>
      <progress max={Math.max(1, total)} value={settled} aria-label="How far it has come" />
    </div>
  );
}

