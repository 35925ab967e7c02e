"""Which thread a Codex process is in: by its own locks, by the daemon's and the title, by command line and guess."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.codex import Codex
from perdure.agents.codex.identity import ids_in
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.snapshots.remember import weighed
from tests.contract.agents.cases.codex import rollout
from tests.unit.agents.hosts import BEFORE, CWD, HOME, LATER, LATEST, DirectoryHost, Seen, jsonl, process

CODEX = Codex()
A = "01a1de5a-d3bd-7910-8d04-f387b46263a3"
B = "01a1de5c-82fc-7541-b400-456e788c0412"
C = "01a1de60-4847-7c20-9c35-31c59e335b85"
TUI, DAEMON = 100, 900
LOCKS = f"{HOME}/.codex/thread-writer-locks"
THREADS = """
    CREATE TABLE threads (id TEXT PRIMARY KEY, rollout_path TEXT, updated_at INTEGER, source TEXT, cwd TEXT,
        archived INTEGER DEFAULT 0, name TEXT);
"""


def said(
    host: DirectoryHost,
    thread: str,
    *,
    cwd: str = CWD,
    at: float = LATER,
    parent: str | None = None,
    root: str | None = None,
    open_turn: bool = False,
) -> str:
    """Write a thread's rollout, one turn long."""
    meta: dict[str, object] = {"id": thread, "session_id": root or thread, "cwd": cwd, "source": "cli"}
    # As long as the instructions in a real one.
    meta["base_instructions"] = {"text": "x" * 30_000}
    if parent:
        meta |= {"parent_thread_id": parent, "source": {"subagent": {}}, "thread_source": "subagent"}
    records = [
        {"type": "session_meta", "payload": meta},
        {"type": "event_msg", "payload": {"type": "task_started"}},
        {"type": "turn_context", "payload": {"cwd": cwd}},
        {"type": "event_msg", "payload": {"type": "task_complete"}},
    ]
    return host.write(rollout(thread), jsonl(*(records[:-1] if open_turn else records)), at=at)


def hold(host: DirectoryHost, pid: int, thread: str, path: str | None = None, *, at: float = LATER) -> None:
    """Let a process hold a thread's lock, loaded `at`, and its rollout."""
    lock = host.write(f"{LOCKS}/{thread}.lock", b"", at=at)
    host.opened.setdefault(pid, ["/dev/pts/1", f"{HOME}/.codex/state_5.sqlite"]).extend(
        [lock, *([path] if path else [])]
    )


def serve(host: DirectoryHost) -> None:
    """Let there be a daemon."""
    host.write(f"{HOME}/.codex/app-server-daemon/daemon.pid", b'{"pid":900,"processStartTime":"x"}', at=BEFORE)
    host.opened[DAEMON] = [f"{HOME}/.codex/logs_2.sqlite"]
    host.opened[TUI] = [f"{HOME}/.codex/logs_2.sqlite"]


def tui(*argv: str, cwd: str = CWD) -> Process:
    return process("codex", *argv, pid=TUI, cwd=cwd)


def found(host: DirectoryHost, *argv: str, title: str = "proj1", cwd: str = CWD) -> Sequence[Identity]:
    return CODEX.identify(Seen(tui(*argv, cwd=cwd), title=title), host)


def first(
    host: DirectoryHost, *argv: str, title: str = "proj1"
) -> tuple[str | None, Evidence | None, bool, bool | None]:
    identity = found(host, *argv, title=title)[0]
    return identity.conversation, identity.evidence, identity.certain, identity.prompted


# Without a daemon


def test_the_lock_it_holds_names_the_thread_before_anything_was_said(host: DirectoryHost) -> None:
    hold(host, TUI, A)
    assert first(host, "--no-daemon") == (A, Evidence.OPEN_FILE, True, False)
    hold(host, TUI, A, said(host, A))
    assert first(host, "--no-daemon") == (A, Evidence.OPEN_FILE, True, True)


