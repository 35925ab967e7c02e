"""`perdure follow`: what was let go of is followed again, under the id it had."""

from __future__ import annotations

from tests.acceptance.kit import only_json, sentence
from tests.acceptance.watching import watching
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def test_what_was_let_go_of_is_followed_again_by_its_id_and_by_its_place(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "sleep 3600")
    tmux.run("new-session", "-d", "-s", "other", "-n", "one", "sleep 3600")
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0")
        for target in (run.id, "work", run.pane):
            perdure.ok("kill", "--detach", run.id)
            assert run.id not in [each.id for each in watcher.runs()]
            assert f"`perdure follow {run.id}` does so again" in sentence(perdure("send", run.id, "hello"))
            told = only_json(perdure.ok("follow", "--json", target))
            assert told == {
                "result": "followed",
                "run": run.id,
                "target": "work:0.0",
                "pane": run.pane,
                "socket": tmux.socket,
                "state": told["state"],
            }
            assert run.id in [each.id for each in watcher.runs()]
        # Whoever is followed stays so.
        assert only_json(perdure.ok("follow", "--json", "work"))["result"] == "already"
        assert perdure.ok("follow", run.id).out == f"{run.id} (work:0.0): is followed already.\n"
        perdure.ok("kill", "--detach", run.id)
        assert perdure.ok("follow", run.id).out == f"{run.id} (work:0.0): followed again.\n"


def test_what_cannot_be_followed_is_said(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "sleep 3600")
    tmux.run("new-session", "-d", "-s", "other", "-n", "one", "sleep 3600")
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0")
        for target in ("r99", "nobody", "%99"):
            ran = perdure("follow", target)
            assert ran.code == 3, ran
            sentence(ran)
        perdure.ok("kill", "--detach", run.id)
        tmux.run("kill-session", "-t", "work")
        ran = perdure("follow", run.id)
        assert ran.code == 3
        assert f"The pane of {run.id} is gone" in sentence(ran)
        other = watcher.await_run("other:0.0")
        perdure.ok("kill", "--detach", other.id)
    # Nobody follows anything then; the next does so by itself.
    ran = perdure("follow", other.id)
    assert ran.code == 1
    assert "`perdure up` follows it again by itself" in sentence(ran)
    with watching(perdure) as watcher:
        assert watcher.await_run("other:0.0").id == other.id
