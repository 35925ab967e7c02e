"""What must not be shown: keys and tokens in arguments, environments and text.

Two judgements, both leaning to hide: by name (a variable or flag that is called like a secret) and by value
(the shapes that well-known services give their keys).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

#: What stands in place of a secret.
HIDDEN = "***"
#: How many lists and mappings within each other are gone into: whoever asks may have come a long way already.
_LEVELS = 110

_WORDS = frozenset(
    "key keys apikey token tokens secret secrets password passwd pass passphrase pwd credential credentials "
    "bearer cookie cookies auth authorization dsn pat jwt pw otp".split()
)
# Written as one word: PGPASSWORD, SSHPASS, AUTHTOKEN.
_ENDINGS = tuple("password passwd passphrase sshpass token secret apikey accesskey secretkey privatekey".split())
# Named like secrets, but only ever paths, sockets or the working directory.
_HARMLESS = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK", "XAUTHORITY", "KRB5CCNAME"})
# Before a colon, `token: VALUE` names a secret; more than one word, `api_key: VALUE`, is hardly ever prose.
_PLAIN = frozenset("token secret password passwd passphrase apikey bearer jwt credential credentials".split())
# Rarely needed, so left to `re` to compile when it is.
_STRONG = (
    r"(?i).*(?:api|access|secret|private|auth|signing|encryption|master|deploy|service|account)[-_]?key"
    r"|\w.*(?:token|secret|password|passwd|passphrase|sshpass|pwd|jwt|credentials?)"
)
# After "basic" and a small "bearer" prose may follow: there, only what no word looks like is a secret.
# Nearly every position in a text is within a word: that is asked once, before any of the beginnings is tried.
_VALUES = re.compile(
    r"\b(?:"
    r"(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}"
    r"|gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}"
    r"|A(?:KI|SI)A[A-Z0-9]{16}\b|AIza[\w-]{30,}|(?:hf|npm)_[A-Za-z0-9]{16,}"
    r"|(?:gsk_|xai-|pplx-|csk-|fw_|r8_|lin_api_)[A-Za-z0-9]{20,}|d(?:o[opr]_v1_|api)[0-9a-f]{32,}"
    r"|(?:nvapi-|ya29\.|GOCSPX-|pypi-Ag|dckr_pat_|hv[bs]\.|tskey-|xapp-\d-)[\w-]{16,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}|whsec_[A-Za-z0-9+/=]{16,}|shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}"
    r"|AGE-SECRET-KEY-[A-Z0-9-]{20,}|pdr_[\w-]{40,}|\d{8,10}:[\w-]{35}(?![\w-])"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{16,}"
    r"|(?<!-)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r")|-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)"
    r"|(?<=Bearer )\S+|(?<=bearer )(?=\S*\d)\S{8,}|(?<=BEARER )(?=\S*\d)\S{8,}"
    r"|(?<=[Bb]asic )(?=\S*[0-9=]|\S*[a-z][A-Z])[A-Za-z0-9+/=]{12,}"
)
# Up to the last @: a password may hold one.
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s]+@")
# `curl -u USER:PASSWORD`.
_LOGIN_FLAGS = frozenset({"-u", "-U", "--user", "--proxy-user"})
_LOGIN = re.compile(r"([^:/\s]+):(?!\d+$)(?!/).+")
# `mysql -pPASSWORD`, `sshpass -p PASSWORD`: what `-p` says is a secret with these programs, with others a port or a path.
_P_PROGRAM = re.compile(r"(?:mysql|mariadb)[\w-]*|sshpass")
_P_FLAG = re.compile(
    r"(?<![\w.-])(?:(?:mysql|mariadb)[\w-]*(?=\s)[^\n|;&]{0,400}?\s-p|sshpass\s[^\n|;&]{0,400}?(?<=\s)-p[ \t]*)(?=[^\s-])"
)
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
_COOKIES = re.compile(r"""(?<=Cookie: )[^\s=;"']+=[^\s;"']*(?:;[ ]?[^\s=;"']+=[^\s;"']*)*""")
# `api_key: VALUE`, `token = VALUE`, `'password': 'VALUE'` anywhere in a text, as far as the value.
_NAMED = re.compile(
    r"""(?<![\w-])(?P<name>[A-Za-z_][\w-]*)(?P<quote>["']?)[ \t]{0,40}(?::=|=>|[:=])(?![:=~]|//)[ \t]{0,40}(?=\S)"""
)
_SCHEME = r"(?i)(?:bearer|basic|digest|token|apikey) +(?=\S)"
_QUOTED = {'"': re.compile(r'"(?:[^"\\\n]|\\.)*"'), "'": re.compile(r"'[^'\n]*'")}
# No more is looked at to judge a value: in `key:key:key:…` every name has the whole rest for its value.
_BARE = re.compile(r"\S{1,128}")
# After a name in quotes: `"tokens":12,"model":…`.
_BARE_JSON = re.compile(r"[^\s,}\]]{1,128}")
_BARE_REST = re.compile(r"\S*")
# What follows such a name and is none: a number, an address, a path, a variable, a call, a word of letters only.
_ORDINARY = (
    r"[-+~]?[\d.,:/%_]+[A-Za-z%]{0,2}|[a-z][a-z0-9+.-]*://.*|(?:~|\.\.?)/.*"
    r"|/(?:home|root|Users|etc|usr|var|tmp|run|opt|mnt|srv|dev|proc|bin|lib)\b.*"
    r"|\$[A-Za-z_{(].*|<.*|\{.*|%\w+%|[A-Za-z_]\w*(?:\.\w+)*[(\[].*"
    r"|_?[A-Z]?[a-z]+(?:[A-Z][a-z]{2,}|[._/-][A-Z]?[a-z]+)*"
)
# A UUID or a digest: an id as often as a key.
_ID = r"[0-9a-f]{7,64}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_UNLIKE_WORDS = r"\d|[a-z][A-Z]|[A-Z]{2}[a-z]"
# `set -gx NAME VALUE`, `setenv NAME VALUE`, `set-environment -g NAME VALUE`.
_SET = re.compile(r"\bset(?:env|-environment)?(?P<flags>(?:[ ]+-[-\w]+)*)[ ]+(?P<name>[A-Za-z_]\w*)[ ]+(?=[^\s-])")


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
    return _redacted(text, lambda _: HIDDEN)


