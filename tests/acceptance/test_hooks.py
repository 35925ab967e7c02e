"""Hooks as users install them: real files, a real shell, the program as a process."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import msgspec
import pytest

from tests.acceptance.fake_agent import ANOTHER, CONVERSATION, FakeAgent
from tests.acceptance.kit import NOBODY, only_json, sentence
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer

AGENTS = ("claude", "codex", "copilot", "gemini", "hermes", "opencode", "qwen")
HOMES = {name: f".{name}" for name in AGENTS} | {"opencode": ".config/opencode"}
SETTINGS = '{\n\t"model": "opus", // mine\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}'
FILES = {
    ".claude/settings.json": SETTINGS,
    ".gemini/settings.json": "\ufeff" + SETTINGS.replace("\n", "\r\n"),
    ".qwen/settings.json": '{"$version": 4}\n',
    ".codex/config.toml": '# mine\n[tui]\nseen = true\n\n[projects."/home/dev/é"]\ntrust = "yes"',
    ".hermes/config.yaml": "# mine\nmodel:\n  default: x # y\nhooks: {}\nlast: 1",
}


@pytest.fixture
def home(private_home: PrivateHome) -> str:
    """A home in which every agent has been, with settings of its owner's."""
    for directory in HOMES.values():
        os.makedirs(os.path.join(private_home.home, directory))
    for path, text in FILES.items():
        write(os.path.join(private_home.home, path), text)
    return private_home.home


def write(path: str, text: str) -> None:
    with open(path, "w", newline="") as file:
        file.write(text)


def read(path: str) -> str:
    with open(path, newline="") as file:
        return file.read()


