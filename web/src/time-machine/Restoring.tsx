import { useEffect, useState } from "preact/hooks";
import { ask, sentence } from "../api/ask";
import { mayWrite } from "../api/live";
import type { SnapshotLine } from "../api/shapes";
import { refresh } from "../runs/store";
import { Trouble } from "../shell/Trouble";
import { counted } from "../text/numbers";
import { progressOf, wanting, type Plan, type Restore } from "./progress";
import { Steps } from "./Steps";

/** Bring a snapshot back: first what would be done, then do it and watch it be proven. */
export function Restoring({ snapshot }: { snapshot: SnapshotLine }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [restore, setRestore] = useState<Restore | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);
  useFollowing(restore, setRestore, setTrouble);

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
      setPlan(await ask<Plan>("POST", "/api/restores/plan", { snapshot: snapshot.id }));
      setRestore(null);
    });
  const begin = (): Promise<void> =>
    attempt(async () => setRestore(await ask<Restore>("POST", "/api/restores", { snapshot: snapshot.id })));

  const shown = restore ?? plan;
  const count = plan === null ? 0 : wanting(plan);
  const isAtIt = restore !== null && !progressOf(restore).isOver;
  return (
    <section class="panel restoring" aria-label="Bring it back">
      <h2>Bring it back</h2>
      <div class="body stack">
        {restore !== null ? (
          <Progress restore={restore} />
        ) : plan !== null ? (
          <p>{count === 0 ? "Everything of it is there already." : `${counted(count, "pane")} would be brought back. Nothing has been done yet.`}</p>
        ) : (
          <p class="soft">What is there already is left alone. Every agent that comes back is identified again: verified means the same conversation, by certain evidence.</p>
        )}
        <Trouble text={trouble} />
        {shown?.errors.map((each) => <Trouble key={each.socket} text={each.message} />)}
        <div class="row">
          {!isAtIt && (
            <button class="button" disabled={isAsking} onClick={() => void preview()}>
              {isAsking ? "Looking…" : shown === null ? "Show what would be done" : "Look again"}
            </button>
          )}
          {restore === null && count > 0 && mayWrite() && (
            <button class="button main" disabled={isAsking} onClick={() => void begin()}>
              Restore {counted(count, "pane")}
            </button>
          )}
        </div>
        {shown !== null && shown.steps.length > 0 && <Steps steps={shown.steps} />}
      </div>
    </section>
  );
}

function useFollowing(restore: Restore | null, onNews: (restore: Restore) => void, onTrouble: (text: string) => void): void {
  const id = restore?.id ?? null;
  const isOver = restore === null || progressOf(restore).isOver;
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
  const { word, tone, verified, failed } = progressOf(restore);
  return (
    <div class="stack" role="status">
      <p class={`tone-${tone}`}>
        <strong>{word}:</strong> {restore.settled} of {counted(restore.total, "pane")}
        {verified > 0 && `, ${counted(verified, "conversation")} verified`}
        {failed > 0 && `, ${failed} failed`}
      </p>
      {restore.message !== "" && <p>{restore.message}</p>}
      <progress max={Math.max(1, restore.total)} value={restore.settled} aria-label="How far it has come" />
    </div>
  );
}
