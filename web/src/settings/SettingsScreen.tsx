import { useState } from "preact/hooks";
import { ask, isKnown, sentence } from "../api/ask";
import { mayWrite, me, now } from "../api/live";
import { choose, isReadAloud, look, readAloud, type Look } from "../look/look";
import { useAnswer } from "../shell/loading";
import { Trouble } from "../shell/Trouble";
import { Said } from "../text/Said";
import { lasting, moment } from "../text/times";
import { changeOf, KEEPING, RESTORING, type Hook, type NumberField, type Settings } from "./shapes";
import "./settings.css";

const LOOKS: [Look, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** What may safely be changed, and how hooks stand. */
export function SettingsScreen() {
  const loaded = useAnswer<Settings>(() => ask("GET", "/api/settings"), []);
  const [changed, setChanged] = useState<Settings | null>(null);
  const settings = changed ?? loaded.value;
  return (
    <>
      <h1>Settings</h1>
      <Trouble text={loaded.error} />
      <div class="settings">
        <div class="stack">
          {settings && <Form key={settings.version} settings={settings} isWritten={changed !== null} onChange={setChanged} onAgain={() => { setChanged(null); loaded.again(); }} />}
        </div>
        <div class="stack">
          <ThisBrowser />
          {settings && <Hooks hooks={settings.hooks} />}
        </div>
      </div>
    </>
  );
}

function ThisBrowser() {
  const [trouble, setTrouble] = useState<string | null>(null);
  const leave = (): void => {
    ask("POST", "/api/logout", {}).then(
      () => (isKnown.value = false),
      (error: unknown) => setTrouble(sentence(error)),
    );
  };
  return (
    <section class="panel">
      <h2>This browser</h2>
      <div class="body stack">
        <div class="chips" role="group" aria-label="Look">
          {LOOKS.map(([each, name]) => (
            <button key={each} class="chip" aria-pressed={look.value === each} onClick={() => choose(each)}>
              {name}
            </button>
          ))}
        </div>
        <label class="tick">
          <input type="checkbox" checked={isReadAloud.value} onChange={(event) => readAloud(event.currentTarget.checked)} />
          <span>Let a screen reader read terminals aloud</span>
        </label>
        {me.value && (
          <dl class="facts">
            <dt>Logged in as</dt>
            <dd>
              {me.value.user}@{me.value.host}, {me.value.scope === "write" ? "may look and type" : "may look only"}
            </dd>
            <dt>Perdure</dt>
            <dd>{me.value.version}</dd>
          </dl>
        )}
        <div class="row">
          <button class="button" onClick={leave}>
            Log out
          </button>
        </div>
        <Trouble text={trouble} />
      </div>
    </section>
  );
}

interface FormProps {
  settings: Settings;
  /** Whether they have just been changed here. */
  isWritten: boolean;
  onChange: (settings: Settings) => void;
  onAgain: () => void;
}

function Form({ settings, isWritten, onChange, onAgain }: FormProps) {
  const [said, setSaid] = useState<{ text: string; isTrouble: boolean } | null>(null);
  const keep = async (form: HTMLFormElement): Promise<void> => {
    const given = new Map([...new FormData(form)].map(([name, value]) => [name, typeof value === "string" ? value : ""]));
    const change = changeOf(settings, given);
    if (Object.keys(change).length === 0) {
      setSaid({ text: "Nothing was changed.", isTrouble: false });
      return;
    }
    try {
      onChange(await ask<Settings>("PATCH", "/api/settings", { version: settings.version, ...change }));
    } catch (error) {
      setSaid({ text: sentence(error), isTrouble: true });
    }
  };
  const isFixed = !mayWrite();
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void keep(event.currentTarget);
      }}
    >
      <section class="panel">
        <h2>Bringing back</h2>
        <div class="body stack">
          <label class="tick">
            <input type="checkbox" name="live.restore" checked={settings.live.restore} disabled={isFixed} />
            <span>
              Bring a server that died back at once
              <span class="soft"> (not one that was ended in good order)</span>
            </span>
          </label>
          {RESTORING.map((field) => (
            <NumberInput key={field.name} field={field} value={settings.restore[field.name as "max_parallel"]} isFixed={isFixed} />
          ))}
          <label class="labelled">
            Programs that are started again, besides agents and shells
            <textarea class="field mono" name="restore.programs" spellcheck={false} disabled={isFixed} defaultValue={settings.restore.programs.join(" ")} />
          </label>
        </div>
      </section>
      <section class="panel">
        <h2>How long things are kept</h2>
        <div class="body stack">
          {KEEPING.map((field) => (
            <NumberInput key={field.name} field={field} value={settings.retention[field.name as "daily_days"]} isFixed={isFixed} />
          ))}
        </div>
      </section>
      <div class="row">
        {!isFixed && <button class="button main">Keep these settings</button>}
        <button type="button" class="button" onClick={onAgain}>
          Read again
        </button>
        <span class="soft cut grow" role="status">
          {said && !said.isTrouble ? said.text : <>{isWritten ? "Written to" : "Changes are written to"} <Said text={settings.file} /></>}
        </span>
      </div>
      <Trouble text={said?.isTrouble ? said.text : null} />
    </form>
  );
}

function NumberInput({ field, value, isFixed }: { field: NumberField; value: number; isFixed: boolean }) {
  return (
    <label class="number-field">
      <span>{field.label}</span>
      <input class="field" type="number" required name={`${field.table}.${field.name}`} min={field.least} max={field.most} step="any" defaultValue={String(value)} disabled={isFixed} />
      <span class="soft">{field.unit}</span>
    </label>
  );
}

/** Which colour a state of a hook has; the word is the API's. */
const TONES: Record<string, string> = { installed: "news", outdated: "call", edited: "call", unreadable: "trouble" };

function Hooks({ hooks }: { hooks: readonly Hook[] }) {
  return (
    <section class="panel">
      <h2>Hooks</h2>
      <div class="body stack">
        <p class="soft">With its hook an agent records its conversation and state itself. Hooks are put into agents' own files, so only the command line does it: <code>perdure hooks install</code></p>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Agent</th>
              <th scope="col">Hook</th>
              <th scope="col">Last heard</th>
            </tr>
          </thead>
          <tbody>
            {hooks.map((hook) => {
              const heard = moment(hook.last_record);
              return (
                <tr key={`${hook.agent} ${hook.home}`}>
                  <td>{hook.agent}</td>
                  <td class={`tone-${TONES[hook.state] ?? "calm"}`}>{hook.state}</td>
                  <td class="soft number">{heard === null ? "never" : `${lasting(heard, now.value)} ago`}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
