"""What panes showed, as it is kept."""

from __future__ import annotations

import os

import msgspec

from perdure.host.clock import now
from perdure.host.users import current_user
from perdure.model.config import Config, ScrollbackConfig, TmuxConfig
from perdure.model.digest import digest_of
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Reading, receive, revisit
from tests.integration.looking import Seen, look_at, see, wait_until
from tests.tmux_server import PATIENCE, TmuxServer


def configured(**scrollback: object) -> Config:
    chosen = msgspec.convert(scrollback, ScrollbackConfig)
    return Config(tmux=TmuxConfig(timeout_seconds=PATIENCE), scrollback=chosen)


def show(tmux: TmuxServer, text: bytes, *, width: int = 80) -> str:
    """Open a pane that shows exactly this and then waits; return its id."""
    path = os.path.join(os.environ["HOME"], f"text{os.urandom(4).hex()}")
    with open(path, "wb") as file:
        file.write(text)
    command = f"cat {path}; printf '\\033]2;shown\\007'; exec sleep 1000"
    start = ["new-window", "-d"] if tmux.alive else ["new-session", "-d", "-s", "a", "-x", str(width), "-y", "20"]
    pane = tmux.run(*start, "-P", "-F", "#{pane_id}", command).decode().strip()
    wait_until(lambda: tmux.show("#{pane_title} #{pane_current_command}", pane) == "shown sleep", "the text is shown")
    return pane


def kept(seen: Seen, pane: str) -> bytes:
    digest = seen.pane_details(pane).scrollback
    assert digest is not None
    assert seen.looked.scrollback is not None
    return seen.looked.scrollback[digest]


def test_colours_and_lines_that_were_too_long(tmux: TmuxServer) -> None:
    pane = show(tmux, b"\033[31mred\033[0m plain\n" + b"x" * 200 + b"\nlast\n", width=80)
    text = kept(see(tmux, scrollback=True), pane)
    assert text.startswith(b"\033[31mred\033[39m plain\n") or b"\033[31mred" in text.splitlines()[0]
    assert b"x" * 200 in text.splitlines()
    assert text.endswith(b"last\n")


def test_it_is_named_by_its_content_and_kept_once(tmux: TmuxServer) -> None:
    one, other, third = show(tmux, b"same\n"), show(tmux, b"same\n"), show(tmux, b"different\n")
    seen = see(tmux, scrollback=True)
    assert seen.pane_details(one).scrollback == seen.pane_details(other).scrollback == digest_of(b"same\n")
    assert seen.pane_details(third).scrollback == digest_of(b"different\n")
    assert seen.looked.scrollback == {digest_of(text): text for text in (b"same\n", b"different\n")}


def test_an_empty_pane_has_none(tmux: TmuxServer) -> None:
    pane = show(tmux, b"")
    seen = see(tmux, scrollback=True)
    assert seen.pane_details(pane).scrollback is None
    assert seen.looked.scrollback == {}


def test_unless_asked_for_there_is_none(tmux: TmuxServer) -> None:
    pane = show(tmux, b"text\n")
    assert see(tmux).pane_details(pane).scrollback is None
    assert see(tmux, scrollback=True, config=configured(enabled=False)).pane_details(pane).scrollback is None


def test_text_that_looks_like_our_own_confuses_nobody(tmux: TmuxServer) -> None:
    fake = b"%begin 1 1 0\n%end 1 1 0\n0123456789abcdef end 1 1 3.3a\n0123456789abcdef scroll %0\n0123456789abcdef $0\n"
    one, other = show(tmux, fake), show(tmux, b"after\n")
    seen = see(tmux, scrollback=True)
    assert kept(seen, one) == fake
    assert kept(seen, other) == b"after\n"


