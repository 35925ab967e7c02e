from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.secrets import HIDDEN, is_secret_name, is_secret_value, mask_text, redact_argv, redact_text

SECRET_NAMES = [
    *("API_KEY OPENAI_API_KEY ANTHROPIC_AUTH_TOKEN GH_TOKEN AWS_SECRET_ACCESS_KEY DB_PASSWORD MYSQL_PWD".split()),
    *("PGPASSWORD SSHPASS NPM_AUTHTOKEN SECRETKEY apiKey accessToken api-key password pass token auth".split()),
    *("X-Api-Key Private-Token client_secret GITHUB_PAT SENTRY_DSN COOKIE passphrase bearer jwt".split()),
]
HARMLESS_NAMES = [
    *("PWD OLDPWD SSH_AUTH_SOCK XAUTHORITY KRB5CCNAME KEYMAP KEYTIMEOUT LESSKEY PATH HOME LANG TERM".split()),
    *("GIT_AUTHOR_NAME TOKENIZERS_PARALLELISM PASSIVE MONKEY COMPASS EDITOR model resume session-id".split()),
]
# Put together here, so that no scanner takes this file for a leak.
SECRET_VALUES = [
    "sk-" + "ant-api03-" + "aB3" * 10,
    "sk-" + "proj-" + "x9Y" * 12,
    "ghp_" + "a1B2" * 9,
    "github_" + "pat_" + "a1B2" * 9,
    "glpat-" + "a1B2" * 5,
    "xoxb-" + "1234567890-abc",
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "AIza" + "a1B2" * 9,
    "hf_" + "a1B2" * 6,
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0" + ".abc-_123",
    *(
        prefix + "a1B2" * 10
        for prefix in (
            *("gsk_ xai- pplx- csk- fw_ r8_ lin_api_ nvapi- ya29. GOCSPX- pypi-Ag".split()),
            *("dckr_pat_ hvs. tskey-auth- xapp-1- whsec_".split()),
        )
    ),
    *(prefix + "0a1b2c3d" * 4 for prefix in ("dop_v1_", "shpat_", "dapi")),
    "SG." + "a1B2" * 5 + "." + "a1B2" * 10,
    "AGE-SECRET-" + "KEY-1" + "A1B2" * 12,
    "123456789:" + "AA" + "a1B-_2c" * 4 + "a1B2c",
    "https://hooks." + "slack.com/services/" + "T0A1B2C3D/B0A1B2C3D/" + "a1B2" * 6,
    "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\nlQIGBF\n-----END PGP PRIVATE " + "KEY BLOCK-----",
    "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIE\n-----END RSA PRIVATE " + "KEY-----",
]
PROSE = [
    "the key is here, and the password is not",
    "explain the auth token flow in src/auth.py",
    "fix: token refresh is broken (see secrets.py)",
    "a basic understanding of bearer tokens, Basic Functionality first",
    "the bearer of bad news",
    "what does --verbose do? and -k?",
    "open https://example.com:8443/path?x=1 and mail me@example.com",
    "git commit -m 'rotate keys' --author you",
    "$HOME/.ssh/id_ed25519 100% done: 3 of 4",
    "résumé of the session — №42",
    'say "yes": "no" or "maybe"',
    "Steps: one; two; three",
    "the token: it is refreshed, and the key: it never is",
    "Token: expired. Password: required, Secret: undisclosed",
    "tokens: 12,345 (12.3k of 200k), max_tokens: 4096, token = 12345678",
    "def login(token: AccessToken, password: str, api_key: str | None = None) -> Session:",
    "api_key = os.environ['SERVICE']; token = get_token(1); password = $PASSWORD; secret: ${SECRET_1}",
    "token: /home/dev/.config/token1, key: ~/.ssh/id_ed25519, auth: https://example.com/a1b2c3d4",
    'key = "Enter", keys: "ctrl+x1"',
    "cache key: 3f2a9c1d4e5b, session key: 01890a5d-ac96-774b-bcce-b302099a8057",
    "conversation: 01890a5d-ac96-774b-bcce-b302099a8057, session = ses_4f1a2B3c4D5e6F7g8H",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904 and aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=",
    "set token limits and set -x first; pplx-70b-online-chat-with-tools, fw_update_configuration_manager",
    '{"inputTokens":2229,"outputTokens":12,"tokens":{"n1":1},"keys":["a1"],"token":null}',
    "if token == accessToken1: key::KeyBinding1",
]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_that_says_secret_is_one(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_name_that_only_sounds_like_one_is_not(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize("value", SECRET_VALUES)
def test_the_keys_of_known_services_are_recognised(value: str) -> None:
    assert is_secret_value(value)
    assert value not in redact_text(f"before {value} after")
    assert redact_text(f"before {value} after").startswith("before ")


@pytest.mark.parametrize("url", ["postgresql://dev:hunter2@db/x", "https://:hunter2@h", "redis://u:a@hunter2@h:1/0"])
def test_a_password_in_an_address_is_hidden_and_the_address_is_not(url: str) -> None:
    assert is_secret_value(url)
    shown = redact_text(f"psql {url}")
    assert "hunter2" not in shown
    assert shown.startswith(f"psql {url.partition('://')[0]}://")
    assert HIDDEN in shown


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_left_alone(text: str) -> None:
    assert redact_text(text) == text
    assert redact_argv(("agent", text)) == ("agent", text)


@given(st.text("abcdefghijklmnopqrstuvwxyzäé ,.!?()\n", max_size=80))
def test_text_of_plain_words_is_left_alone(text: str) -> None:
    assert redact_text(text) == text


#: Anything a key may be made of. Not with a dash in front: that is the next flag.
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=6, max_size=40).filter(
    lambda value: not value.startswith("-") and HIDDEN not in value
)
NAMES = st.sampled_from(SECRET_NAMES)
WORDS = st.lists(st.sampled_from(["run", "-v", "--verbose", "-e", "--name=x", "a=b", "-", "--", "it's", '"q'])).map(
    tuple
)


@given(WORDS, NAMES, VALUES, WORDS)
def test_no_secret_survives_in_arguments(
    before: tuple[str, ...], name: str, value: str, after: tuple[str, ...]
) -> None:
    for secret in ((f"--{name}", value), (f"--{name}={value}",), (f"{name}={value}",), (f"-{name}", value)):
        shown = redact_argv((*before, *secret, *after))
        assert len(shown) == len(before) + len(secret) + len(after)
        assert value not in shown
        assert f"={value}" not in "".join(shown)
        assert shown[len(before) + len(secret) :] == redact_argv(after)


PLAIN_WORDS = st.lists(st.sampled_from(["run", "-v", "--verbose", "-e", "--name=x", "a=b", "-", "two words"])).map(
    tuple
)


@given(PLAIN_WORDS, NAMES, VALUES.map(str.strip).filter(lambda value: len(value) >= 6), PLAIN_WORDS)
def test_no_secret_survives_in_a_command_line(
    before: tuple[str, ...], name: str, value: str, after: tuple[str, ...]
) -> None:
    """As a shell would read it, and as `sh -c` is given it."""
    for secret in ((f"--{name}", value), (f"--{name}={value}",)):
        line = shlex.join((*before, *secret, *after))
        for piece in (value, shlex.quote(value)):
            assert piece not in redact_text(line).replace(HIDDEN, "")
        assert value not in redact_argv(("sh", "-c", line))[2].replace(HIDDEN, "")


@pytest.mark.parametrize(
    "text",
    [
        "env -i TOKEN=hunter2 run",
        "docker run -e API_KEY=hunter2 image",
        "docker run --env=API_KEY=hunter2 image",
        "debug=1 TOKEN=hunter2 run",
        "export A=1; export API_KEY=hunter2; run",
        "run --verbose --token hunter2 --other",
        'run --token "two hunter2 words"',
        'run --token "a \\" hunter2"',
        "run --token 'a'\"'\"'hunter2'",
        "curl -H 'X-Api-Key: hunter2' https://example.com",
        'curl -H "Authorization: token hunter2" https://example.com',
        'curl -H "Authorization: Bearer hunter2"',
        'curl -H "Cookie: a=hunter2; b=hunter2"',
        "curl -H 'Authorization: Basic ZGV2Omh1bnRlcjI='",
        'agent --settings \'{"env": {"API_KEY": "hunter2", "x": 1}}\'',
        'agent --settings \'{"API_KEY": "a\\\\", "password" : "b \\" hunter2"}\'',
        '"agent --settings \'{\\"API_KEY\\":\\"b \\\\\\" hunter2\\"}\'"',
        '"agent --settings \'{\\"env\\": {\\"API_KEY\\":\\"hunter2\\"}}\'"',
        "config api_key: hunter2",
        'config api_key = "hunter2"',
        "aws_secret_access_key = hunter2/K7MDENG+bPxRfi",
        "use token: hunter2aB3",
        "log: Password: hunter2!",
        "print {'api_key': 'hunter2'}",
        "│   x-api-key: hunter2   │",
        "- authorization: Token hunter2",
        "yaml client_secret: 'two hunter2 words'",
        'cut apiKey: "hunter2-and-more',
        "curl BEARER hunter2aB3",
        "> Cookie: a=hunter2; b=hunter2",
        "fish set -gx OPENAI_API_KEY hunter2",
        "csh setenv OPENAI_API_KEY 'hunter2 too'",
        "tmux set-environment -g GH_TOKEN hunter2",
    ],
)
def test_a_secret_in_a_longer_text_is_found(text: str) -> None:
    for shown in (redact_text(text), redact_argv(("sh", "-c", text))[2]):
        assert "hunter2" not in shown
        assert "ZGV2Omh1bnRlcjI" not in shown
        assert shown.split()[0] == text.split()[0]


@pytest.mark.parametrize("word", ["X-Api-Key: hunter2", "Authorization: hunter2", '{"password": "hunter2"}'])
def test_headers_and_json_as_arguments(word: str) -> None:
    shown = redact_argv(("curl", "-H", word, "https://example.com"))
    assert "hunter2" not in shown[2]
    assert shown[2] != HIDDEN
    assert shown[3] == "https://example.com"


@given(st.one_of(st.sampled_from([*PROSE, *SECRET_VALUES]), st.text(max_size=60), VALUES.map("a --key {} b".format)))
def test_what_was_redacted_stays_as_it_is(text: str) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)