def mask_text(text: str) -> str:
    """Return `text`, as long as it was and with every line where it was, with stars for every secret's characters."""
    return _redacted(text, _stars)


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments, as many as there were, with every secret replaced."""
    shown: list[str] = []
    hide_next = False
    #: Of which of the programs that take a secret behind `-p` these are the arguments, if of any.
    program = ""
    for word in argv:
        name, equals, _ = word.partition("=")
        # A password may begin with a dash; what begins with two is the next option.
        if hide_next and not word.startswith("--"):
            shown.append(HIDDEN)
        elif shown and argv[len(shown) - 1] in _LOGIN_FLAGS and (login := _LOGIN.fullmatch(word)):
            shown.append(f"{login[1]}:{HIDDEN}")
        elif program and word.startswith("-p") and len(word) > 2:
            shown.append(f"-p{HIDDEN}")
            program = ""
        elif equals and not re.search(r"\s", name) and is_secret_name(name.lstrip("-")):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(redact_text(word))
        hide_next = not equals and word.startswith("-") and is_secret_name(word.lstrip("-"))
        last = word.rpartition("/")[2]
        if _P_PROGRAM.fullmatch(last):
            program = last
        elif program == "sshpass" and word == "-p":
            # What follows is another program's.
            hide_next, program = True, ""
    return tuple(shown)


def redact_data(value: object, *, levels: int = _LEVELS) -> object:
    """Return plain data with every secret in it replaced: by the names of fields, and by what texts hold.

    Lists of texts alone are taken for arguments too. Counts of tokens stay. What stands within more lists and mappings
    than that is hidden too: nobody has looked at it.
    """
    if isinstance(value, str):
        return redact_text(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if levels == 0:
        return HIDDEN
    if isinstance(value, Mapping):
        return {name: _redact_field(str(name), each, levels - 1) for name, each in value.items()}
    if all(isinstance(each, str) for each in value):
        return list(redact_argv(value))
    return [redact_data(each, levels=levels - 1) for each in value]


def _redact_field(name: str, value: object, levels: int) -> object:
    if not is_secret_name(name):
        return redact_data(value, levels=levels)
    return _hidden(value, levels, is_count=name.lower().endswith("tokens"))


def _hidden(value: object, levels: int, *, is_count: bool) -> object:
    if levels and isinstance(value, Mapping):
        return {name: _hidden(each, levels - 1, is_count=is_count) for name, each in value.items()}
    if levels and isinstance(value, list | tuple):
        return [_hidden(each, levels - 1, is_count=is_count) for each in value]
    says_nothing = value is None or value == "" or isinstance(value, bool)
    return value if says_nothing or (is_count and isinstance(value, int | float)) else HIDDEN


#: Returns what stands in place of a secret.
_Hide = Callable[[str], str]


def _stars(secret: str) -> str:
    return re.sub(r"\S", "*", secret)


def _redacted(text: str, hide: _Hide) -> str:
    for pattern in (_JSON, _ESCAPED_JSON, _HEADER):
        text = pattern.sub(lambda match: _hide_value(match, hide), text)
    text = _COOKIES.sub(lambda match: hide(match[0]), text)
    if "-p" in text:
        text = _hide_behind_p(text, hide)
    text = _hide_named(_hide_pairs(text, hide), hide)
    text = _VALUES.sub(lambda match: hide(match[0]), text)
    return _URL_PASSWORD.sub(lambda match: f"{match[1]}:{hide(match[0][len(match[1]) + 1 : -1])}@", text)


def _hide_behind_p(text: str, hide: _Hide) -> str:
    shown: list[str] = []
    done = 0
    while found := _P_FLAG.search(text, done):
        word = _WORD.match(text, found.end())
        end = word.end() if word else len(text)
        shown += [text[done : found.end()], hide(text[found.end() : end])]
        done = end
    return "".join([*shown, text[done:]])


def _hide_value(match: re.Match[str], hide: _Hide) -> str:
    if not is_secret_name(match["name"].strip('\\"')):
        return match[0]
    return f"{match['name']}{match['gap']}{hide(match['value'])}"


def _hide_pairs(text: str, hide: _Hide) -> str:
    """Hide the values of secret flags and variables. What follows a harmless flag may be one: `-e API_KEY=VALUE`."""
    shown: list[str] = []
    done = at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        if is_secret_name(found["name"].lstrip("-")):
            end, quote = _value_end(text, found)
            shown += [text[done:at], hide(text[at : end - len(quote)]), quote]
            done = at = end
    return "".join([*shown, text[done:]])


def _value_end(text: str, found: re.Match[str]) -> tuple[int, str]:
    """Return where a value ends, and the quote to put there when it began before the name: `'--token=two words'`."""
    before = text[found.start() - 1 : found.start()]
    if found["gap"] == "=" and (rest := _REST.get(before)) and (inside := rest.match(text, found.end())):
        return inside.end(), before
    word = _WORD.match(text, found.end())
    return (word.end() if word else len(text)), ""


def _hide_named(text: str, hide: _Hide) -> str:
    """Hide what a secret's name stands before with a colon, an equals sign or `set -x`, where that looks like one."""
    if ":" in text or "=" in text:
        text = _hide_found(text, _NAMED, _named_value, hide)
    return _hide_found(text, _SET, _set_value, hide) if "set" in text else text