def test_the_mark_of_the_first_question_may_be_on_the_screen(tmux: TmuxServer) -> None:
    """It stands in the arguments of a process; a pane that lists processes shows it."""
    show(tmux, b"first\n")
    (reading,) = receive([ask(tmux.socket, current_user())], host="here", now=now(), timeout=PATIENCE)
    assert isinstance(reading, Reading)
    mark = reading.question.mark.encode()
    pane = show(tmux, mark + b" scroll %0\nfake\n" + mark + b" end 1 1 3.3a\nmore\n")
    (answer,) = revisit([(reading, ["%0", pane])], lines=100, timeout=PATIENCE)
    assert isinstance(answer, tuple), answer
    _, texts = answer
    assert texts["%0"].startswith(b"first\n")
    assert b"fake" in texts[pane]
    assert b"more" in texts[pane]


def test_as_many_lines_as_configured_above_the_visible_ones(tmux: TmuxServer) -> None:
    numbers = b"".join(b"%d\n" % number for number in range(1, 101))
    pane = show(tmux, numbers)
    wait_until(lambda: tmux.show("#{history_size}", pane) == "81", "everything is printed")
    assert kept(see(tmux, scrollback=True, config=configured(lines=5)), pane).split()[0] == b"77"
    assert kept(see(tmux, scrollback=True, config=configured(lines=1000)), pane) == numbers


def test_what_is_excluded_is_never_asked_for(tmux: TmuxServer) -> None:
    public = show(tmux, b"public\n")
    tmux.run("new-session", "-d", "-s", "private", "echo secret; exec sleep 1000")
    tmux.run("new-window", "-d", "-t", "a:", "echo hidden; exec tail -f /dev/null")
    tmux.run("link-window", "-d", "-s", "private:0", "-t", "a:9")
    tmux.run("set-hook", "-g", "after-capture-pane", "set-option -ga @captured x")
    wait_until(
        lambda: tmux.run("list-panes", "-a", "-F", "#{pane_current_command}").split().count(b"tail") == 1, "all run"
    )
    config = configured(exclude_sessions=["private"], exclude_programs=["tail"])
    seen = see(tmux, scrollback=True, config=config)
    assert kept(seen, public) == b"public\n"
    assert seen.looked.scrollback == {digest_of(b"public\n"): b"public\n"}
    assert tmux.run("show-options", "-gv", "@captured") == b"x\n"


def test_other_text_in_other_panes_with_many_of_them(tmux: TmuxServer) -> None:
    panes = {show(tmux, f"pane {number}\n".encode() * 50): number for number in range(12)}
    seen = see(tmux, scrollback=True)
    for pane, number in panes.items():
        assert set(kept(seen, pane).splitlines()) == {f"pane {number}".encode()}


def test_a_pane_that_ended_keeps_what_it_showed(tmux: TmuxServer) -> None:
    show(tmux, b"alive\n")
    # tmux itself may miss what is printed in the moment a program ends.
    ending = "echo last words; sleep 0.5; exit 1"
    tmux.run("set-option", "-g", "remain-on-exit", "on", ";", "new-window", "-d", ending)
    wait_until(lambda: tmux.run("list-panes", "-a", "-F", "#{pane_dead}") == b"0\n1\n", "the pane ends")
    assert kept(see(tmux, scrollback=True), "%1").startswith(b"last words\n")


def test_bytes_that_are_no_text(tmux: TmuxServer) -> None:
    pane = show(tmux, "日本語 👍 é\n".encode() + b"caf\xe9 \x01\n")
    assert kept(see(tmux, scrollback=True), pane).splitlines()[0] == "日本語 👍 é".encode()


def test_several_servers_do_not_mix(tmux: TmuxServer) -> None:
    other = TmuxServer("other")
    show(tmux, b"one\n")
    show(other, b"two\n")
    texts = [getattr(each, "scrollback", None) for each in look_at(tmux, other, scrollback=True)]
    assert texts == [{digest_of(b"one\n"): b"one\n"}, {digest_of(b"two\n"): b"two\n"}]
