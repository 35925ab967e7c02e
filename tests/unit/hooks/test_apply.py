from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from perdure.agents import hook_facts
from perdure.errors import PerdureError
from perdure.hooks.apply import Place, install, place, uninstall
from tests.conftest import PrivateHome


def where(private_home: PrivateHome, agent: str, **files: str) -> Place:
    """Return an agent that has these files."""
    found = place(agent, hook_facts()[agent], {}, private_home.home, private_home.state)
    os.makedirs(found.home)
    for name, text in files.items():
        write(os.path.join(found.home, name.replace("_", ".")), text)
    return found


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def at_every_sync(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Let something happen while the disk is waited for."""
    sync = os.fsync

    def slow(handle: int) -> None:
        work()
        sync(handle)

    monkeypatch.setattr(os, "fsync", slow)


@pytest.mark.parametrize("saved", ['{"mine": 2}', "{}"])
def test_what_somebody_saves_while_it_is_written_stays(
    private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch, saved: str
) -> None:
    agent = where(private_home, "claude", settings_json="{}")
    path = f"{agent.home}/settings.json"

    def save() -> None:
        write(f"{path}.new", saved)
        os.replace(f"{path}.new", path)

    at_every_sync(monkeypatch, save)
    with pytest.raises(PerdureError, match="try again") as raised:
        install(agent)
    assert raised.value.exit_code == 1
    assert read(path) == saved
    assert os.listdir(agent.home) == ["settings.json"]


def test_a_file_somebody_makes_while_ours_is_written_stays(
    private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = where(private_home, "claude")
    at_every_sync(monkeypatch, lambda: write(f"{agent.home}/settings.json", "mine"))
    with pytest.raises(PerdureError, match="try again"):
        install(agent)
    assert read(f"{agent.home}/settings.json") == "mine"


def test_a_failure_says_what_was_changed_before_it(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = where(private_home, "hermes", config_yaml="a: 1\n")
    at_every_sync(monkeypatch, lambda: write(f"{agent.home}/config.yaml", "b: 1\n"))
    with pytest.raises(PerdureError, match="try again") as raised:
        install(agent)
    assert raised.value.data["changed"] == (f"{agent.home}/shell-hooks-allowlist.json",)


@pytest.mark.parametrize("work", [install, uninstall])
def test_what_somebody_who_was_killed_left_is_removed(
    private_home: PrivateHome, work: Callable[[Place], object]
) -> None:
    agent = where(private_home, "claude", settings_json="{}")
    install(agent)
    with subprocess.Popen(["true"]) as ended:
        pass
    stays = [f".settings.json.perdure-{os.getppid()}", f".other.json.{ended.pid}-0123abcd.tmp", ".settings.json.1.tmp"]
    goes = [
        f".settings.json.perdure-{ended.pid}",
        f".settings.json.{ended.pid}-0123abcd.tmp",
        f"..settings.json.perdure-{ended.pid}.{ended.pid}-0123abcd.tmp",
    ]
    for name in stays + goes:
        write(os.path.join(agent.home, name), "")
    work(agent)
    assert set(os.listdir(agent.home)) == {"settings.json", *stays}


def test_an_agent_without_records_has_none_to_clear(private_home: PrivateHome) -> None:
    agent = where(private_home, "codex")
    os.makedirs(agent.records)
    install(agent)
    uninstall(agent)
    assert os.path.isdir(agent.records)