def _hide_found(
    text: str, pattern: re.Pattern[str], value: Callable[[str, re.Match[str]], tuple[int, int] | None], hide: _Hide
) -> str:
    shown: list[str] = []
    done = at = 0
    while found := pattern.search(text, at):
        at = found.end()
        if is_secret_name(found["name"]) and (span := value(text, found)):
            shown += [text[done : span[0]], hide(text[span[0] : span[1]])]
            done = at = span[1]
    return "".join([*shown, text[done:]])


def _set_value(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Only variables: prose may say that somebody "set token limits"."""
    word = _WORD.match(text, found.end())
    if word is None or not (found["flags"] or found["name"].isupper()):
        return None
    return word.span()


def _named_value(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the secret after a name is, None when there is none."""
    name, start = found["name"], found.end()
    if text.startswith(HIDDEN, start):
        return None
    if name.lower().endswith("authorization") and (scheme := re.match(_SCHEME, text[start : start + 40])):
        begin = start + scheme.end()
        return begin, _bare_end(text, begin)
    if (quoted := _QUOTED.get(text[start])) and (match := quoted.match(text, start)):
        in_quotes = found["quote"] == text[found.start() - 1 : found.start()] != ""
        hidden = len(match[0]) > 2 and (in_quotes or _is_quoted_secret(name, match[0][1:-1]))
        return (start + 1, match.end() - 1) if hidden else None
    bare = (_BARE_JSON if found["quote"] else _BARE).match(text, start)
    if bare is None or not _is_bare_secret(name, bare[0].rstrip(_TRAILING)):
        return None
    return start, _bare_end(text, start)


#: What follows a value without being part of it.
_TRAILING = ".,:;)}]>\"'`…│┃║|"


def _bare_end(text: str, start: int) -> int:
    rest = _BARE_REST.match(text, start)
    end = rest.end() if rest else len(text)
    return start + len(text[start:end].rstrip(_TRAILING))


def _is_strong(name: str) -> bool:
    return re.fullmatch(_STRONG, name) is not None


def _is_quoted_secret(name: str, value: str) -> bool:
    lowered = name.lower()
    if _is_strong(name) or "pass" in lowered:
        return True
    if lowered in _PLAIN:
        return len(value) >= 8 and not re.search(r"\s", value)
    return _is_bare_secret(name, value)


def _is_bare_secret(name: str, value: str) -> bool:
    lowered, strong = name.lower(), _is_strong(name)
    shortest = 6 if strong or "pass" in lowered else 8
    if len(value) < shortest or re.fullmatch(_ORDINARY, value):
        return False
    if not strong and lowered not in _PLAIN and re.fullmatch(_ID, value):
        return False
    return bool(re.search(_UNLIKE_WORDS, value)) or (strong and len(value) >= 20)