def test_a_lock_nobody_holds_is_left_over(host: DirectoryHost) -> None:
    host.write(f"{LOCKS}/{A}.lock", b"")
    host.opened[TUI] = ["/dev/pts/1", f"{LOCKS}/.coordination.lock"]
    assert first(host, "--no-daemon")[0] is None


def test_of_several_the_one_loaded_last_is_current_whichever_was_made_first(host: DirectoryHost) -> None:
    hold(host, TUI, B, said(host, B, at=LATER), at=LATER)
    hold(host, TUI, A, said(host, A, at=BEFORE), at=LATEST)
    assert first(host, "--no-daemon", "resume", B) == (A, Evidence.OPEN_FILE, True, True)
    assert len(found(host, "--no-daemon")) == 2


def test_a_new_thread_without_a_file_is_current(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A), at=BEFORE)
    hold(host, TUI, B, at=LATER)
    assert first(host) == (B, Evidence.OPEN_FILE, True, False)


def test_a_sub_agent_is_not_taken_for_the_conversation(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A), at=LATER)
    hold(host, TUI, B, said(host, B, parent=A, root=A), at=LATEST)
    assert first(host) == (A, Evidence.OPEN_FILE, True, True)


def test_while_the_conversation_is_loaded_anew_its_sub_agents_are_not_taken_for_it(host: DirectoryHost) -> None:
    hold(host, TUI, B, said(host, B, parent=A, root=A))
    assert first(host)[0] is None
    assert first(host, "resume", A)[:3] == (A, Evidence.ARGV, False)


def test_in_its_first_moments_a_sub_agent_leaves_it_open_which_thread_is_current(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A, open_turn=True), at=LATER)
    hold(host, TUI, B, at=LATEST)
    identities = found(host)
    assert [(each.conversation, each.evidence, each.certain) for each in identities[:2]] == [
        (B, Evidence.GUESS, False),
        (A, Evidence.GUESS, False),
    ]


def test_locks_of_the_same_moment_decide_nothing(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A), at=LATER)
    hold(host, TUI, B, said(host, B), at=LATER)
    assert not any(each.certain for each in found(host))


def test_the_title_decides_among_its_own_threads(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A), at=LATER)
    hold(host, TUI, B, said(host, B), at=LATER)
    assert first(host, title=f"⠹ proj1 | {A[:29]}... | Working") == (A, Evidence.OPEN_FILE, True, True)


def test_looking_in_on_a_sub_agent_one_is_still_in_the_conversation(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A), at=LATER)
    hold(host, TUI, C, said(host, C), at=LATEST)
    hold(host, TUI, B, said(host, B, parent=A, root=A), at=LATEST)
    assert first(host, title=f"proj1 | {B[:29]}...")[0] == A


def test_a_side_conversation_in_the_title_changes_nothing(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A))
    assert first(host, title=f"proj1 | {C[:29]}... | Ready") == (A, Evidence.OPEN_FILE, True, True)


def test_without_a_thread_of_its_own_yet_the_command_line_is_not_certain(host: DirectoryHost) -> None:
    """It may wait in a menu, or find the conversation open elsewhere."""
    serve(host)
    hold(host, DAEMON, A, said(host, A))
    assert first(host, "--no-daemon", "resume", A) == (A, Evidence.ARGV, False, True)
    assert first(host, "--no-daemon")[0] is None


# With a daemon


def test_the_daemon_s_lock_confirms_what_the_title_names(host: DirectoryHost) -> None:
    serve(host)
    hold(host, DAEMON, A, said(host, A))
    hold(host, DAEMON, B)
    assert first(host, title=f"proj1 | {A[:29]}...") == (A, Evidence.REGISTRY, True, True)
    assert first(host, title=f"[ ! ] Action Required | proj1 | {B}") == (B, Evidence.REGISTRY, True, False)
    assert first(host, "resume", A, title=f"{B[:29]}... | Ready") == (B, Evidence.REGISTRY, True, False)


