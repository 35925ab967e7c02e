"""What a job finds in its environment, and how a text reaches the user's own shell. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from perdure.model.config import JobsConfig
from perdure.model.secrets import is_secret_name, is_secret_value
from perdure.model.text import decode, encode
from perdure.tmux.wrap import through_shell

#: What is about the terminal, the pane or the service of whoever starts a job, and not about the job.
_NOT_PASSED_ON = frozenset(
    "TMUX TMUX_PANE LINES COLUMNS NOTIFY_SOCKET INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID "
    "LISTEN_PID LISTEN_FDS LISTEN_FDNAMES WATCHDOG_PID WATCHDOG_USEC".split()
)
#: What a job has unless somebody says otherwise: what Python prints is to be seen when it is printed.
_UNLESS_SAID = {"PYTHONUNBUFFERED": "1"}
#: What a terminal of ours is.
_TERM = "xterm-256color"

# What the files of a shell print while it reads them, and what it says of having no terminal, is none of the job's.
_HUSH = 'exec 3>&1 4>&2 >/dev/null 2>&1; exec "$@"'
_SPEAK = 'exec >&3 2>&4 3>&- 4>&-; exec "$@"'


def environment_for(
    inherited: Mapping[str, str], given: Mapping[str, str], config: JobsConfig, *, has_terminal: bool
) -> dict[str, str]:
    """Return the whole environment of a job.

    Of what is inherited, what the configuration lets through and neither is called nor looks like a secret, unless the
    configuration names it. Whatever is given for this very job is in it.
    """
    passed = {
        name: value
        for name, value in inherited.items()
        if name not in _NOT_PASSED_ON and _is_let_through(name, config) and not _is_withheld(name, value, config)
    }
    if has_terminal and passed.get("TERM", "dumb") == "dumb":
        passed["TERM"] = _TERM
    return {decode(encode(name)): decode(encode(value)) for name, value in {**_UNLESS_SAID, **passed, **given}.items()}


def shell_words(shell: str, cwd: str, text: str, *, has_terminal: bool) -> tuple[str, ...]:
    """Return the words that have the user's shell carry out a text, after reading all its files as at a login.

    What carries it out is not interactive: it expands no aliases, and ends when it is told to.
    """
    carry_out = (shell, "-c", text)
    if has_terminal:
        return through_shell(shell, cwd, carry_out)
    return _sh(_HUSH, *through_shell(shell, cwd, _sh(_SPEAK, *carry_out)))


def _sh(program: str, *words: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", program, "perdure", *words)


def _is_let_through(name: str, config: JobsConfig) -> bool:
    return name in config.secrets or any(fnmatchcase(name, pattern) for pattern in config.environment)


def _is_withheld(name: str, value: str, config: JobsConfig) -> bool:
    return name not in config.secrets and (is_secret_name(name) or is_secret_value(value))
