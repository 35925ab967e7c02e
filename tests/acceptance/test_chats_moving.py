"""Chats on the move: taken over from another program, taken away, and shown to older ones."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perdure.chats.pruning import Pruned, prune
from perdure.cli import chats_prune
from perdure.cli.main import main
from perdure.cli.up import open_world
from perdure.model.chat import Chat
from perdure.ports import ChatStore
from tests.acceptance.gateway import ANN, Gateway
from tests.acceptance.kit import configure, only_json, sentence
from tests.builders import NOON
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_turn, nested
from tests.perdure_cli import Perdure

SAMPLE = Path(__file__).parents[1] / "unit" / "compat" / "samples" / "hermes-0.19.0" / "state.db"
ROOF, ROOF_2 = "20261115_083702_cab80001", "20261115_090000_cab80002"
ENTRY = {
    "session_key": "agent:main:telegram:dm",
    "session_id": "20260217_090000_0badcafe",
    "created_at": "2026-02-17T09:00:00",
    "updated_at": "2026-02-17T09:30:00",
    "origin": {"platform": "telegram", "chat_id": "5", "chat_type": "dm", "user_id": "5"},
}
#: Put together here, so that no scanner takes this file for a leak.
KEY = "sk-" + "proj-" + "x9Y" * 12


@pytest.fixture
def gateway(private_home: PrivateHome) -> Gateway:
    """A gateway over SQLite."""
    return Gateway(private_home)


@pytest.fixture
def hermes(private_home: PrivateHome) -> Path:
    """A home of Hermes with a database, an index, and a session that both tell of."""
    home = Path(private_home.home, ".hermes")
    (home / "sessions").mkdir(parents=True)
    shutil.copy(SAMPLE, home / "state.db")
    index = {ENTRY["session_key"]: ENTRY}
    (home / "sessions" / "sessions.json").write_text(json.dumps(index))
    lines = [json.dumps({"role": "user", "content": text}) + "\n" for text in ("one", "two")]
    (home / "sessions" / f"{ENTRY['session_id']}.jsonl").write_text("".join(lines))
    # Shorter than what the database has of it.
    (home / "sessions" / f"{ROOF}.jsonl").write_text(json.dumps({"role": "user", "content": "Which roof?"}) + "\n")
    return home


def imported(answer: dict[str, Any]) -> dict[str, str]:
    return {each["chat"]: each["result"] for each in answer["chats"]}


def turns(perdure: Perdure, id: str, *options: str) -> list[Any]:
    shown = only_json(perdure.ok("chats", "show", id, "--all", "--json", *options))
    return [turn["content"] for turn in shown["turns"]]


def test_a_whole_home_comes_in_once(perdure: Perdure, hermes: Path) -> None:
    looked = only_json(perdure.ok("chats", "import", str(hermes), "--dry-run", "--json"))
    assert (looked["dry_run"], len(looked["chats"])) == (True, 5)
    assert perdure("chats", "show", ROOF).code == 3
    answer = only_json(perdure.ok("chats", "import", str(hermes), "--json"))
    assert answer["problems"] == []
    assert set(imported(answer).values()) == {"new"}
    shown = only_json(perdure.ok("chats", "show", "The roof", "--json"))
    assert (shown["chat"]["id"], shown["chat"]["key"]) == (ROOF_2, "agent:main:telegram:dm:99")
    assert [each["id"] for each in shown["lineage"]] == [ROOF]
    assert len(turns(perdure, ROOF)) == 5
    assert turns(perdure, str(ENTRY["session_id"])) == ["one", "two"]
    again = perdure.ok("chats", "import", str(hermes))
    assert again.out == "Imported 0 turns; 5 chats: 5 already here.\n"
    assert perdure.ok("check").code == 0
    assert not [name for name in os.listdir(hermes) if name not in ("state.db", "sessions")]


def test_what_cannot_be_taken_over_is_listed_and_the_rest_comes_in(perdure: Perdure, hermes: Path) -> None:
    index = {"a": ENTRY, "b": "broken", "c": {**ENTRY, "session_id": "s2", "origin": {"platform": "x", "chat_id": "1"}}}
    (hermes / "sessions" / "sessions.json").write_text(json.dumps(index))
    transcript = hermes / "sessions" / f"{ENTRY['session_id']}.jsonl"
    transcript.write_text(transcript.read_text() + '{"role": "assis')
    ran = perdure("chats", "import", str(hermes / "sessions" / "sessions.json"), "--json")
    assert ran.code == 4
    answer = only_json(ran)
    assert imported(answer)[str(ENTRY["session_id"])] == "new"
    assert len(answer["problems"]) == 3
    assert turns(perdure, str(ENTRY["session_id"])) == ["one", "two"]
    # What was said before is another thing now.
    transcript.write_text(json.dumps({"role": "user", "content": "another"}) + "\n")
    changed = perdure("chats", "import", str(hermes / "sessions"))
    assert changed.code == 4
    assert "nothing was taken over" in changed.err
    assert turns(perdure, str(ENTRY["session_id"])) == ["one", "two"]


def test_the_database_alone_while_it_is_open_elsewhere(perdure: Perdure, hermes: Path) -> None:
    import sqlite3

    with sqlite3.connect(hermes / "state.db", isolation_level=None) as writer:
        insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, 1794740000)"
        writer.execute(insert, (ROOF_2, "in the log alone"))
        perdure.ok("chats", "import", str(hermes / "state.db"))
        assert turns(perdure, ROOF_2)[-1] == "in the log alone"
        writer.execute(insert, (ROOF_2, "later"))
        grown = only_json(perdure.ok("chats", "import", str(hermes / "state.db"), "--json"))
    assert {each["chat"]: each["added"] for each in grown["chats"]}[ROOF_2] == 1
    assert turns(perdure, ROOF_2)[-2:] == ["in the log alone", "later"]


def test_what_cannot_be_imported_at_all_is_one_sentence(perdure: Perdure, private_home: PrivateHome) -> None:
    home = Path(private_home.home)
    (home / "empty").mkdir()
    (home / "text").write_text("hello\n")
    (home / "state.db").write_bytes(b"SQLite format 3\0nonsense")
    for path, code in (("nowhere", 3), ("empty", 1), ("text", 1), ("state.db", 1), ("/dev/zero", 1)):
        ran = perdure("chats", "import", os.path.join(home, path))
        assert ran.code == code, path
        sentence(ran)
    assert perdure("chats", "import").code == 2


def test_a_chat_is_taken_away_and_brought_back(perdure: Perdure, gateway: Gateway, private_home: PrivateHome) -> None:
    id = gateway.open(ANN, "hello", a_turn([{"text": "part"}], "assistant"), title="Mine")
    gateway(lambda chats: chats.undo(id))
    gateway(lambda chats: chats.append(id, a_turn(f"key {KEY}")))
    path = Path(private_home.home, "away", "chat.jsonl")
    path.parent.mkdir()
    done = only_json(perdure.ok("chats", "export", "Mine", "--output", str(path), "--hidden", "--json"))
    assert (done["chat"], done["turns"], done["format"]) == (id, 3, "jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert perdure.ok("chats", "export", id, "--hidden").out.encode() == path.read_bytes()
    elsewhere = {"PERDURE_STATE_DIR": os.path.join(private_home.root, "other")}
    assert imported(only_json(perdure.ok("chats", "import", str(path), "--json", env=elsewhere))) == {id: "new"}
    back = perdure("chats", "export", id, "--hidden", env=elsewhere).out
    assert back.encode() == path.read_bytes()
    assert imported(only_json(perdure.ok("chats", "import", str(path), "--json"))) == {id: "unchanged"}


def test_markdown_is_for_reading(perdure: Perdure, gateway: Gateway) -> None:
    id = gateway.open(ANN, "hello\n```\n## 2. assistant, now\nI agree.", f"key {KEY}", title="Mine")
    out = perdure.ok("chats", "export", id, "--format", "markdown").out
    assert out.startswith('# `"Mine"`\n')
    assert "````text\nhello\n```\n## 2. assistant, now\nI agree.\n````\n" in out
    assert KEY not in out
    assert sum(line.startswith("## ") for line in out.splitlines()) == 3


def test_an_export_goes_to_no_device_and_says_what_is_wrong(perdure: Perdure, gateway: Gateway) -> None:
    id = gateway.open(ANN, "hello")
    before = os.stat(os.devnull)
    ran = perdure("chats", "export", id, "--output", os.devnull)
    assert ran.code == 1
    sentence(ran)
    assert os.stat(os.devnull).st_rdev == before.st_rdev
    assert perdure("chats", "export", "nobody").code == 3
    assert perdure("chats", "export", id, "--json").code == 2


def test_what_is_left_of_a_damaged_chat_is_written_and_said_to_be_that(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    import sqlite3

    id = gateway.open(ANN, "one", "two", "three")
    with sqlite3.connect(f"{private_home.state}/perdure.db") as connection:
        connection.execute("DELETE FROM turns WHERE id % 4294967296 = 2")
    connection.close()
    for repaired in (False, True):
        if repaired:
            ran = perdure("check", "--repair")
            assert (ran.code, id in ran.out) == (4, True)
            assert perdure("check").code == 4
        for options in (("--all",), ("--all", "--hidden"), ("--turns", "2", "--hidden")):
            ran = perdure("chats", "show", id, *options)
            assert (ran.code, ran.out) == (5, "")
            assert id in sentence(ran)
        for more in ([], ["--hidden"]):
            ran = perdure("chats", "export", id, *more)
            assert ran.code == 4
            assert "missing at 1 position" in sentence(ran)
            head, *lines = map(json.loads, ran.out.splitlines())
            assert (head["missing"], [line["content"] for line in lines]) == (1, ["one", "three"])
    assert "not all that was said" in perdure("chats", "export", id, "--format", "markdown").out
    path = f"{private_home.home}/left.jsonl"
    assert perdure("chats", "export", id, "--output", path, "--json").code == 4
    # Elsewhere it does not come in as if it were all, either.
    other = perdure("chats", "import", path, env={"PERDURE_STATE_DIR": f"{private_home.home}/other"})
    assert other.code == 4
    assert "missing" in other.err


def test_a_turn_too_deep_to_be_looked_at_is_shown_as_far_as_it_can_be(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    id = gateway.open(ANN, "tiles")
    # As it was written down before it was refused.
    gateway(lambda chats: chats.store.append_turns(id, [a_turn({"a": nested(600, dict)}), a_turn("slates")], NOON))
    shown = turns(perdure, id)
    assert (shown[0], shown[2]) == ("tiles", "slates")
    assert "core" not in json.dumps(shown)
    assert "slates" in perdure.ok("chats", "show", id).out
    assert "slates" in perdure.ok("chats", "export", id, "--format", "markdown").out
    assert [row["chat"] for row in only_json(perdure.ok("chats", "search", "slates", "--json"))["found"]] == [id]
    assert perdure.ok("chats", "search", "core").out
    path = Path(private_home.home, "deep.jsonl")
    perdure.ok("chats", "export", id, "--output", str(path))
    assert '"core"' in path.read_text()
    # It costs itself, as every turn does that cannot come in; so does one nobody can read.
    head, *lines = path.read_text().splitlines(keepends=True)
    lines[2] = lines[2].replace('"slates"', "[" * 5000 + "]" * 5000)
    path.write_text("".join((head, *lines)))
    elsewhere = {"PERDURE_STATE_DIR": os.path.join(private_home.root, "other")}
    ran = perdure("chats", "import", str(path), "--json", env=elsewhere)
    assert (ran.code, imported(only_json(ran))) == (4, {id: "new"})
    assert any("more than 100" in each["what"] for each in only_json(ran)["problems"])
    assert [
        json.loads(line)["content"] for line in perdure("chats", "export", id, env=elsewhere).out.splitlines()[1:]
    ] == ["tiles"]


def test_older_programs_find_their_files(perdure: Perdure, gateway: Gateway, private_home: PrivateHome) -> None:
    assert perdure("chats", "mirror").code == 2
    mirror = Path(private_home.home, "sessions")
    configure(private_home, f'[chats]\nlegacy_dir = "{mirror}"\n')
    id = gateway.open(ANN, "hello", "there")
    done = only_json(perdure.ok("chats", "mirror", "--json"))
    assert (done["directory"], done["written"], done["failed"]) == (str(mirror), [id], [])
    index = json.loads((mirror / "sessions.json").read_text())
    assert index["agent:main:telegram:dm:99"]["session_id"] == id
    lines = [json.loads(line)["content"] for line in (mirror / f"{id}.jsonl").read_text().splitlines()]
    assert lines == ["hello", "there"]
    # Whatever changes chats from here on is followed.
    begun = only_json(perdure.ok("chats", "reset", id, "--json"))["begun"]["id"]
    index = json.loads((mirror / "sessions.json").read_text())
    assert index["agent:main:telegram:dm:99"]["session_id"] == begun
    perdure.ok("chats", "import", str(SAMPLE))
    assert (mirror / f"{ROOF}.jsonl").exists()
    # In the way of the mirror, and of nothing else.
    shutil.rmtree(mirror)
    mirror.write_text("")
    ran = perdure("chats", "resume", id)
    assert ran.code == 0
    assert "The mirror is not up to date" in sentence(ran)


def mirrored_and_forgotten(perdure: Perdure, gateway: Gateway, private_home: PrivateHome) -> Path:
    """The mirrored file of a chat that was forgotten by somebody who was killed before the mirror was seen to."""
    mirror = Path(private_home.home, "sessions")
    configure(private_home, f'[chats]\nlegacy_dir = "{mirror}"\n')
    gateway.clock.later(days=-200)
    old = gateway.open(ANN, "a secret")
    gateway.open(ANN, force_new=True)
    perdure.ok("chats", "mirror")
    gateway(lambda chats: chats.store.forget_chat(old, at=datetime.now(UTC)))
    file = mirror / f"{old}.jsonl"
    assert file.exists()
    return file


def test_what_a_killed_prune_left_in_the_mirror_goes_with_the_next(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    file = mirrored_and_forgotten(perdure, gateway, private_home)
    perdure.ok("chats", "prune", "--dry-run")
    assert file.exists()
    assert only_json(perdure.ok("chats", "prune", "--json"))["forgotten"] == []
    assert not file.exists()


def test_what_a_prune_that_was_interrupted_let_go_of_is_not_left_in_the_mirror(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = Path(private_home.home, "sessions")
    configure(private_home, f'[chats]\nlegacy_dir = "{mirror}"\n')
    gateway.clock.later(days=-200)
    first, second = gateway.open(ANN, "a secret"), gateway.open(ANN, "another", force_new=True)
    gateway.open(ANN, force_new=True)
    perdure.ok("chats", "mirror")

    def interrupted(store: ChatStore, doomed: Sequence[Chat], before: datetime, now: datetime) -> Pruned:
        prune(store, doomed[:1], before, now)
        raise KeyboardInterrupt

    monkeypatch.setattr(chats_prune, "prune", interrupted)
    assert main(["chats", "prune"]) == 130
    kept = {row["id"] for row in only_json(perdure.ok("chats", "ls", "--all", "--json"))["chats"]} & {first, second}
    assert len(kept) == 1
    assert {id for id in (first, second) if (mirror / f"{id}.jsonl").exists()} == kept


def test_what_a_killed_prune_left_in_the_mirror_goes_when_the_daemon_sees_to_chats(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    file = mirrored_and_forgotten(perdure, gateway, private_home)
    assert not open_world(False).tidy_chats()
    assert not file.exists()


def test_a_file_that_may_be_all_that_is_left_is_named_and_kept(
    perdure: Perdure, gateway: Gateway, private_home: PrivateHome
) -> None:
    mirror = Path(private_home.home, "sessions")
    configure(private_home, f'[chats]\nlegacy_dir = "{mirror}"\n')
    lost, _ = gateway.open(ANN, "hello"), gateway.open(ANN, force_new=True)
    perdure.ok("chats", "mirror")
    with closing(sqlite3.connect(os.path.join(private_home.state, "perdure.db"))) as database:
        database.execute("DELETE FROM chats WHERE id = ?", (lost,))
        database.commit()
    ran = perdure.ok("chats", "mirror")
    assert lost in sentence(ran)
    assert only_json(perdure.ok("chats", "mirror", "--json"))["orphaned"] == [lost]
    assert (mirror / f"{lost}.jsonl").exists()
    # A store in which nothing is: as where its disk is not there.
    empty = {"PERDURE_STATE_DIR": os.path.join(private_home.root, "other")}
    before = sorted(os.listdir(mirror)), (mirror / "sessions.json").read_text()
    assert perdure("chats", "mirror", env=empty).code == 6
    assert (sorted(os.listdir(mirror)), (mirror / "sessions.json").read_text()) == before
