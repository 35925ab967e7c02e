"""Whatever tmux accepts comes back byte for byte. tmux itself is the judge: it is asked for one thing at a time."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.model.text import decode, encode
from tests.integration.looking import see, until_at_rest, wait_until
from tests.tmux_server import TmuxServer

ODD = [
    "plain",
    "",
    " ",
    "two  spaces ",
    "tab\there",
    "new\nline",
    "pipe|sess",
    "colon:dot.",
    "5:x|7:",
    'it\'s "quoted" `back`',
    "$HOME ${HOME} $(id)",
    "#{pane_id} #[fg=red] ## #,#}",
    "%d %H%% 100%",
    "\\n \\ \\\\ \\033",
    "\x1b[31mred\x07\x01\x7f",
    "emoji 👩‍👩‍👧 日本語 \u0435\u0301",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "\x1e\x1f",
    "%end 1 1 0",
    "-dash",
    "=exact",
    "@0",
    "\uef80\ue000",
    "x" * 5000,
]
#: What may be handed to tmux as an argument.
TEXT = st.one_of(
    st.sampled_from(ODD).map(str.encode),
    st.text("\t\n\r\x1b\x7f|:;.,'\"`$#{}()%\\ ~*?!@=-_aZ09é日👍\u202e\u0301", max_size=30).map(str.encode),
    st.text(max_size=40).map(str.encode),
    st.binary(max_size=20),
).filter(lambda raw: b"\0" not in raw)


def says(tmux: TmuxServer, format: str, target: str) -> str:
    """What tmux itself says, as our text."""
    return decode(tmux.run("display-message", "-p", "-t", target, format).removesuffix(b"\n"))


def test_every_session_window_and_title(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    tmux.run("new-session", "-d", "-s", "b", "sleep 1000", ";", "split-window", "sleep 1000")
    tmux.run("set-option", "-g", "allow-rename", "off", ";", "set-option", "-g", "automatic-rename", "off")

    @given(TEXT, TEXT, TEXT)
    @settings(max_examples=100)
    @example(b"a|b:1", b"", b"")
    @example(b"caf\xe9", b"caf\xe9", b"caf\xe9")
    def every_text_comes_back(session: bytes, window: bytes, title: bytes) -> None:
        # A refusal is fine: then the old name is what has to come back.
        tmux.run("rename-session", "-t", "$0", "--", session, check=False)
        tmux.run("rename-window", "-t", "@1", "--", window, check=False)
        tmux.run("select-pane", "-t", "%2", "-T", title, check=False)
        seen = see(tmux)
        assert {each.id: each.name for each in seen.topology.sessions}["$0"] == says(tmux, "#{session_name}", "$0")
        assert seen.window("@1").name == says(tmux, "#{window_name}", "@1")
        assert seen.pane_details("%2").title == says(tmux, "#{pane_title}", "%2")

    every_text_comes_back()


@pytest.mark.parametrize("text", [text for text in ODD if text])
def test_each_odd_name_of_a_new_session(tmux: TmuxServer, text: str) -> None:
    tmux.run("new-session", "-d", "-s", encode(text), "-n", encode(text), "sleep 1000", check=False)
    if tmux.alive:
        seen = see(tmux)
        assert seen.topology.sessions[0].name == says(tmux, "#{session_name}", "$0")
        assert seen.topology.windows[0].name == says(tmux, "#{window_name}", "@0")


DIRECTORIES = [
    b"plain",
    b"tab\there",
    b"new\nline",
    b"trailing ",
    b" leading",
    b"two  spaces",
    b'it\'s "quoted" `x` $HOME',
    b"pipe|5:x",
    b"#{pane_id} #[x] %d %%",
    b"caf\xe9 not utf-8 \xff\xfe",
    "日本語 👍".encode(),
    "\uef80".encode(),
    b"(deleted)",
    b"back\\slash\x01\x1b[31m",
]


def test_every_directory(tmux: TmuxServer, tmp_path: object) -> None:
    root = os.fsencode(str(tmp_path))
    tmux.run("new-session", "-d", "-s", "first", "-c", "/", "sleep 1000")
    made = {}
    for name in DIRECTORIES:
        path = os.path.join(root, name)
        os.mkdir(path)
        # Not with -c: that is a format, and would be expanded.
        start = ("new-window", "-d", "-P", "-F", "#{pane_id}", "-e", b"WHERE=" + path, 'cd "$WHERE"; exec sleep 1000')
        made[tmux.run(*start).decode().strip()] = path
    until_at_rest(tmux)
    seen = see(tmux)
    for id, path in made.items():
        assert seen.pane(id).cwd == says(tmux, "#{pane_current_path}", id)
        assert encode(seen.pane(id).cwd) == path
        assert seen.pane(id).start_path == says(tmux, "#{pane_start_path}", id)


def test_a_directory_that_is_gone(tmux: TmuxServer, tmp_path: object) -> None:
    gone = os.path.join(str(tmp_path), "gone")
    os.mkdir(gone)
    tmux.run("new-session", "-d", "-s", "a", "-c", gone, "exec sleep 1000")
    until_at_rest(tmux)
    os.rmdir(gone)
    seen = see(tmux)
    # The kernel's mark is not part of the name, and tmux passes it on.
    assert says(tmux, "#{pane_current_path}", "%0") == f"{gone} (deleted)"
    assert seen.pane("%0").cwd == gone
    assert seen.pane("%0").start_path == gone


def test_a_directory_that_is_really_called_deleted(tmux: TmuxServer, tmp_path: object) -> None:
    odd = os.path.join(str(tmp_path), "odd (deleted)")
    os.mkdir(odd)
    tmux.run("new-session", "-d", "-s", "a", "-c", odd, "exec sleep 1000")
    until_at_rest(tmux)
    assert see(tmux).pane("%0").cwd == odd


def test_the_directory_is_that_of_the_program_in_the_foreground(tmux: TmuxServer, tmp_path: object) -> None:
    tmux.run("new-session", "-d", "-c", "/", f"cd {tmp_path}; exec bash -ic 'cd /usr && sleep 1000; :'")
    until_at_rest(tmux)
    seen = see(tmux)
    assert seen.pane("%0").cwd == says(tmux, "#{pane_current_path}", "%0") == "/usr"


COMMANDS = [
    "sleep 1000",
    "exec sleep 1000",
    "exec bash -c 'exec -a -login sleep 1000'",
    "exec bash -c 'exec -a \"two words\" sleep 1000'",
    "exec bash -c 'exec -a \"\" sleep 1000'",
    "exec bash -c 'exec -a - sleep 1000'",
    "exec bash -c 'exec -a / sleep 1000'",
    "exec bash -c 'exec -a /usr/bin/ sleep 1000'",
    "exec bash -c 'exec -a //x// sleep 1000'",
    "exec bash -c 'exec -a \"exec vim\" sleep 1000'",
    'exec bash -c \'exec -a "\\"q\\" r" sleep 1000\'',
    "exec bash -c 'exec -a \"/opt/two words/bin/prog\" sleep 1000'",
    "exec bash -c 'exec -a café sleep 1000'",
    "exec bash -c 'exec -a 日本語 sleep 1000'",
    "exec bash -c 'exec -a x日本語/é sleep 1000'",
    "exec bash -c 'exec -a $\"x\\t\\x01\" sleep 1000'",
    "exec bash -c 'exec -a $'\"'\"'x\\t\\x01'\"'\"' sleep 1000'",
    "exec bash -c 'exec -a $'\"'\"'a\\nb'\"'\"' sleep 1000'",
    "exec bash -c 'exec -a $'\"'\"'caf\\xe9'\"'\"' sleep 1000'",
    "exec bash -c 'exec -a ./relative/path sleep 1000'",
    "exec bash -c 'exec -a x/ sleep 1000'",
    "exec python3 -c 'import time; time.sleep(1000)'",
    "exec bash --login",
    "exec bash -c 'exec -l bash'",
    "exec bash -c 'sleep 1000 | cat'",
    "exec bash -ic 'sleep 1000 | cat'",
    "exec bash -ic 'sleep 1000; :'",
    "exec bash -ic 'true | sleep 1000'",
]


def test_every_program_is_called_what_tmux_calls_it(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "first", "sleep 1000")
    for command in COMMANDS:
        tmux.run("new-window", "-d", command)
    script = os.path.join(os.environ["HOME"], "tool with space.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write("#!/usr/bin/env python3\nimport time\ntime.sleep(1000)\n")
    os.chmod(script, 0o755)
    tmux.run("new-window", "-d", script)
    tmux.run("new-window", "-d", f"exec '{script}'")
    until_at_rest(tmux)
    wrong: dict[str, tuple[str, str]] = {}

    def agree() -> bool:
        wrong.clear()
        for pane in see(tmux).topology.panes:
            said = says(tmux, "#{pane_current_command}", pane.id)
            if pane.command != said:
                wrong[pane.start_command] = (pane.command, said)
        return not wrong

    try:
        # One that became another program after all, between the two questions.
        wait_until(agree, "everything is called the same")
    except AssertionError as error:
        raise AssertionError(f"{error}: {wrong}") from None