def test_a_thread_loaded_before_the_process_began_may_be_an_earlier_program_s_title(host: DirectoryHost) -> None:
    serve(host)
    hold(host, DAEMON, A, said(host, A, at=BEFORE), at=BEFORE)
    title = f"proj1 | {A[:29]}..."
    assert first(host, title=title) == (A, Evidence.TITLE, False, True)
    assert first(host, "resume", A, title=title) == (A, Evidence.REGISTRY, True, True)


def test_a_title_that_names_nothing_the_daemon_has_loaded_is_not_believed(host: DirectoryHost) -> None:
    serve(host)
    hold(host, DAEMON, A, said(host, A))
    said(host, C)
    title = f"proj1 | {C[:29]}... | Ready"
    assert first(host, title=title)[:3] == (A, Evidence.GUESS, False)
    assert first(host, "resume", A, title=title)[:3] == (A, Evidence.ARGV, False)


def test_a_beginning_that_two_threads_share_names_neither(host: DirectoryHost) -> None:
    serve(host)
    twin = A[:29] + "0000000"
    hold(host, DAEMON, A, said(host, A))
    hold(host, DAEMON, twin, said(host, twin))
    assert not any(each.certain for each in found(host, title=f"proj1 | {A[:29]}..."))


def test_without_a_title_the_daemon_s_threads_are_guesses(host: DirectoryHost) -> None:
    serve(host)
    hold(host, DAEMON, A, said(host, A, cwd="/srv/elsewhere"), at=LATER)
    hold(host, DAEMON, B, said(host, B), at=LATEST)
    hold(host, DAEMON, C, said(host, C, parent=B, root=B), at=LATEST)
    assert [(each.conversation, each.certain) for each in found(host)] == [(B, False), (None, False)]


def test_the_name_in_the_title_comes_first_then_what_was_loaded_soonest(host: DirectoryHost) -> None:
    serve(host)
    for thread, at in ((A, LATEST), (B, LATER), (C, BEFORE)):
        hold(host, DAEMON, thread, said(host, thread), at=at)
    assert [each.conversation for each in found(host)] == [B, A, C, None]
    rows = f"INSERT INTO threads (id, name) VALUES ('{C}', 'Fix it'), ('{A}', 'proj'), ('{B}', NULL);"
    host.make_database(f"{HOME}/.codex/state_5.sqlite", THREADS + rows)
    assert [each.conversation for each in found(host, title="⠹ Fix it | proj1")] == [C, B, A, None]


def test_the_command_line_is_certain_while_the_daemon_has_nothing_else_that_could_be_its(host: DirectoryHost) -> None:
    serve(host)
    hold(host, DAEMON, A, said(host, A))
    assert first(host, "resume", A) == (A, Evidence.ARGV, True, True)
    # Gone on to a new one, or to one of another directory: as long as that is nobody else's it speaks against.
    hold(host, DAEMON, B, said(host, B, cwd="/srv/elsewhere"), at=LATEST)
    claims = found(host, "resume", A)
    assert [each.conversation for each in claims] == [A, B, None]
    assert not weighed(claims, held=())[0].certain
    # Nor is it when another pane holds that: two panes can show one thread.
    assert not weighed(claims, held=(B,))[0].certain


def test_what_the_daemon_has_let_go_was_left(host: DirectoryHost) -> None:
    serve(host)
    said(host, A)
    hold(host, DAEMON, B, said(host, B))
    assert [(each.conversation, each.certain) for each in found(host, "resume", A)] == [
        (B, False),
        (A, False),
        (None, False),
    ]


def test_a_fork_is_not_in_the_thread_it_came_from(host: DirectoryHost) -> None:
    serve(host)
    hold(host, DAEMON, A, said(host, A))
    assert first(host, "fork", A)[0] is None


def test_records_of_hooks_are_the_daemon_s_and_not_asked(host: DirectoryHost) -> None:
    host.hook_records = [b'{"session_id":"%s","hook_event_name":"SessionStart"}' % A.encode()]
    assert first(host)[0] is None


# By files alone


@pytest.fixture
def dark(host: DirectoryHost) -> DirectoryHost:
    """A machine that does not tell what processes hold open."""
    said(host, A)
    said(host, B, cwd="/srv/elsewhere")
    said(host, C, parent=A, root=A)
    return host


