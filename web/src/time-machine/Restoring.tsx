import { useEffect, useRef, useState } from "preact/hooks";
import { ask, Refused, sentence } from "../api/ask";
import { connection, follow, mayWrite } from "../api/live";
import type { Page, SnapshotLine } from "../api/shapes";
import { refresh } from "../runs/store";
import { Trouble } from "../shell/Trouble";
import { counted } from "../text/numbers";
import { moment } from "../text/times";
import { changesPlans, latestOf, nextLook, progressOf, unfinished, wanting, type Plan, type Restore, type RestoreLine } from "./progress";
import { Steps } from "./Steps";

/** Bring a snapshot back: first what would be done, then do it and watch it be proven. */
export function Restoring({ snapshot }: { snapshot: SnapshotLine }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [restore, setRestore] = useState<Restore | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);
  const isBusy = useRef(false);

  const attempt = async (action: () => Promise<void>): Promise<void> => {
    isBusy.current = true;
    setAsking(true);
    setTrouble(null);
    try {
      await action();
    } catch (error) {
      setTrouble(sentence(error));
    } finally {
      isBusy.current = false;
      setAsking(false);
    }
  };
  const preview = (): Promise<void> =>
    attempt(async () => {
      setPlan(await ask<Plan>("POST", "/api/restores/plan", { snapshot: snapshot.id }));
      setRestore(null);
    });
  const take = (news: Restore | null): void => {
    setRestore(news);
    // What was planned before is no longer so.
    setPlan(null);
    if (news === null) void preview();
  };
  useFollowing(snapshot.id, restore, take, setTrouble);
  // Not while a restore is asked for: a plan that comes behind it would hide it.
  useChanges(plan !== null && restore === null, snapshot.socket, () => {
    if (isBusy.current) return false;
    void preview();
    return true;
  });
  const begin = (): Promise<void> =>
    attempt(async () => setRestore(await ask<Restore>("POST", "/api/restores", { snapshot: snapshot.id })));

  const shown = restore ?? plan;
  const count = plan === null ? 0 : wanting(plan);
  const isAtIt = restore?.state === "running";
  return (
    <section class="panel restoring" aria-label="Bring it back">
      <h2>Bring it back</h2>
      <div class="body stack">
        {restore !== null ? (
          <Progress restore={restore} />
        ) : plan !== null ? (
          <p>{count === 0 ? "Everything of it is there already." : `${counted(count, "pane")} would be brought back. Nothing is done before you say so.`}</p>
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
          {restore?.state === "interrupted" && mayWrite() && (
            <button class="button main" disabled={isAsking} onClick={() => void begin()}>
              Go on with it
            </button>
          )}
        </div>
        {shown !== null && shown.steps.length > 0 && <Steps steps={shown.steps} />}
      </div>
    </section>
  );
}

const one = (id: string): Promise<Restore> => ask("GET", `/api/restores/${encodeURIComponent(id)}`);

/** The one of all restores that is chosen, whoever began it; null when there is none. */
async function found(choose: (restores: readonly RestoreLine[]) => RestoreLine | null): Promise<Restore | null> {
  const line = choose((await ask<Page<RestoreLine>>("GET", "/api/restores?limit=200")).items);
  return line === null ? null : one(line.id);
}

/** Keep a restore up to date. Another daemon does not know it by its id, but knows what became of it. */
function useFollowing(snapshot: string, restore: Restore | null, onNews: (restore: Restore | null) => void, onTrouble: (text: string | null) => void): void {
  useEffect(() => {
    let isCurrent = true;
    // Whoever opens the moment again sees what goes on; without an answer nothing is claimed.
    found((all) => unfinished(all, snapshot)).then((news) => { if (isCurrent && news !== null) onNews(news); }, () => undefined);
    return () => {
      isCurrent = false;
    };
  }, [snapshot]);
  const wait = nextLook(restore);
  // What something else failed by stays to be read.
  const hasComplained = useRef(false);
  const complain = (text: string | null): void => {
    if (text !== null || hasComplained.current) onTrouble(text);
    hasComplained.current = text !== null;
  };
  useEffect(() => {
    if (restore === null || wait === null) return;
    let isCurrent = true;
    const look = async (): Promise<void> => {
      try {
        const news = await one(restore.id).catch((error: unknown) => {
          if (error instanceof Refused && error.status === 404) return found((all) => latestOf(all, snapshot, moment(restore.began_at) ?? 0));
          throw error;
        });
        if (!isCurrent) return;
        onNews(news);
        complain(news === null ? "Perdure was ended meanwhile, and nothing is written down of this restore." : null);
        if (nextLook(news) === null) void refresh();
      } catch (error) {
        if (!isCurrent) return;
        complain(sentence(error));
        // The same again, later: whoever does not answer now may soon.
        onNews({ ...restore });
      }
    };
    const timer = setTimeout(() => void look(), wait);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [restore, wait, snapshot]);
}

/**
 * Plan again what is shown when panes have come or gone meanwhile, or may have while nothing was heard. `again` says
 * whether it could: what happens while a plan is made may not be in it.
 */
function useChanges(isPlanned: boolean, socket: string, again: () => boolean): void {
  useEffect(() => {
    if (!isPlanned) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => { if (!again()) soon(); }, 1000);
    };
    let isFirst = true;
    const leave = [
      follow((event) => { if (changesPlans(event, socket)) soon(); }),
      connection.subscribe((state) => {
        if (state === "live" && !isFirst) soon();
        isFirst = false;
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const each of leave) each();
    };
  }, [isPlanned]);
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
      {restore.state === "interrupted" && <p>Nobody here is at it any more: Perdure was ended meanwhile, or it was begun in a terminal. What is there is left alone; what is missing can still be brought back.</p>}
      <progress max={Math.max(1, restore.total)} value={restore.settled} aria-label="How far it has come" />
    </div>
  );
}
