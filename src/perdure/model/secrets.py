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
    "bearer cookie cookies auth authorization dsn pat jwt".split()
)
# Named like secrets, but only ever paths, sockets or the working directory.
_HARMLESS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "KRB5CCNAME"})
_VALUES = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}"
    r"|\bgh[oprsu]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\bA(?:KI|SI)A[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{16,}|\bnpm_[A-Za-z0-9]{16,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|(?<=[Bb]earer )\S+|(?<=[Bb]asic )[A-Za-z0-9+/=]{12,}"
)
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")
# `--api-key VALUE`, `--token=VALUE`, `OPENAI_API_KEY=VALUE` inside running text.
# A word before a space is only a name when it starts with a dash: were any word one, it would swallow the flag after it.
_NAMED = re.compile(
    r"(?P<name>(?P<dash>--?)?[A-Za-z][\w-]*)(?P<gap>=|(?(dash)\s+(?!-)|(?!)))(?P<value>\"[^\"]*\"|'[^']*'|\S+)"
)


def is_secret_name(name: str) -> bool:
    """Say whether a variable or flag of this name holds a secret, as far as a name can tell."""
    if name in _HARMLESS:
        return False
    words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", name)
    return any(word.lower() in _WORDS for word in words)


@lru_cache(maxsize=4096)
def is_secret_value(value: str) -> bool:
    """Say whether a value has the shape of a key, a token or a URL with a password in it.

    Cached: the environments of a machine's shells are all but equal.
    """
    return bool(_VALUES.search(value) or _URL_PASSWORD.search(value))


def redact_text(text: str) -> str:
    """Return `text` with every secret replaced; text without one comes back unchanged."""
    text = _NAMED.sub(_hide_named, text)
    return _URL_PASSWORD.sub(rf"\1:{HIDDEN}@", _VALUES.sub(HIDDEN, text))


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments, as many as there were, with every secret replaced."""
    shown: list[str] = []
    hide_next = False
    for word in argv:
        name, equals, _ = word.partition("=")
        if hide_next and not word.startswith("-"):
            shown.append(HIDDEN)
        elif equals and is_secret_name(name.lstrip("-")):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(_URL_PASSWORD.sub(rf"\1:{HIDDEN}@", _VALUES.sub(HIDDEN, word)))
        hide_next = not equals and word.startswith("-") and is_secret_name(word.lstrip("-"))
    return tuple(shown)


def _hide_named(match: re.Match[str]) -> str:
    name, gap = match["name"], match["gap"]
    # A word before a space is only a flag when it starts with a dash: prose may say "the key is here".
    if not is_secret_name(name.lstrip("-")) or (gap != "=" and not name.startswith("-")):
        return match[0]
    return f"{name}{gap}{HIDDEN}"
