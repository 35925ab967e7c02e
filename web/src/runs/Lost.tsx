import { now } from "../api/live";
import { addressOf } from "../shell/route";
import { Said } from "../text/Said";
import { lost, saidOfLost } from "./hosts";

/** Servers that have ended lately, each with the way back. */
export function Lost() {
  return (
    <>
      {lost.value.slice(0, 3).map((server) => (
        <p key={server.key} class="notice call row">
          <span class="grow">
            The tmux server <strong><Said text={server.socket.split("/").at(-1) ?? server.socket} /></strong> {saidOfLost(server, now.value)}
          </span>
          <a class="button" href={addressOf("time-machine", server.snapshot)}>
            Bring it back
          </a>
        </p>
      ))}
    </>
  );
}
