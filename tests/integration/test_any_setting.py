"""Options and environments, set through tmux and read back through a look."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.model.secrets import is_secret_value
from perdure.model.text import decode
from perdure.model.topology import Pane, Session, Window
from tests.integration.looking import see
from tests.tmux_server import TmuxServer

ODD = "\t\n\r\x01\x1b\x7f|:,.'\"`$#{}()%\\ ~*?!@=-_aZ019é日👍\u202e"
#: Values tmux takes as they are. A `;` at the end would end the command.
VALUE = (
    st.one_of(st.text(ODD, max_size=20), st.text(max_size=20))
    .map(str.encode)
    .filter(lambda raw: b"\0" not in raw and not raw.endswith(b";"))
)
NAME = st.text("abcXYZ019_-é", min_size=1, max_size=8).map(lambda name: f"@{name}".encode())


@pytest.fixture
def server(tmux: TmuxServer) -> TmuxServer:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    return tmux


def test_any_option_value_on_a_session_a_window_and_a_pane(server: TmuxServer) -> None:
    @given(NAME, VALUE, VALUE, VALUE)
    @settings(max_examples=100)
    @example(b"@x", b"", b"~", b"'")
    @example(b"@x", b'"', b"a\\", b"\\")
    @example(b"@x", b"$", b"{", b"%")
    @example(b"@x", b"a;b", b"\\;x", b"\\033\\n")
    @example(b"@two words", b"a b", b"x", b"")
    @example(b"@x", b"'\"", b"\"a'", b'"a"')
    def comes_back(name: bytes, session: bytes, window: bytes, pane: bytes) -> None:
        server.run("set-option", "-t", "a:", "--", name, session)
        server.run("set-option", "-w", "-t", "a:", "--", name, window)
        server.run("set-option", "-p", "-t", "a:", "--", name, pane)
        seen = see(server)
        assert seen.session("a").options[decode(name)] == decode(session)
        assert seen.window("@0").options[decode(name)] == decode(window)
        assert seen.pane("%0").options[decode(name)] == decode(pane)
        for flag in ("", "-w", "-p"):
            server.run("set-option", "-u", *([flag] if flag else []), "-t", "a:", "--", name)

    comes_back()


def test_any_environment_value(server: TmuxServer) -> None:
    @given(st.text("ABCxyz_ é-", min_size=1, max_size=6).filter(lambda name: not name.startswith("-")), VALUE)
    @settings(max_examples=60)
    @example("GREETING", b'two\nlines "q" $x `y` \\z \\')
    @example("A", b'"; export A;\nB="x"; export B; ')
    @example("two words", b"")
    def comes_back(name: str, value: bytes) -> None:
        server.run("set-environment", "-t", "a", "--", name.encode(), value)
        session = see(server).session("a")
        server.run("set-environment", "-u", "-t", "a", "--", name.encode())
        if is_secret_value(decode(value)):
            assert name in session.hidden
        else:
            assert session.environment == {name: decode(value)}

    comes_back()


def test_bytes_that_are_no_text(server: TmuxServer) -> None:
    server.run("set-option", "-t", "a", "@x", b"caf\xe9 \xff")
    server.run("set-environment", "-t", "a", "X", b"caf\xe9 \xff")
    session = see(server).session("a")
    assert session.options["@x"] == "caf\uefe9 \uefff"
    assert session.environment["X"] == "caf\uefe9 \uefff"


def test_variables_set_removed_and_secret(server: TmuxServer) -> None:
    server.run("set-environment", "-t", "a", "EDITOR", "vi")
    server.run("set-environment", "-t", "a", "MY_API_KEY", "hunter2")
    server.run("set-environment", "-t", "a", "DATABASE", "postgresql://dev:hunter2@db/x")
    server.run("set-environment", "-r", "-t", "a", "GONE")
    server.run("set-environment", "-g", "GLOBAL", "1")
    seen = see(server)
    session = seen.session("a")
    assert session.environment == {"EDITOR": "vi"}
    assert session.hidden == ("DATABASE", "MY_API_KEY")
    assert "GONE" in session.removed
    assert "hunter2" not in repr(seen.capture)


def test_only_what_is_set_on_the_thing_itself(server: TmuxServer) -> None:
    server.run("set-option", "-g", "status-left", "global", ";", "set-option", "-g", "@everywhere", "1")
    server.run("set-option", "-wg", "monitor-activity", "on")
    server.run("set-option", "-t", "a", "status-left", "mine")
    server.run("set-option", "-w", "-t", "a", "synchronize-panes", "on")
    server.run("set-option", "-p", "-t", "a", "remain-on-exit", "on")
    server.run("set-option", "-t", "a", "update-environment[3]", "MY_AGENT")
    seen = see(server)
    assert seen.session("a").options["status-left"] == "mine"
    assert seen.session("a").options["update-environment[3]"] == "MY_AGENT"
    assert "@everywhere" not in seen.session("a").options
    assert seen.window("@0").options == {"synchronize-panes": "on"}
    assert seen.pane("%0").options == {"remain-on-exit": "on"}


def test_many_parts_each_with_its_own(server: TmuxServer) -> None:
    """So many that tmux is asked for more than one page, and no option goes to a neighbour."""
    for session in ("b", "c"):
        server.run("new-session", "-d", "-s", session, "-x", "200", "-y", "200", "sleep 1000")
        for _ in range(3):
            server.run("new-window", "-t", session, "sleep 1000")
            for _ in range(3):
                server.run("split-window", "-d", "-t", session, "sleep 1000")
    ids = server.run("list-panes", "-a", "-F", "#{session_id} #{window_id} #{pane_id}").decode().splitlines()
    for line in ids:
        session, window, pane = line.split()
        server.run("set-option", "-t", session, "@me", session, ";", "set-option", "-w", "-t", window, "@me", window)
        server.run("set-option", "-p", "-t", pane, "@me", pane)
    seen = see(server)
    parts: tuple[Session | Window | Pane, ...] = (
        *seen.topology.sessions,
        *seen.topology.windows,
        *seen.topology.panes,
    )
    assert {part.id: part.options["@me"] for part in parts} == {part.id: part.id for part in parts}
    assert len(parts) > 20
