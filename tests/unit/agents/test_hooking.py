from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agents import hook_facts
from perdure.agents.hooking import MARK, Format, HookFile, record_line
from perdure.hooks.merge import install
from tests.conftest import PrivateHome

#: Names a directory may have; the last ones are what quoting goes wrong on.
directory_names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=30).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 200
) | st.sampled_from(
    [
        "it's",
        'a "b"',
        "$HOME",
        "`id`",
        "a\\b",
        "a\nb",
        " x ",
        "-rf",
        "日本 🦆",
        "'; exit 1; '",
        "%s",
        "*",
        "#",
        "$(id)",
        "a\\'b",
    ]
)
SHELLS = [shell for shell in ("sh", "bash", "dash", "ksh", "zsh", "busybox") if shutil.which(shell)]


def run(line: str, payload: bytes = b"{}", shell: str = "sh", **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line as agents do, and see that it keeps quiet."""
    argv = [shell, *(["sh"] if shell == "busybox" else []), "-c", line]
    done = subprocess.run(
        argv, input=payload, capture_output=True, env={"PATH": os.environ["PATH"], **environ}, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return done


def records(directory: str) -> dict[str, bytes]:
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = file.read()
    return found


@pytest.fixture
def spool(private_home: PrivateHome) -> str:
    path = os.path.join(private_home.root, "spool")
    os.mkdir(path)
    return path


@pytest.mark.parametrize("shell", SHELLS)
def test_what_comes_in_is_kept_under_the_process_and_the_event(spool: str, shell: str) -> None:
    payload = bytes(range(256)) * 1000
    run(record_line(spool, "Stop"), payload, shell)
    assert records(spool) == {f"{os.getpid()}-Stop": payload}
    run(record_line(spool, "Stop"), b"later", shell)
    run(record_line(spool, "Start", pid="${AGENT_PID:-$PPID}"), b"other", shell, AGENT_PID="4711")
    assert records(spool) == {f"{os.getpid()}-Stop": b"later", "4711-Start": b"other"}
    assert {stat.S_IMODE(os.stat(os.path.join(spool, name)).st_mode) for name in os.listdir(spool)} == {0o600}


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"TMUX": "/tmp/tmux-0/default,4242,7", "TMUX_PANE": "%3"}, "Stop.4242.3"),
        ({"TMUX": "/tmp/a,b c/x,4242,0", "TMUX_PANE": "%12"}, "Stop.4242.12"),
        ({"TMUX": "", "TMUX_PANE": ""}, "Stop"),
        ({"TMUX_PANE": "%1"}, "Stop..1"),
        ({"TMUX": "/tmp/x", "TMUX_PANE": "%1"}, "Stop"),
        ({"TMUX": "a,1,2", "TMUX_PANE": "../../x"}, "Stop"),
    ],
)
def test_the_pane_is_in_the_name(spool: str, environ: Mapping[str, str], name: str) -> None:
    run(record_line(spool, "Stop"), b"{}", "sh", **environ)
    assert list(records(spool)) == [f"{os.getpid()}-{name}"]


def test_without_its_directory_it_does_nothing(spool: str) -> None:
    run(record_line(os.path.join(spool, "gone"), "Stop"), b"x" * 1_000_000)
    assert os.listdir(spool) == []


def test_what_cannot_be_kept_is_dropped(spool: str) -> None:
    """Here because a directory stands where the half-written record would."""
    line = record_line(spool, "Stop").replace(".$$", ".half")
    os.mkdir(os.path.join(spool, f".{os.getpid()}-Stop.half"))
    run(line)
    assert os.listdir(spool) == [f".{os.getpid()}-Stop.half"]


def feed(line: str, shell: str, **environ: str) -> None:
    """Run a line with more input than a pipe holds; fails the test when it ends before it has read all of it."""
    argv = [shell, *(["sh"] if shell == "busybox" else []), "-c", line]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env={"PATH": os.environ["PATH"], **environ}) as process:
        assert process.stdin is not None
        process.stdin.write(b"x" * 1_000_000)
        process.stdin.close()
    assert process.returncode == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_input_that_cannot_be_kept_is_read_all_the_same(spool: str, shell: str) -> None:
    """An agent that gets EPIPE may die of it."""
    feed(record_line(spool, "Stop").replace(".$$", "/no/such"), shell)
    feed(record_line(spool, "Stop"), shell, TMUX="a,1,0", TMUX_PANE="x" * 400)
    # As on a full disk, writing fails after the file could be opened.
    feed(f"ulimit -f 1; {record_line(spool, 'Stop')}", shell)
    assert os.listdir(spool) == []


def test_a_pid_that_is_none_is_not_believed(spool: str) -> None:
    for pid in ("a/b", "../../x", "1 2;3", ""):
        run(record_line(spool, "Stop", pid="${AGENT_PID-}"), b"{}", "sh", AGENT_PID=pid)
        assert list(records(spool)) == [f"{os.getpid()}-Stop"]
        os.unlink(os.path.join(spool, f"{os.getpid()}-Stop"))


@pytest.mark.skipif("bash" not in SHELLS, reason="only bash takes its options from the environment")
@pytest.mark.parametrize("options", ["nounset", "xtrace", "errexit", "nounset:xtrace:errexit:noclobber"])
def test_options_of_somebodys_shell_do_not_matter(spool: str, options: str) -> None:
    run(record_line(spool, "Stop", pid="${AGENT_PID:-$PPID}"), b"{}", "bash", SHELLOPTS=options)
    assert list(records(spool)) == [f"{os.getpid()}-Stop"]


def test_without_a_standard_input_it_still_succeeds(spool: str) -> None:
    argv = ["sh", "-c", 'exec sh -c "$1" <&-', "sh", record_line(spool, "Stop")]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def commands(file: HookFile) -> Iterator[list[str]]:
    """Yield what an agent would start for every hook in a file, read as it reads it."""
    text = install(file, None)
    if file.format is Format.YAML:
        import yaml

        for event in yaml.safe_load(text)["hooks"].values():
            yield shlex.split(os.path.expanduser(event[0]["command"]))
    elif file.format is Format.JSON or file.path.endswith(".json"):
        for groups in msgspec.json.decode(text).get("hooks", {}).values():
            hook = groups[0].get("hooks", groups)[0]
            yield ["sh", "-c", hook["command"]] if "command" in hook else ["bash", "-c", hook["bash"]]


@settings(max_examples=12)
@given(directory_names)
def test_any_state_directory_can_be_named_to_any_agent(name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="pd-", dir="/tmp") as root:
        spool = os.path.join(root, name)
        os.mkdir(spool)
        expected = set()
        for facts in hook_facts().values():
            for file in facts.files(spool):
                for argv in commands(file):
                    done = subprocess.run(
                        argv, input=b"{}", capture_output=True, env={"PATH": os.environ["PATH"]}, check=False
                    )
                    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), argv
                expected |= {entry.path[-1] for entry in file.entries if len(entry.path) == 2}
        kept = {name.partition("-")[2] for name in records(spool)}
        assert kept == expected | {"SessionStart", "UserPromptSubmit", "Notification", "Stop", "SessionEnd"}


def test_nothing_is_asked_for_that_carries_whole_files() -> None:
    for facts in hook_facts().values():
        for file in facts.files("/spool"):
            text = msgspec.json.encode(file).decode()
            assert not [
                word for word in ("ToolUse", "BeforeTool", "AfterTool", "tool_call", "llm_call") if word in text
            ]


def test_everything_is_marked() -> None:
    for agent, facts in hook_facts().items():
        for file in facts.files("/spool"):
            values = [msgspec.json.encode(entry.value).decode() for entry in file.entries] or [file.text]
            assert file.setting or all(MARK in value for value in values), agent
            assert not os.path.isabs(file.path)


def test_agents_are_known_by_the_names_others_know_them_by() -> None:
    assert list(hook_facts()) == sorted(hook_facts())
    assert set(hook_facts()) == {"claude", "codex", "copilot", "gemini", "hermes", "opencode", "qwen"}


@pytest.mark.parametrize(
    ("agent", "environ", "home"),
    [
        ("claude", {}, "/home/dev/.claude"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/x/work"}, "/x/work"),
        ("claude", {"CLAUDE_CONFIG_DIR": "other/"}, "other"),
        ("claude", {"CLAUDE_CONFIG_DIR": ""}, "/home/dev/.claude"),
        ("codex", {"CODEX_HOME": "/x"}, "/x"),
        ("copilot", {"COPILOT_HOME": "/x"}, "/x"),
        ("gemini", {"GEMINI_CLI_HOME": "/x"}, "/x/.gemini"),
        ("hermes", {"HERMES_HOME": "/x"}, "/x"),
        ("opencode", {}, "/home/dev/.config/opencode"),
        ("opencode", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode"),
        ("opencode", {"XDG_CONFIG_HOME": "/x", "OPENCODE_CONFIG_DIR": "/y"}, "/y"),
        ("qwen", {"QWEN_HOME": "/x"}, "/x"),
    ],
)
def test_where_an_agent_keeps_its_configuration(agent: str, environ: dict[str, str], home: str) -> None:
    assert hook_facts()[agent].home(environ, "/home/dev") == home
