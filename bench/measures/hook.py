"""What a hook costs an agent that waits for it."""

from __future__ import annotations

from bench.sandbox import Sandbox, run
from bench.timing import Step, timed
from perdure.agents.hooking import record_line

BARE = "sh -c :"
RECORD = "sh -c (a hook's record)"

#: About what an agent says of a prompt.
_PAYLOAD = '{"session_id":"00000000-0000-4000-8000-000000000000","hook_event_name":"Stop","x":"' + "x" * 1000 + '"}'


def steps(sandbox: Sandbox) -> dict[str, Step]:
    """Return a shell that does nothing, and one that keeps a record."""
    line = record_line(sandbox.directory("spool"), "Stop")
    return {
        BARE: lambda: timed(lambda: run(["sh", "-c", ":"], sandbox.environ, script=_PAYLOAD)),
        RECORD: lambda: timed(lambda: run(["sh", "-c", line], sandbox.environ, script=_PAYLOAD)),
    }
