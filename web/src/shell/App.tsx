import { useEffect } from "preact/hooks";
import { isKnown } from "../api/ask";
import { connection, me } from "../api/live";
import { ChatsScreen } from "../chats/ChatsScreen";
import { EventsScreen } from "../events/EventsScreen";
import { JobsScreen } from "../jobs/JobsScreen";
import { Help } from "../keys/Help";
import { isHelpShown } from "../keys/keys";
import { PaneScreen } from "../pane/PaneScreen";
import { RunsScreen } from "../runs/RunsScreen";
import { needy } from "../runs/store";
import { SettingsScreen } from "../settings/SettingsScreen";
import { TimeMachineScreen } from "../time-machine/TimeMachineScreen";
import { addressOf, place, type Screen } from "./route";
import { Stranger } from "./Stranger";
import { TabIcon } from "./TabIcon";
import "./shell.css";

const TABS: [Screen, string, string][] = [
  ["runs", "Runs", "Runs"],
  ["time-machine", "Time machine", "Time"],
  ["chats", "Chats", "Chats"],
  ["jobs", "Jobs", "Jobs"],
  ["events", "Events", "Events"],
  ["settings", "Settings", "Settings"],
];

const CONNECTION = { connecting: "connecting…", live: "live", lost: "connection lost" };

/** The whole page. */
export function App() {
  const { screen, id } = place.value;
  const waiting = needy.value;
  useEffect(() => {
    const name = TABS.find(([each]) => each === screen)?.[1] ?? "";
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${name} · Perdure`;
  }, [screen, waiting]);
  if (!isKnown.value) return <Stranger />;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <img src="/icon.svg" alt="" />
          Perdure
        </a>
        <nav class="tabs" aria-label="Screens">
          {TABS.map(([each, name, short]) => (
            <a key={each} href={addressOf(each)} aria-current={each === screen ? "page" : undefined}>
              <TabIcon screen={each} />
              <span class="wide">{name}</span>
              <span class="short">{short}</span>
              {each === "runs" && waiting > 0 && (
                <span class="badge">
                  {waiting}
                  <span class="unseen"> need you</span>
                </span>
              )}
            </a>
          ))}
        </nav>
        <div class="standing">
          {me.value && (
            <span class="who cut">
              {me.value.user}@{me.value.host}
              {me.value.scope === "read" && ", looking only"}
            </span>
          )}
          <span class={`link ${connection.value}`} role="status">
            {CONNECTION[connection.value]}
          </span>
          <button class="button plain" aria-label="Keys" onClick={() => (isHelpShown.value = true)}>
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <div class="content">
          <Content screen={screen} id={id} />
        </div>
      </main>
      <Help />
    </>
  );
}

function Content({ screen, id }: { screen: Screen; id: string | null }) {
  switch (screen) {
    case "runs":
      return id === null ? <RunsScreen /> : <PaneScreen key={id} id={id} />;
    case "time-machine":
      return <TimeMachineScreen chosen={id} />;
    case "chats":
      return <ChatsScreen id={id} />;
    case "jobs":
      return <JobsScreen id={id} />;
    case "events":
      return <EventsScreen />;
    case "settings":
      return <SettingsScreen />;
  }
}
