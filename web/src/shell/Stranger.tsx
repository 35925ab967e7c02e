import { isTooOften } from "../api/ask";

/** What somebody sees who is not logged in. */
export function Stranger() {
  return (
    <main class="stranger">
      <div>
        <h1>You are not logged in</h1>
        {isTooOften.value ? (
          <p class="notice call" role="alert">
            Too many wrong tries came from here within a minute: links that were followed already, or wrong tokens. A new link lets you in all the same.
          </p>
        ) : (
          location.pathname === "/login" && (
            <p class="notice call" role="alert">
              This link was followed already, or is too old.
            </p>
          )
        )}
        <p>The dashboard can type into your terminals, so it lets nobody in without a link made on this machine. In a terminal, say</p>
        <pre>perdure open</pre>
        <p class="soft">That opens the dashboard in your browser, or prints a link that works once. `perdure up` prints one, too, when it starts.</p>
      </div>
    </main>
  );
}
