from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import ConfigError
from perdure.host.config import parse_config, read_config
from perdure.host.unix_socket import bound
from perdure.model.config import ApiConfig, Config, RestoreConfig
from tests.unit.host.configs import read


def test_without_a_file_the_defaults_hold() -> None:
    assert read_config("/nowhere/config.toml", home="/home/dev") == read("") == Config()


def test_everything_that_may_be_set() -> None:
    config = read(
        """
        host = "box"
        zone = "Europe/Berlin"
        roster = "/etc/people"
        [tmux]
        sockets = ["/run/tmux/work"]
        timeout_seconds = 2
        [scrollback]
        enabled = false
        lines = 10
        exclude_sessions = ["private"]
        exclude_programs = ["pass"]
        [retention]
        everything_hours = 0
        hourly_days = 1
        daily_days = 36525
        events_days = 1
        runs_days = 2
        [export]
        on_save = true
        tmux_state = ["/tmp/x.json"]
        tmux_persist_dir = "/tmp/p"
        [restore]
        programs = ["vim", "k9s"]
        max_parallel = 64
        environment = ["OPENAI_API_KEY"]
        memory_pressure = 0
        verify_seconds = 5
        tmux_persist_flags = ["--model", "opus"]
        [thoughts]
        source = "model"
        endpoint = "http://localhost:8080/v1"
        api = "anthropic"
        model = "small"
        key_variable = "MY_KEY"
        max_calls_per_hour = 10
        max_cost_per_day = 0.5
        price_in = 1
        price_out = 5
        command = ["thinker", "--fast"]
        cadence = [5, 600, 1800]
        """
    )
    assert config.thoughts.cadence == (5.0, 600.0, 1800.0)
    assert (config.thoughts.source, config.thoughts.command) == ("model", ("thinker", "--fast"))
    assert (config.host, config.zone, config.tmux.timeout_seconds) == ("box", "Europe/Berlin", 2.0)
    assert config.scrollback.exclude_programs == ("pass",)
    assert config.retention.daily_days == 36525
    assert (config.retention.events_days, config.retention.runs_days) == (1, 2)
    assert config.export.on_save
    assert config.restore == RestoreConfig(
        programs=("vim", "k9s"),
        max_parallel=64,
        environment=("OPENAI_API_KEY",),
        memory_pressure=0.0,
        verify_seconds=5.0,
        tmux_persist_flags=("--model", "opus"),
    )