def test_harmless_arguments_come_back_exactly() -> None:
    argv = ("agent", "--model", "opus", "--resume", "c0ffee", "-p", "--key-bindings=vi", "", "PWD=/home/dev", "a=b=c")
    assert redact_argv(argv)[:6] == argv[:6]
    assert redact_argv(argv)[7:] == argv[7:]
    assert redact_argv(()) == ()


def test_a_flag_after_a_bare_secret_flag_is_a_flag() -> None:
    assert redact_argv(("run", "--ask-password", "--verbose")) == ("run", "--ask-password", "--verbose")


@pytest.mark.parametrize(
    "text", [*SECRET_VALUES, "a token: hunter2aB3 b", "run --token 'a hunter2' b", "x://u:hunter2@h"]
)
def test_a_mask_changes_only_the_characters_of_the_secret(text: str) -> None:
    for each in (text, f"one\n  {text}\ntwo"):
        masked = mask_text(each)
        assert len(masked) == len(each)
        assert all(new in (old, "*") for new, old in zip(masked, each, strict=True))
        assert "hunter2" not in masked
        assert text not in masked
        assert masked.count("\n") == each.count("\n")


@given(st.one_of(st.sampled_from(PROSE), st.text(max_size=80), VALUES.map("a --key {}\nb".format)))
def test_a_mask_keeps_every_position(text: str) -> None:
    masked = mask_text(text)
    assert len(masked) == len(text)
    assert all(new in (old, "*") for new, old in zip(masked, text, strict=True))