def rows(*threads: tuple[str, str, str]) -> str:
    values = ", ".join(f"('{id}', '{cwd}', '{source}', 1794731500)" for id, cwd, source in threads)
    return THREADS + f"INSERT INTO threads (id, cwd, source, updated_at) VALUES {values};"


@pytest.mark.parametrize("database", [True, False])
def test_what_was_written_here_since_is_a_guess(dark: DirectoryHost, database: bool) -> None:
    if database:
        script = rows((A, CWD, "vscode"), (B, "/srv/elsewhere", "cli"), (C, CWD, '{"subagent":{}}'))
        dark.make_database(f"{HOME}/.codex/state_12.sqlite", script)
        dark.make_database(f"{HOME}/.codex/state_9.sqlite", THREADS)
    assert [(each.conversation, each.evidence, each.certain) for each in found(dark)] == [
        (A, Evidence.GUESS, False),
        (None, None, False),
    ]


def test_a_title_nobody_confirms_is_not_certain(dark: DirectoryHost) -> None:
    dark.make_database(f"{HOME}/.codex/state_5.sqlite", rows((A, CWD, "vscode"), (B, CWD, "cli")))
    assert first(dark, title=f"proj1 | {B[:29]}...") == (B, Evidence.TITLE, False, True)


def test_the_command_line_is_believed_until_something_was_written(dark: DirectoryHost) -> None:
    claims = found(dark, "resume", B)
    assert [(each.conversation, each.certain) for each in claims[:2]] == [(B, True), (A, False)]
    assert not weighed(claims, held=())[0].certain
    assert first(dark, "resume", "01a1de5f-0000-7000-8000-000000000000")[2] is False


# What is known of the thread


def test_where_a_thread_last_worked_is_told_when_it_is_elsewhere(host: DirectoryHost) -> None:
    hold(host, TUI, A, said(host, A, cwd="/srv/worktree"))
    assert found(host)[0].home == "/srv/worktree"
    assert found(host, "-C", "/srv/worktree")[0].home is None
    assert found(host, "--cd=../../../../srv/worktree")[0].home is None
    assert found(host, cwd="/srv/worktree")[0].home is None


def test_a_home_of_its_own_is_a_profile(host: DirectoryHost) -> None:
    seen = process("codex", pid=TUI, environ={"CODEX_HOME": "/srv/codex-work"})
    hold(host, TUI, A)
    assert CODEX.identify(Seen(seen), host)[0].profile == "codex-work"
    usual = process("codex", pid=TUI, environ={"CODEX_HOME": f"{HOME}/.codex/"})
    assert CODEX.identify(Seen(usual), host)[0].profile is None


def test_a_compressed_rollout_tells_no_more_than_its_name(host: DirectoryHost) -> None:
    host.write(rollout(A).replace(".jsonl", ".jsonl.zst"), b"\x28\xb5\x2f\xfd")
    hold(host, TUI, A)
    assert first(host, "--no-daemon", "resume", A) == (A, Evidence.OPEN_FILE, True, True)


@pytest.mark.parametrize(
    ("title", "ids"),
    [
        ("", []),
        ("codex1", []),
        (f"codex1 | {A[:29]}... | Ready", [A[:29]]),
        (f"⠹ {A[:29]}…", [A[:29]]),
        (f"[ . ] Action Required | {A} | w", [A]),
        (A.upper(), [A]),
        (f"{A[:28]}...", []),
        (A + "0", []),
        (A.replace("-", "0"), []),
    ],
)
def test_ids_are_found_in_titles_of_any_form(title: str, ids: list[str]) -> None:
    assert ids_in(title) == ids


@given(st.text(), st.uuids(), st.integers(29, 36), st.text())
def test_an_id_among_other_words_is_found(before: str, id: object, length: int, after: str) -> None:
    assert str(id)[:length] in ids_in(f"{before} | {str(id)[:length]}... | {after}")
