"""Any word reaches its place through control mode, and none is ever run. tmux itself is the judge."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.host.users import current_user
from perdure.model.text import decode, encode
from perdure.tmux.control import Control, Reply
from perdure.tmux.quote import literal, unescaped
from tests.conftest import PrivateHome
from tests.integration.looking import wait_until
from tests.tmux_server import PATIENCE, TmuxServer

#: What shells, formats and tmux's parser make something of, to be put together.
PIECES = [
    *"\t\n\r\x1b\x7f|:;.,'\"`$#{}[]()%\\ ~*?!@=-_aSZ09&<>",
    *("é", "日", "👍", "\u202e", "\u0301", "\uefff", "\uef80"),
    *("##", "#S", "#{", "#{pid}", "#[", "#,", "#}", "%Y", "%%", "%if", "%end 1 1 1", "$HOME", "${HOME}", "~/", "\\;"),
    *("\\033", "\\n", "\\u00e9", "#{l:", "#{q:", "#{E:@x}", "FOO=bar", "{ display x }", " ; kill-server"),
    *("#(cd;touch CANARY)", "$(cd;touch CANARY)", "`cd;touch CANARY`", ";cd;touch CANARY;", "x & (cd;touch CANARY)"),
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
RAW = st.binary(max_size=20).filter(lambda raw: b"\0" not in raw).map(decode)
WORD = TEXT | RAW | st.text(max_size=20).filter(lambda text: "\0" not in text).map(lambda text: decode(text.encode()))
HOSTILE = [
    "",
    ";",
    "a;",
    "-",
    "--",
    "=x",
    "{",
    "}",
    "%if",
    "\\",
    "\\;",
    "#",
    "~",
    '"',
    "'",
    "\r\n",
    "\uefff",
    "x" * 5000,
]


@pytest.fixture
def control(tmux: TmuxServer, private_home: PrivateHome) -> Iterator[Control]:
    with Control(tmux.socket, current_user(), "perdure-test", environ=os.environ, timeout=PATIENCE) as control:
        yield control
        # What a format starts is started at once: when this has run, so has whatever else was.
        control.ask([["rename-window", "-t", "=perdure-test:", "#(cd;touch SEEN)"]])
        wait_until(lambda: os.path.exists(f"{private_home.home}/SEEN"), "what a format runs has run")
    assert not os.path.exists(f"{private_home.home}/CANARY")


def text(reply: Reply) -> str:
    assert reply.error is None, reply
    return "\n".join(reply.lines)


def test_every_word_is_read_as_it_is(control: Control) -> None:
    @given(st.lists(WORD, max_size=10))
    @settings(max_examples=100)
    @example(HOSTILE)
    def every_word_comes_back(words: list[str]) -> None:
        asked = [
            command
            for word in words
            for command in (["set-option", "-s", "--", "@word", word], ["show-options", "-sv", "@word"])
        ]
        assert [text(reply) for reply in control.ask(asked)[1::2]] == words

    every_word_comes_back()


def test_every_program_gets_its_words_and_variables(control: Control) -> None:
    pane = ["new-window", "-d", "-t", "=perdure-test:", "-P", "-F", "#{pane_pid} #{pane_id}"]

    @given(st.lists(WORD, max_size=10), WORD)
    @settings(max_examples=30)
    @example(HOSTILE, "#(cd;touch CANARY)")
    def every_word_comes_back(words: list[str], value: str) -> None:
        argv = ["/bin/sh", "-c", "read _", "perdure", *words]
        pid, id = text(control.ask([[*pane, "-e", f"VALUE={value}", *argv]])[0]).split()
        expected = b"".join(encode(word) + b"\0" for word in argv)
        wait_until(lambda: content(f"/proc/{pid}/cmdline") == expected, "the words are the program's")
        assert b"VALUE=" + encode(value) in content(f"/proc/{pid}/environ").split(b"\0")
        control.ask([["kill-pane", "-t", id]])

    every_word_comes_back()


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def is_plain(text: str) -> bool:
    """Nothing in it that tmux writes down in another way."""
    return (
        text.isprintable() and not set(text) & set("\\$:.\u0301") and not any("\ue000" <= c <= "\uf8ff" for c in text)
    )


def test_every_name_comes_back(control: Control) -> None:
    made = ["new-session", "-d", "-P", "-F", "#{session_id} #{window_id}", "-s", "first", "-n", "x", "cat", "-"]
    session, window = text(control.ask([made])[0]).split()

    def shown(format: str, *command: str) -> str:
        """What tmux shows after a command, whether or not it accepted it."""
        return text(control.ask([command, ["list-windows", "-t", session, "-F", format]])[1])

    @given(TEXT | RAW)
    @settings(max_examples=150)
    @example("$HOME \\ \x1b")
    @example("###[x##")
    def every_name_comes_back(name: str) -> None:
        for format, command in (
            ("#{window_name}", ["rename-window", "-t", window, "--"]),
            ("#{session_name}", ["rename-session", "-t", session, "--"]),
        ):
            once = shown(format, *command, literal(name))
            # What a snapshot has is what tmux shows; restored, it has to be shown again.
            shown(format, *command, "another")
            assert shown(format, *command, literal(unescaped(once))) == once
            if name and is_plain(name):
                assert once == name

    every_name_comes_back()


def test_every_title_comes_back(control: Control) -> None:
    target = "=perdure-test:"

    @given(TEXT | RAW)
    @settings(max_examples=150)
    @example("#(cd;touch CANARY)")
    def every_title_comes_back(title: str) -> None:
        control.ask([["select-pane", "-t", target, "-T", "before"]])
        control.ask([["select-pane", "-t", target, "-T", literal(title)]])
        shown = text(control.ask([["list-panes", "-t", target, "-F", "#{pane_title}"]])[0])
        # tmux refuses a title with a control character or with bytes that are no text, and says nothing.
        assert shown in (title, "before")
        if is_plain(title):
            assert shown == title

    every_title_comes_back()


def test_every_new_session_and_window_has_the_name_it_was_given(control: Control) -> None:
    @given(TEXT.filter(lambda name: bool(name) and is_plain(name)))
    @settings(max_examples=30)
    def every_name_is_given(name: str) -> None:
        words = ["-P", "-F", "#{session_name}\n#{window_name}", "-n", literal(name), "cat", "-"]
        # Names may be prefixes of others: from here on only `=` finds the right one.
        made, second, *_ = control.ask(
            [
                ["new-session", "-d", "-s", literal(name), *words],
                ["new-window", "-d", "-t", f"={name}:", *words],
                ["kill-session", "-t", f"={name}"],
            ]
        )
        assert text(made) == text(second) == f"{name}\n{name}"

    every_name_is_given()


def test_every_directory_is_the_one_that_was_meant(control: Control, private_home: PrivateHome) -> None:
    @given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join) | RAW)
    @settings(max_examples=40)
    @example("#{pid}")
    @example("#(cd;touch CANARY)")
    @example("%Y ##[x #S")
    def every_directory_is_meant(name: str) -> None:
        path = f"{decode(os.fsencode(private_home.root))}/d/{name.replace('/', '_')}"
        os.makedirs(encode(path), exist_ok=True)
        words = ["-P", "-F", "#{pane_pid}", "-c", literal(path), "/bin/sh", "-c", "read _"]
        made = control.ask(
            [
                ["new-session", "-d", "-s", "d", *words],
                ["new-window", "-d", "-t", "=d:", *words],
                ["split-window", "-d", "-t", "=d:", *words],
            ]
        )
        pids = [text(reply) for reply in made]
        wait_until(lambda: all(content(f"/proc/{pid}/cmdline").startswith(b"/bin/sh") for pid in pids), "all run")
        for pid in pids:
            assert os.readlink(f"/proc/{pid}/cwd".encode()) == os.path.normpath(encode(path))
        control.ask([["kill-session", "-t", "=d"]])

    every_directory_is_meant()
