"""How Hermes records its conversation."""

from __future__ import annotations

from perdure.agents.hooking import MARK, Entry, Format, HookFacts, HookFile, record_line, shell_quoted


def _files(directory: str) -> tuple[HookFile, ...]:
    # Not `pre_llm_call` and `post_llm_call`: they carry the whole conversation, every turn.
    events = ("on_session_start", "on_session_reset", "pre_approval_request", "on_session_end", "on_session_finalize")
    # It takes commands apart itself and starts them without a shell.
    lines = {event: f"/bin/sh -c {shell_quoted(record_line(directory, event, marked=False))}" for event in events}
    consents = (
        Entry(path=("approvals",), value={"event": event, "command": line, "perdure": MARK})
        for event, line in lines.items()
    )
    hooks = (Entry(path=("hooks", event), value={"command": line, "perdure": MARK}) for event, line in lines.items())
    return (
        HookFile(path="shell-hooks-allowlist.json", format=Format.JSON, entries=tuple(consents)),
        HookFile(path="config.yaml", format=Format.YAML, entries=tuple(hooks)),
    )


HOOKS = HookFacts(
    variables=(("HERMES_HOME", ""),),
    usual_home=".hermes",
    files=_files,
    note="Its list of approved hooks got these too, so that it does not ask at the next start.",
)