def everything(root: str) -> dict[str, tuple[int, bytes | str]]:
    """Return every file below a directory with its mode, links as such, and every directory."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for folder, _, names in os.walk(root):
        found[folder] = (stat.S_IMODE(os.stat(folder).st_mode), "")
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[path] = (0, os.readlink(path))
                continue
            with open(path, "rb") as file:
                found[path] = (stat.S_IMODE(os.stat(path).st_mode), file.read())
    return found


def results(ran: Ran) -> dict[str, str]:
    return {each["agent"]: each["result"] for each in only_json(ran)["agents"]}


def states(perdure: Perdure) -> dict[str, str]:
    return {each["agent"]: each["state"] for each in only_json(perdure.ok("hooks", "status", "--json"))["agents"]}


def test_in_and_out_without_a_trace(perdure: Perdure, home: str) -> None:
    before = everything(home)
    assert results(perdure.ok("hooks", "install", "--json")) == dict.fromkeys(AGENTS, "installed")
    installed = everything(home)
    assert states(perdure) == dict.fromkeys(AGENTS, "installed")
    assert results(perdure.ok("hooks", "install", "--json")) == dict.fromkeys(AGENTS, "unchanged")
    assert everything(home) == installed
    for path, text in FILES.items():
        mode, content = installed[os.path.join(home, path)]
        assert mode == before[os.path.join(home, path)][0]
        assert content != text.encode()
    assert results(perdure.ok("hooks", "uninstall", "--json")) == dict.fromkeys(AGENTS, "removed")
    assert everything(home) == before
    assert states(perdure) == dict.fromkeys(AGENTS, "not installed")
    assert results(perdure.ok("hooks", "uninstall", "--json")) == dict.fromkeys(AGENTS, "unchanged")


def test_in_and_out_where_there_was_nothing(perdure: Perdure, private_home: PrivateHome) -> None:
    for directory in HOMES.values():
        os.makedirs(os.path.join(private_home.home, directory))
    before = everything(private_home.home)
    perdure.ok("hooks", "install")
    perdure.ok("hooks", "uninstall")
    assert everything(private_home.home) == before


def test_the_diff_is_what_installing_does(perdure: Perdure, home: str) -> None:
    before = everything(home)
    ran = perdure.ok("hooks", "diff")
    assert everything(home) == before
    assert f"--- {home}/.claude/settings.json\n+++ {home}/.claude/settings.json\n" in ran.out
    assert f"--- /dev/null\n+++ {home}/.config/opencode/plugin/perdure.js\n" in ran.out
    assert "-seen" not in ran.out
    changes = only_json(perdure.ok("hooks", "diff", "codex", "--json"))["changes"]
    assert [change["agent"] for change in changes] == ["codex"]
    added = [line for line in changes[0]["diff"].splitlines()[2:] if line.startswith("+")]
    perdure.ok("hooks", "install")
    assert [f"+{line}" for line in read(f"{home}/.codex/config.toml").splitlines() if "perdure-hook" in line] == added
    assert perdure.ok("hooks", "diff").out == ""


def test_a_record_of_a_hook_names_the_conversation(
    perdure: Perdure, home: str, private_home: PrivateHome, tmux: TmuxServer
) -> None:
    """From the settings file, through the shell the agent would run, to the list of panes."""
    write(f"{home}/.claude/settings.json", "{}")
    perdure.ok("hooks", "install", "claude")
    hooks = msgspec.json.decode(read(f"{home}/.claude/settings.json"))["hooks"]
    agent = FakeAgent(private_home, "one").start(tmux)

    def fire(event: str, conversation: str, **more: str) -> None:
        payload = {"session_id": conversation, "hook_event_name": event, **more}
        argv = ["sh", "-c", hooks[event][0]["hooks"][0]["command"]]
        environ = {**os.environ, "CLAUDE_PID": str(agent.pid), "TMUX": "/tmp/x,1,0", "TMUX_PANE": agent.pane}
        subprocess.run(argv, input=msgspec.json.encode(payload), env=environ, check=True)

    def shown() -> tuple[str, str, bool]:
        (pane,) = only_json(perdure.ok("ls", "--json"))["panes"]
        return pane["conversation"], pane["evidence"], pane["certain"]

    fire("SessionStart", CONVERSATION)
    assert shown() == (CONVERSATION, "hook", True)
    fire("UserPromptSubmit", CONVERSATION)
    fire("SessionEnd", CONVERSATION, reason="clear")
    fire("SessionStart", ANOTHER, source="clear")
    assert shown() == (ANOTHER, "hook", True)


def test_records_are_private_and_go_with_their_hooks(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    perdure.ok("hooks", "install", "qwen")
    settings = msgspec.json.decode(read(f"{home}/.qwen/settings.json"))
    for groups in settings["hooks"].values():
        line = groups[0]["hooks"][0]["command"]
        done = subprocess.run(["bash", "-c", line], input=b'{"session_id":"x"}', capture_output=True, check=True)
        assert (done.stdout, done.stderr) == (b"", b"")
    spool = os.path.join(private_home.state, "spool")
    names = os.listdir(f"{spool}/qwen")
    assert f"{os.getpid()}-SessionStart" in names
    for path in (private_home.state, spool, f"{spool}/qwen"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert {stat.S_IMODE(os.stat(f"{spool}/qwen/{name}").st_mode) for name in names} == {0o600}
    (qwen,) = only_json(perdure.ok("hooks", "status", "qwen", "--json"))["agents"]
    assert qwen["last_record"] is not None
    assert "s ago" in perdure.ok("hooks", "status", "qwen").out
    perdure.ok("hooks", "uninstall", "qwen")
    assert os.listdir(spool) == []


def test_another_state_directory_makes_hooks_outdated(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    before = everything(home)
    odd = {"PERDURE_STATE_DIR": os.path.join(private_home.root, "it's \"a\" 'state' 🦆")}
    assert results(perdure.ok("hooks", "install", "--json", env=odd)) == dict.fromkeys(AGENTS, "installed")
    expected = dict.fromkeys(AGENTS, "outdated") | {"codex": "installed"}
    assert states(perdure) == expected
    assert results(perdure.ok("hooks", "install", "--json"))["opencode"] == "installed"
    assert states(perdure) == dict.fromkeys(AGENTS, "installed")
    perdure.ok("hooks", "uninstall")
    assert everything(home) == before


def test_agents_that_are_not_there_are_skipped(perdure: Perdure, private_home: PrivateHome) -> None:
    os.mkdir(f"{private_home.home}/.claude")
    assert results(perdure.ok("hooks", "install", "--json")) == dict.fromkeys(AGENTS, "skipped") | {
        "claude": "installed"
    }
    assert f"gemini: skipped: there is no {private_home.home}/.gemini" in perdure.ok("hooks", "install").out
    assert states(perdure) == dict.fromkeys(AGENTS, "not there") | {"claude": "installed"}
    ran = perdure("hooks", "install", "gemini", "claude", "--json")
    assert ran.code == 3
    assert f"gemini has no directory {private_home.home}/.gemini" in sentence(ran)


def test_where_an_agent_is_told_to_live_its_hooks_go(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    other = os.path.join(private_home.root, "work")
    os.mkdir(other)
    ran = perdure.ok("hooks", "install", "claude", "--json", env={"CLAUDE_CONFIG_DIR": other})
    assert only_json(ran)["agents"][0]["files"] == [f"{other}/settings.json"]
    assert read(f"{home}/.claude/settings.json") == SETTINGS


def test_two_homes_of_one_agent_share_their_records(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    other = {"CLAUDE_CONFIG_DIR": os.path.join(private_home.root, "work")}
    os.mkdir(other["CLAUDE_CONFIG_DIR"])
    for env in ({}, other):
        perdure.ok("hooks", "install", "claude", env=env)
    perdure.ok("hooks", "uninstall", "claude", env=other)
    # Hooks that would do nothing are not said to be installed.
    assert states(perdure)["claude"] == "outdated"
    assert results(perdure.ok("hooks", "install", "claude", "--json")) == {"claude": "installed"}
    assert states(perdure)["claude"] == "installed"


def test_links_stay_links(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    kept = os.path.join(private_home.root, "dotfiles.json")
    os.replace(f"{home}/.claude/settings.json", kept)
    os.chmod(kept, 0o640)
    os.symlink(kept, f"{home}/.claude/settings.json")
    perdure.ok("hooks", "install", "claude")
    assert os.readlink(f"{home}/.claude/settings.json") == kept
    assert "perdure-hook" in read(kept)
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o640
    perdure.ok("hooks", "uninstall", "claude")
    assert read(kept) == SETTINGS
    assert os.path.islink(f"{home}/.claude/settings.json")


@pytest.mark.parametrize(
    ("agent", "path", "text", "why"),
    [
        ("claude", ".claude/settings.json", '{\n  "a": 1,\n}', "is not JSON: line 3, column 1"),
        ("claude", ".claude/settings.json", "", "is not JSON: line 1, column 1"),
        ("gemini", ".gemini/settings.json", '{"hooks": []}', "has a 'hooks' that is no object"),
        ("codex", ".codex/config.toml", "[tui]\n[tui]\n", "is not TOML: "),
        ("codex", ".codex/config.toml", "tui = {a = 1}\n", "cannot be edited"),
        ("codex", ".codex/config.toml", "[tui]\nterminal_title = []\n", "make it terminal_title = ["),
        ("hermes", ".hermes/config.yaml", "a: [\n", "is not YAML: line 2"),
        ("hermes", ".hermes/config.yaml", "hooks: x\n", "has a 'hooks' that is no object"),
        ("hermes", ".hermes/shell-hooks-allowlist.json", "{", "is not JSON: line 1, column 2"),
        ("opencode", ".config/opencode/plugin/perdure.js", "// mine\n", "is not of perdure's making"),
    ],
)
def test_what_cannot_be_edited_is_refused_and_left(
    perdure: Perdure, home: str, agent: str, path: str, text: str, why: str
) -> None:
    os.makedirs(os.path.dirname(f"{home}/{path}"), exist_ok=True)
    write(f"{home}/{path}", text)
    before = everything(home)
    ran = perdure("hooks", "install", agent, "--json")
    assert ran.code == 6
    assert f"perdure: {home}/{path} " in sentence(ran)
    assert why in sentence(ran)
    assert results(ran) == {agent: "refused"}
    assert everything(home) == before
    # The others are not kept from it.
    ran = perdure("hooks", "install", "--json")
    assert ran.code == 4
    assert results(ran) == dict.fromkeys(AGENTS, "installed") | {agent: "refused"}
    assert perdure("hooks", "diff", agent).code == 6


def test_bytes_that_are_no_text_are_refused(perdure: Perdure, home: str) -> None:
    with open(f"{home}/.claude/settings.json", "wb") as file:
        file.write(b'{"a": "\xff"}')
    ran = perdure("hooks", "install", "claude")
    assert ran.code == 6
    assert "is not UTF-8 at byte 7" in sentence(ran)
    assert states(perdure)["claude"] == "unreadable"


def test_what_is_no_file_is_refused(perdure: Perdure, home: str) -> None:
    os.unlink(f"{home}/.claude/settings.json")
    os.mkfifo(f"{home}/.claude/settings.json")
    ran = perdure("hooks", "install", "claude")
    assert ran.code == 6
    assert "is not a regular file" in sentence(ran)


def test_what_somebody_edited_is_theirs(perdure: Perdure, home: str) -> None:
    perdure.ok("hooks", "install")
    plugin, settings = f"{home}/.config/opencode/plugin/perdure.js", f"{home}/.claude/settings.json"
    write(plugin, read(plugin) + "// and mine\n")
    write(settings, read(settings).replace("umask 077", "umask 022", 1))
    assert {name: state for name, state in states(perdure).items() if state != "installed"} == {
        "claude": "edited",
        "opencode": "edited",
    }
    ran = perdure("hooks", "install", "opencode", "claude", "--json")
    assert ran.code == 6
    assert results(ran) == {"claude": "refused", "opencode": "refused"}
    assert f"{plugin} was edited; it was left as it is. Delete it or give it another name, and try again." in ran.err
    assert f"{settings} has entries of perdure's that were edited: hooks.Stop[0]. Delete them by hand" in ran.err
    assert "// and mine" in read(plugin)


def test_what_nobody_edited_goes_without_what_somebody_did(perdure: Perdure, home: str) -> None:
    perdure.ok("hooks", "install", "claude", "qwen")
    settings = f"{home}/.claude/settings.json"
    write(settings, read(settings).replace("umask 077", "umask 022", 1))
    ran = perdure("hooks", "uninstall", "claude", "qwen", "--json")
    assert ran.code == 4
    assert results(ran) == {"claude": "partly", "qwen": "removed"}
    assert "hooks.Stop[0]. Delete them by hand and try again." in sentence(ran)
    assert only_json(ran)["agents"][0]["files"] == [settings]
    assert read(settings).count("perdure-hook") == 1
    assert "umask 022" in read(settings)
    ran = perdure("hooks", "diff", "claude")
    assert ran.code == 4
    assert "hooks.Stop[0]" in sentence(ran)
    assert ran.out.count("\n+") > 5
    ran = perdure("hooks", "install", "claude")
    assert ran.code == 4
    assert f"Changed: {settings}." in sentence(ran)
    assert read(settings).count("perdure-hook") == 6


def test_a_title_without_our_mark_is_not_ours(perdure: Perdure, home: str) -> None:
    perdure.ok("hooks", "install", "codex")
    config = f"{home}/.codex/config.toml"
    write(config, "".join(line.partition(" # perdure-hook")[0] + "\n" for line in read(config).splitlines()))
    before = everything(home)
    assert states(perdure)["codex"] == "set by its owner"
    assert results(perdure.ok("hooks", "install", "codex", "--json")) == {"codex": "unchanged"}
    ran = perdure("hooks", "uninstall", "codex", "--json")
    assert ran.code == 6
    assert "has a terminal_title without perdure's mark" in sentence(ran)
    assert "Delete it by hand" in sentence(ran)
    assert everything(home) == before


def test_a_home_that_depends_on_where_the_agent_starts_is_refused(perdure: Perdure, home: str) -> None:
    relative = {"CLAUDE_CONFIG_DIR": ".claude"}
    before = everything(home)
    for action in ("install", "uninstall", "diff"):
        ran = perdure("hooks", action, "claude", env=relative, cwd=home)
        assert ran.code == 6
        assert "claude is told to keep its files in '.claude'" in sentence(ran)
    assert everything(home) == before
    ran = perdure("hooks", "install", "--json", env=relative, cwd=home)
    assert ran.code == 4
    assert results(ran) == dict.fromkeys(AGENTS, "installed") | {"claude": "refused"}
    (claude,) = only_json(perdure.ok("hooks", "status", "claude", "--json", env=relative))["agents"]
    assert (claude["state"], claude["home"]) == ("not there", ".claude")


def test_options_may_stand_anywhere(perdure: Perdure, home: str) -> None:
    for args in (["--json", "install", "claude", "qwen"], ["install", "--json", "claude", "qwen"]):
        assert set(results(perdure.ok("hooks", *args))) == {"claude", "qwen"}
    assert results(perdure.ok("hooks", "uninstall", "claude", "--json", "qwen")) == {
        "claude": "removed",
        "qwen": "removed",
    }


def test_the_diff_shows_no_secrets(perdure: Perdure, home: str) -> None:
    write(f"{home}/.claude/settings.json", '{\n  "env": {"ANTHROPIC_API_KEY": "sk-ant-api03-abcdefghijkl"}\n}\n')
    write(f"{home}/.hermes/config.yaml", "api_key: abcdefghijklmnop\n")
    for args in ([], ["--json"]):
        ran = perdure.ok("hooks", "diff", *args)
        assert "ANTHROPIC_API_KEY" in ran.out
        assert "abcdefghijkl" not in ran.out


def test_a_secret_does_not_hide_what_is_ours(perdure: Perdure, home: str) -> None:
    write(f"{home}/.claude/settings.json", '{\n"apiKey": "abcdefghijkl", "hooks": {}}\n')
    out = perdure.ok("hooks", "diff", "claude").out
    assert "abcdefghijkl" not in out
    assert out.count("perdure-hook/1") == 6


def test_records_that_are_not_ours_stay(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    perdure.ok("hooks", "install", "claude")
    notes = os.path.join(private_home.state, "spool", "claude", "notes.txt")
    write(notes, "mine")
    ran = perdure("hooks", "uninstall", "claude", "--json")
    assert ran.code == 1
    assert f"Changed: {home}/.claude/settings.json." in sentence(ran)
    assert read(notes) == "mine"
    assert read(f"{home}/.claude/settings.json") == SETTINGS


def test_other_changes_stay_when_hooks_go(perdure: Perdure, home: str) -> None:
    perdure.ok("hooks", "install")
    settings, config = f"{home}/.claude/settings.json", f"{home}/.codex/config.toml"
    write(settings, read(settings).replace('"opus"', '"haiku"'))
    write(config, read(config) + "\n[more]\nx = 1\n")
    perdure.ok("hooks", "uninstall")
    assert read(settings) == SETTINGS.replace("opus", "haiku")
    assert read(config) == FILES[".codex/config.toml"] + "\n[more]\nx = 1\n"


def test_agents_without_hooks_are_not_found(perdure: Perdure, home: str) -> None:
    before = everything(home)
    for name in ("goose", "", "nobody"):
        ran = perdure("hooks", "install", "claude", name, "--json")
        assert ran.code == 3
        assert f"no hooks for {name!r}, only for claude, codex," in sentence(ran)
        assert only_json(ran)["error"]["code"] == 3
    assert everything(home) == before
    for args in (["hooks"], ["hooks", "remove"]):
        assert perdure(*args).code == 2


def test_a_state_directory_that_is_no_text_is_refused(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    before = everything(home)
    ran = perdure("hooks", "install", env={"PERDURE_STATE_DIR": os.path.join(private_home.root, "caf\udce9")})
    assert ran.code == 6
    assert "cannot be named in a file" in sentence(ran)
    assert everything(home) == before


def test_a_directory_that_cannot_be_written_fails_alone(perdure: Perdure, home: str) -> None:
    os.rmdir(f"{home}/.copilot")
    os.symlink("/proc/self", f"{home}/.copilot")
    ran = perdure("hooks", "install", "copilot", "claude", "--json")
    assert ran.code == 4
    assert results(ran) == {"claude": "installed", "copilot": "failed"}
    assert "could not be written" in sentence(ran) or "cannot be made" in sentence(ran)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_refused(perdure: Perdure, home: str) -> None:
    os.chown(f"{home}/.claude", NOBODY, NOBODY)
    before = everything(home)
    ran = perdure("hooks", "install", "claude")
    assert ran.code == 6
    assert "belongs to another user" in sentence(ran)
    assert everything(home) == before


def test_a_save_lets_go_of_records_nobody_needs(perdure: Perdure, home: str, private_home: PrivateHome) -> None:
    perdure.ok("hooks", "install", "claude")
    spool = os.path.join(private_home.state, "spool", "claude")
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    for name in (f"{os.getpid()}-Stop", f"{ended.stdout.decode().strip()}-Stop"):
        write(os.path.join(spool, name), "{}")
        os.utime(os.path.join(spool, name), (1, 1))
    perdure.ok("save")
    assert os.listdir(spool) == [f"{os.getpid()}-Stop"]
