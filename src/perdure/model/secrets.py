"""What must not be shown: keys and tokens in arguments, environments and text.

Two judgements, both leaning to hide: by name (a variable or flag that is called like a secret) and by value
(the shapes that well-known services give their keys).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

#: What stands in place of a secret.
HIDDEN = "***"

_WORDS = frozenset(
    "key keys apikey token tokens secret secrets password passwd pass passphrase pwd credential credentials "
    "bearer cookie cookies auth authorization dsn pat jwt pw otp".split()
)
# Written as one word: PGPASSWORD, SSHPASS, AUTHTOKEN.
_ENDINGS = tuple("password passwd passphrase sshpass token secret apikey accesskey secretkey privatekey".split())
# Named like secrets, but only ever paths, sockets or the working directory.
_HARMLESS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "KRB5CCNAME"})
# After "basic" and a small "bearer" prose may follow: there, only what no word looks like is a secret.
_VALUES = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}"
    r"|\bgh[oprsu]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\bA(?:KI|SI)A[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{16,}"
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?<=Bearer )\S+|(?<=bearer )(?=\S*\d)\S{8,}"
    r"|(?<=[Bb]asic )(?=\S*[0-9=]|\S*[a-z][A-Z])[A-Za-z0-9+/=]{12,}"
)
# Up to the last @: a password may hold one.
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s]+@")
# `curl -u USER:PASSWORD`.
_LOGIN_FLAGS = frozenset({"-u", "-U", "--user", "--proxy-user"})
_LOGIN = re.compile(r"([^:/\s]+):(?!\d+$)(?!/).+")
# `--api-key VALUE`, `--token=VALUE`, `OPENAI_API_KEY=VALUE` inside running text, as far as the value.
# A word before a space is only a name when it starts with a dash: prose may say "the key is here".
_NAME = re.compile(r"(?<![\w-])(?P<name>(?P<dash>--?)?\w[\w-]*)(?P<gap>=|(?(dash)\s+(?!-)|(?!)))(?=\S)")
# No quantifier here is possessive, for the first Pythons that know them get them wrong; what is repeated is therefore
# made of parts of which only one fits at any place, so that nothing is tried twice.
# A word as a shell reads it, quoted and unquoted pieces without a space between them; the same from within a quote.
_PIECES = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])*"""
_WORD = re.compile(_PIECES + r"\S*", re.DOTALL)
_REST = {
    '"': re.compile(r'(?:[^"\\]|\\.)*"' + _PIECES, re.DOTALL),
    "'": re.compile(r"[^']*'" + _PIECES, re.DOTALL),
}
# `"api_key": "VALUE"`, and the same with its quotes escaped for a shell.
_JSON = re.compile(r"""(?P<name>"[\w.-]+")(?P<gap>\s*:\s*)(?P<value>"(?:[^"\\]|\\.)*")""", re.DOTALL)
_ESCAPED_JSON = re.compile(
    r"""(?P<name>\\"[\w.-]+\\")(?P<gap>\s*:\s*)(?P<value>\\"(?:[^"\\]|\\\\\\"|\\(?!"|\\\\"))*\\")""", re.DOTALL
)
# `X-Api-Key: VALUE`, `Authorization: SCHEME VALUE`, `Cookie: a=VALUE` as a whole argument.
_HEADER = re.compile(
    r"""(?:^|(?<=["']))(?P<name>[A-Za-z]\w*(?:-\w+)+|Authorization|Cookie)(?P<gap>:[ \t]*)"""
    r"""(?P<value>(?:[A-Za-z]+[ ])?[^\s"']+|[^"'\n]*=[^"'\n]*)(?=["']|$)"""
)


def is_secret_name(name: str) -> bool:
    """Say whether a variable or flag of this name holds a secret, as far as a name can tell."""
    if name in _HARMLESS:
        return False
    words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", name)
    return any(word.lower() in _WORDS or word.lower().endswith(_ENDINGS) for word in words)


@lru_cache(maxsize=4096)
def is_secret_value(value: str) -> bool:
    """Say whether a value has the shape of a key, a token or a URL with a password in it.

    Cached: the environments of a machine's shells are all but equal.
    """
    return bool(_VALUES.search(value) or _URL_PASSWORD.search(value))


def redact_text(text: str) -> str:
    """Return `text` with every secret replaced; text without one comes back unchanged."""
    for pattern in (_JSON, _ESCAPED_JSON, _HEADER):
        text = pattern.sub(_hide_value, text)
    text = _hide_pairs(text)
    return _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", _VALUES.sub(HIDDEN, text))


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments, as many as there were, with every secret replaced."""
    shown: list[str] = []
    hide_next = False
    for word in argv:
        name, equals, _ = word.partition("=")
        # A password may begin with a dash; what begins with two is the next option.
        if hide_next and not word.startswith("--"):
            shown.append(HIDDEN)
        elif shown and argv[len(shown) - 1] in _LOGIN_FLAGS and (login := _LOGIN.fullmatch(word)):
            shown.append(f"{login[1]}:{HIDDEN}")
        elif equals and not re.search(r"\s", name) and is_secret_name(name.lstrip("-")):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(redact_text(word))
        hide_next = not equals and word.startswith("-") and is_secret_name(word.lstrip("-"))
    return tuple(shown)


def _hide_value(match: re.Match[str]) -> str:
    if not is_secret_name(match["name"].strip('\\"')):
        return match[0]
    return f"{match['name']}{match['gap']}{HIDDEN}"


def _hide_pairs(text: str) -> str:
    """Hide the values of secret flags and variables. What follows a harmless flag may be one: `-e API_KEY=VALUE`."""
    shown: list[str] = []
    done = at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        if is_secret_name(found["name"].lstrip("-")):
            end, quote = _value_end(text, found)
            shown += [text[done:at], HIDDEN, quote]
            done = at = end
    return "".join([*shown, text[done:]])


def _value_end(text: str, found: re.Match[str]) -> tuple[int, str]:
    """Return where a value ends, and the quote to put there when it began before the name: `'--token=two words'`."""
    before = text[found.start() - 1 : found.start()]
    if found["gap"] == "=" and (rest := _REST.get(before)) and (inside := rest.match(text, found.end())):
        return inside.end(), before
    word = _WORD.match(text, found.end())
    return (word.end() if word else len(text)), ""