def test_no_secret_and_no_dangerous_flag_is_given_back_unless_somebody_says_so() -> None:
    restore = Config().restore
    assert (restore.environment, restore.tmux_persist_flags) == ((), ())
    assert {"vim", "less", "tail", "top", "htop", "watch", "man"} <= set(restore.programs)
    assert not {"ssh", "python", "make", "sudo"} & set(restore.programs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("host = ", "not TOML"),
        ("[scrollback\n", "not TOML"),
        (b'host = "caf\xe9"', "not UTF-8 (byte 11)"),
        ("hots = 'x'", "hots"),
        ("[scrollback]\nlnes = 1", "lnes"),
        ("[scrollback]\nlines = 'many'", "$.scrollback.lines"),
        ("[scrollback]\nlines = 0", "scrollback.lines must be from 1 to 1000000"),
        ("[scrollback]\nlines = 1000001", "scrollback.lines must be"),
        ("[scrollback]\nlines = 99999999999999999999", "scrollback.lines"),
        ("[scrollback]\nenabled = 1", "$.scrollback.enabled"),
        ("[scrollback]\nexclude_sessions = 'x'", "exclude_sessions"),
        ("[tmux]\ntimeout_seconds = 0", "tmux.timeout_seconds must be"),
        ("[tmux]\ntimeout_seconds = nan", "tmux.timeout_seconds must be"),
        ("[tmux]\ntimeout_seconds = inf", "tmux.timeout_seconds must be"),
        ("[retention]\ndaily_days = -1", "retention must be from 0 to 100 years"),
        ("zone = 'Mars/Olympus'", "no time zone 'Mars/Olympus'"),
        ("zone = '../../etc/passwd'", "no time zone"),
        ("zone = ''", "no time zone ''"),
        ('zone = "a\\u0000b"', "no time zone"),
        ("zone = 'Europe'", "no time zone"),
        ("host = 1979-05-27", "$.host"),
        ("[restore]\nprograms = 'vim'", "$.restore.programs"),
        ("[restore]\nprograms = ['/usr/bin/vim']", "restore.programs has '/usr/bin/vim'"),
        ("[restore]\nprograms = ['']", "restore.programs has ''"),
        ('[restore]\nprograms = ["a\\u0000"]', "restore.programs has 'a\\x00'"),
        ("[restore]\nmax_parallel = 0", "restore.max_parallel must be from 1 to 64"),
        ("[restore]\nmax_parallel = 65", "restore.max_parallel must be"),
        ("[restore]\nmax_parallel = 1.5", "$.restore.max_parallel"),
        ("[restore]\nenvironment = ['A-B']", "restore.environment has 'A-B', which is no variable's name"),
        ("[restore]\nenvironment = ['']", "restore.environment has ''"),
        ("[restore]\nenvironment = ['1A']", "restore.environment has '1A'"),
        ("[restore]\nenvironment = ['SCHLÜSSEL']", "restore.environment has 'SCHLÜSSEL'"),
        ("[restore]\nenvironment = ['TMUX_PANE']", "restore.environment has TMUX_PANE, which belongs to the pane"),
        ("[restore]\nmemory_pressure = -1", "restore.memory_pressure must be from 0 to 100"),
        ("[restore]\nmemory_pressure = 100.1", "restore.memory_pressure must be"),
        ("[restore]\nmemory_pressure = nan", "restore.memory_pressure must be"),
        ("[restore]\nverify_seconds = 0", "restore.verify_seconds must be from 1 to 3600"),
        ("[restore]\nverify_seconds = inf", "restore.verify_seconds must be"),
        ("[restore]\ntmux_persist_flags = ['opus']", "restore.tmux_persist_flags begins with 'opus'"),
        ("[restore]\ntmux_persist_flags = ['--a', '']", "restore.tmux_persist_flags has a flag that is empty"),
        ("[restore]\nlazy = true", "lazy"),
        ("[thoughts]\nsource = 'magic'", "thoughts.source is 'magic', and must be derived, model or command"),
        ("[thoughts]\nsource = 'command'", "thoughts.command must be given"),
        ("[thoughts]\ncommand = ['']", "thoughts.command begins with an empty argument"),
        ('[thoughts]\ncommand = ["a\\u0000"]', "thoughts.command has an argument that cannot be one"),
        ("[thoughts]\nendpoint = 'ftp://x'", "thoughts.endpoint must be an address"),
        ("[thoughts]\nendpoint = 'https://u:p@x/v1'", "thoughts.endpoint must be an address"),
        ("[thoughts]\nendpoint = 'https://x/v1?key=1'", "thoughts.endpoint must be an address"),
        ("[thoughts]\nendpoint = 'http://x/v1'\nkey_variable = 'K'", "thoughts.endpoint must begin with https://"),
        ("[thoughts]\napi = 'soap'", "thoughts.api is 'soap'"),
        ("[thoughts]\nsource = 'model'\nendpoint = 'https://x/v1'", "thoughts.model must be named"),
        ("[thoughts]\nkey_variable = 'sk-abc'", "thoughts.key_variable is no variable's name"),
        ("[thoughts]\nmax_calls_per_hour = 0", "thoughts.max_calls_per_hour must be from 1 to 3600"),
        ("[thoughts]\nmax_cost_per_day = -1", "thoughts.max_cost_per_day must be from 0"),
        ("[thoughts]\nprice_in = nan", "thoughts.price_in must be from 0"),
        ("[thoughts]\ncadence = [1, 45, 120]", "thoughts.cadence begins with the shortest"),
        ("[thoughts]\ncadence = [15, 5, 120]", "thoughts.cadence must not fall"),
        ("[thoughts]\ncadence = [15, 45]", "$.thoughts.cadence"),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_each_mistake_gets_one_sentence(text: str | bytes, said: str) -> None:
    with pytest.raises(ConfigError) as failed:
        read(text)
    message = failed.value.message
    assert said in message
    assert message.startswith(f"The configuration {os.environ['HOME']}/config.toml ")
    assert message.endswith(".")
    assert "\n" not in message


def test_nobody_is_asked_for_thoughts_unless_somebody_says_so() -> None:
    thoughts = Config().thoughts
    assert (thoughts.enabled, thoughts.source, thoughts.endpoint, thoughts.command) == (True, "derived", "", ())


def test_a_key_that_was_put_where_its_name_belongs_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as failed:
        read("[thoughts]\nkey_variable = 'sk-ant-secret-0123456789'")
    assert "secret" not in failed.value.message


def test_every_mistake_about_restoring_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as failed:
        read("[restore]\nmax_parallel = 0\nverify_seconds = 0\nenvironment = ['TERM', '']")
    said = failed.value.message.splitlines()
    assert [line.partition("restore.")[2].split()[0] for line in said] == [
        "max_parallel",
        "environment",
        "environment",
        "verify_seconds",
    ]
    assert all(line.startswith("The configuration ") and line.endswith(".") for line in said)


def test_a_file_that_cannot_be_read(private_home: object) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_config(os.environ["HOME"], home="/home/dev")


@pytest.mark.parametrize("name", ["fifo", "socket", "/dev/zero"])
def test_what_is_no_file_is_not_waited_for(private_home: object, name: str) -> None:
    path = os.path.join(os.environ["HOME"], name)
    if name == "fifo":
        os.mkfifo(path)
    elif name == "socket":
        bound(path).close()
    with pytest.raises(ConfigError, match=f"The configuration {path} (is not a regular file|cannot be read)"):
        read_config(path, home="/home/dev", required=True)


def test_nothing_may_be_named_where_nothing_is_to_hold() -> None:
    assert read_config("/dev/null", home="/home/dev", required=True) == Config()


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_no_content_at_all_is_anything_but_a_mistake_or_a_configuration(raw: bytes) -> None:
    message = ""
    try:
        assert isinstance(parse_config(raw, "x"), Config)
    except ConfigError as error:
        message = error.message
    assert "\n" not in message


def test_a_file_that_was_named_has_to_be_there() -> None:
    with pytest.raises(ConfigError, match="There is no configuration"):
        read_config("/nowhere/config.toml", home="/home/dev", required=True)


def test_a_tilde_is_the_users_home() -> None:
    config = read("[tmux]\nsockets = ['~/sock']\n[export]\ntmux_state = ['~/a.json', '/b.json']")
    assert config.tmux.sockets == ("/home/dev/sock",)
    assert config.export.tmux_state == ("/home/dev/a.json", "/b.json")


@pytest.mark.parametrize("text", ["roster = 'x'", "[tmux]\nsockets = ['']", "[export]\ntmux_persist_dir = '~x'"])
def test_a_path_that_depends_on_where_we_are_is_a_mistake(text: str) -> None:
    with pytest.raises(ConfigError, match="must be an absolute path"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "daily_days = 1000000",
        "everything_hours = 99999999999",
        "hourly_days = -1",
        "events_days = -1",
        "runs_days = 99999",
    ],
)
def test_retention_stays_within_the_calendar(text: str) -> None:
    with pytest.raises(ConfigError, match="retention must be"):
        read(f"[retention]\n{text}")


def test_where_it_is_asked_over_http_may_be_set() -> None:
    config = read(
        """
        [api]
        enabled = false
        host = "::1"
        port = 0
        unix_socket = "~/run/http.sock"
        optional = true
        hosts = ["box.example"]
        tls_cert = "~/cert.pem"
        tls_key = "/etc/key.pem"
        insecure_bind = true
        """
    )
    assert config.api == ApiConfig(
        enabled=False,
        host="::1",
        port=0,
        unix_socket="/home/dev/run/http.sock",
        optional=True,
        hosts=("box.example",),
        tls_cert="/home/dev/cert.pem",
        tls_key="/etc/key.pem",
        insecure_bind=True,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = -1", "api.port"),
        ("port = 65536", "api.port"),
        ('host = ""', "api.host"),
        ('hosts = ["a b"]', "api.hosts"),
        ('hosts = ["http://box"]', "api.hosts"),
        ('tls_cert = "/etc/cert.pem"', "together"),
        ('attach = "sometimes"', "must be auto, always or never"),
        ('unix_socket = "http.sock"', "api.unix_socket"),
        ("prot = 1", "prot"),
    ],
)
def test_where_nobody_can_be_asked_over_http_is_a_mistake(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(f"[api]\n{text}\n")
