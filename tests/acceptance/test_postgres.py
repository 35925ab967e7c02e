"""The same commands over PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.gateway import ANN, Gateway
from tests.acceptance.kit import history, is_whole, manifests, only_json, save, settle, snapshot
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.postgres import PostgresServer
from tests.tmux_server import TmuxServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A private PostgreSQL."""
    started = PostgresServer()
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _database(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    url = server.new_database()
    monkeypatch.setenv("PERDURE_STORE", url)
    yield
    server.drop(url)


def test_saving_and_reading_back(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    assert history(perdure) == []
    tmux.run("new-session", "-d", "-s", "日本|'\"")
    settle(tmux)
    first = save(perdure)
    assert first["result"] == "saved"
    assert save(perdure)["result"] == "unchanged"
    tmux.run("new-session", "-d", "-s", "two")
    second = save(perdure)
    assert [row["id"] for row in history(perdure)] == [second["snapshot"], first["snapshot"]]
    assert snapshot(perdure, first["snapshot"])["topology"]["sessions"][0]["name"] == "日本|'\""
    assert snapshot(perdure)["id"] == second["snapshot"]
    assert is_whole(perdure)
    assert [each["snapshot"]["id"] for each in manifests(private_home)] == [second["snapshot"]]
    assert only_json(perdure.ok("diff", first["snapshot"], "latest", "--json"))["changes"]
    assert only_json(perdure.ok("--json"))["saved"]["panes"] == 2


def test_a_dead_server_keeps_its_last_good_snapshot(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "precious")
    good = save(perdure)["snapshot"]
    tmux.kill9()
    line = save(perdure)
    assert (line["result"], line["reason"], line["snapshot"]) == ("kept", "no-server", good)
    assert snapshot(perdure)["id"] == good


def test_what_was_kept_while_the_database_was_away_is_taken_in(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    save(perdure)
    tmux.run("new-session", "-d", "-s", "two")
    away = {"PERDURE_STORE": "postgresql://me:hunter2@127.0.0.1:1/none"}
    ran = perdure("save", "--json", env=away)
    assert ran.code == 5
    assert "refused" in ran.err
    assert "hunter2" not in ran.out + ran.err
    tmux.run("new-session", "-d", "-s", "three")
    save(perdure)
    assert [row["sessions"] for row in history(perdure)] == [3, 2, 1]
    assert is_whole(perdure)


def test_chats_are_listed_found_changed_and_pruned(perdure: Perdure, private_home: PrivateHome) -> None:
    gateway = Gateway(private_home)
    gateway.clock.later(days=-100)
    old = gateway.open(ANN, "green tea", title="Tea")
    gateway.clock.later(days=1)
    new = gateway.open(ANN, "coffee", force_new=True)
    assert [each["id"] for each in only_json(perdure.ok("chats", "ls", "--all", "--json"))["chats"]] == [new, old]
    assert only_json(perdure.ok("chats", "show", "Tea", "--json"))["turns"][0]["content"] == "green tea"
    assert [each["chat"] for each in only_json(perdure.ok("chats", "search", "gre*", "--json"))["found"]] == [old]
    assert perdure("chats", "show", "20").code == 2
    perdure.ok("chats", "title", new, "Coffee")
    assert only_json(perdure.ok("chats", "prune", "--json"))["forgotten"][0]["id"] == old
    begun = only_json(perdure.ok("chats", "reset", "Coffee", "--json"))["begun"]["id"]
    assert only_json(perdure.ok("chats", "resume", "Coffee", "--json"))["closed"] == begun


def test_a_wrong_password_is_not_shown(perdure: Perdure, tmux: TmuxServer) -> None:
    ran = perdure("history", "--json", env={"PERDURE_STORE": "postgresql://me:hunter2@127.0.0.1:1/none?sslmode=bad"})
    assert ran.code == 5
    assert "hunter2" not in ran.out + ran.err
    only_json(ran)