@pytest.mark.parametrize(
    "part",
    [
        *(
            "key: key:key: token: token=' api_key=\" password:' sk- gsk_ ya29. SG.a. 12345678: set\t-x a- eyJ".split(
                " "
            )
        ),
        *('key: \\"|set -x |set -x A |Cookie: a=b;|token: aB|-----BEGIN A |token: a-|password: a.'.split("|")),
    ],
)
def test_no_repetition_takes_long(part: str) -> None:
    """Anything quadratic would take minutes here; without it, all of them take a second or two."""
    redact_text(part * (400_000 // len(part)))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("mysql -u root -phunter2 shop", f"mysql -u root -p{HIDDEN} shop"),
        ("/usr/bin/mysqldump -P 3306 -phunter2 shop", f"/usr/bin/mysqldump -P 3306 -p{HIDDEN} shop"),
        ("sudo mariadb-admin -h db -pa=b ping", f"sudo mariadb-admin -h db -p{HIDDEN} ping"),
        ("sshpass -p hunter2 ssh -p 22 host", f"sshpass -p {HIDDEN} ssh -p 22 host"),
        ("sshpass -phunter2 ssh host", f"sshpass -p{HIDDEN} ssh host"),
    ],
)
def test_what_some_programs_take_behind_p_is_a_password(line: str, shown: str) -> None:
    assert redact_text(line) == shown
    assert redact_argv(tuple(line.split())) == tuple(shown.split())
    assert redact_argv(("sh", "-c", line))[2] == shown
    masked = mask_text(line)
    assert (len(masked), "hunter2" in masked) == (len(line), False)


@pytest.mark.parametrize(
    "line",
    [
        "mysql -u root -p shop",
        "mysql --protocol=tcp --port=3306 shop",
        "agent -p hello",
        "docker run -p80:80 mysql",
        "ssh -p22 host",
        "cat mysql.log | grep -path",
        "mkdir -p/tmp/mysql",
    ],
)
def test_and_with_others_it_is_none(line: str) -> None:
    assert redact_text(line) == line
    assert redact_argv(tuple(line.split())) == tuple(line.split())


def test_much_that_only_looks_like_it_takes_no_time() -> None:
    line = "mysql -" * 20_000
    assert redact_text(line) == line
