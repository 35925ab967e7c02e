import { me } from "../api/live";
import { choose, look, type Look } from "../look/look";

const LOOKS: [Look, string][] = [
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** What may safely be changed, and what is known of the rest. */
export function SettingsScreen() {
  return (
    <>
      <h1>Settings</h1>
      <section class="panel">
        <h2>This browser</h2>
        <div class="body row" role="group" aria-label="Look">
          {LOOKS.map(([each, name]) => (
            <button key={each} class="chip" aria-pressed={look.value === each} onClick={() => choose(each)}>
              {name}
            </button>
          ))}
        </div>
      </section>
      <p class="soft">{me.value?.version}</p>
    </>
  );
}
