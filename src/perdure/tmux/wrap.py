"""What a pane runs that was restored, or made for a program, before a shell is left in it. Pure.

Every text a shell is given here is a constant of this file. Whatever was captured reaches it as an argument, and
goes on as one: no word of a pane, an agent or a path is ever part of a program.

A pane's first process is `/bin/sh -c _PRELUDE perdure WORDS…`. It prints, waits, and then becomes the login shell.
For an agent or a program it becomes `/bin/sh -c _RUN perdure WORDS…` instead, which waits for that program to end
and becomes the login shell then. So the words of the first process tell how far the pane has come, and in the end
none of this is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from perdure.model.text import visible
from perdure.model.wrapped import MARK, SH, Stage, asking_word, is_helped


class Start(Struct, frozen=True, kw_only=True):
    """What a pane is to do. Without anything said here it is a login shell."""

    #: The program that runs until a login shell takes over; () for none.
    argv: tuple[str, ...] = ()
    #: Variables laid over what the user's own shell gives.
    environ: Mapping[str, str] = {}
    #: `argv` is a shell: it is the one that is left, in place of the login shell.
    stays: bool = False
    #: Path of the user's shell; None for tmux's default shell, which a pane has as `$SHELL`.
    shell: str | None = None
    #: File that is printed first, and emptied then.
    text: str | None = None
    #: FIFO at which the pane waits for as long as it is there.
    gate: str | None = None
    #: Wait for Enter before the program starts; Ctrl-C or the end of input leaves a shell without it.
    asks: bool = False
    #: That it is the right conversation is a guess.
    is_guess: bool = False
    #: Number and kernel start ticks of a process that has to be gone first. While it lives the pane waits for Enter.
    before: tuple[int, int] | None = None
    #: File that is given the exit status of the program, as a number in a line.
    status: str | None = None
    #: What the program is called when it has ended.
    name: str = ""
    #: How to start it again, shown when it did not end well; "" to show nothing.
    again: str = ""
    #: The pane ends at once, with this exit status …
    exits: int | None = None
    #: … or by this signal.
    signal: int | None = None


# What the two programs are given is in model/wrapped.py, in its order.
# A shell that does not know -l would end with a complaint, and the pane with it.
_LEAVE_SHELL = (
    '[ -x "$shell" ] || shell=${SHELL:-/bin/sh}; [ -x "$shell" ] || shell=/bin/sh; '
    'case "${shell##*/}" in sh|bash|zsh|fish|dash|ash|ksh|ksh93|mksh|yash|tcsh|csh|nu|xonsh) exec "$shell" -l;; esac; '
    'exec "$shell"'
)

# - An emptied file is as good as a removed one, and emptying it takes no process.
# - While whoever makes the panes holds them back (host/scratch.py), nothing is printed. The read ends with the last that
#   can write, which we must not be; and were we not one while opening, that would wait for one to come.
# - Whoever holds them back may have printed the text, which is empty then; or only some of it, and ended. So the pane
#   is emptied first: CAN, in case it was cut within a sequence, no colour, no link, an empty screen, an empty history.
# - The gate is opened before it is looked at: whoever takes it away afterwards leaves a line in what is open here
#   (host/scratch.py), and whoever did so before is seen by the look. So no wake-up is missed.
# - A pane that ends lets go of its terminal first, and waits: on many systems tmux, when a terminal is let go of, is deaf
#   to the end of its processes for some milliseconds (libutempter), and would not know how this one ended.
# - Redirections hang on commands that may fail: on `exec` or `:` a failure would end the shell, and the pane. It does not
#   with `command` before it.
# - In what the kernel tells of a process its name may hold anything, a line's end too: what follows the last `)` counts.
#   It is asked in a subshell, so that a process that ends meanwhile costs no more than that.
_PRELUDE = (
    "text=$2 gate=$3 asks=$4 status=$5 shell=$6 name=$7 again=$8 end=$9 run=${10} left=; "
    '{ [ -z "$end" ] && [ -s "$text" ] && [ -p "${text%/*}/0.hold" ] && { '
    'command exec 3<>"${text%/*}/0.hold" 4<"${text%/*}/0.hold" 3>&- && read -r _ <&4; command exec 3>&- 4<&-; }; '
    '[ -s "$text" ] && { [ -n "$end" ] || [ ! -e "${text%/*}/0.begun" ] || '
    r'printf "\030\033[m\033]8;;\007\033[H\033[2J\033[3J"; } && cat -- "$text" && true >"$text"; } 2>/dev/null; '
    'if [ -n "$end" ]; then trap "" HUP; exec </dev/null >/dev/null 2>&1; sleep 0.2 || sleep 1; trap - HUP; '
    'case "$end" in -*) ulimit -c 0; kill "$end" $$; exit $((128 - end));; *) exit "$end";; esac; fi; '
    "before=${asks#*:} asks=${asks%%:*}; "
    'is_in_use() { case "$before" in *:*) ;; *) return 1;; esac; '
    '[ -e /proc/self/stat ] || { kill -0 "${before%:*}"; return; }; '
    '(last=; while IFS= read -r line; do last=$line; done <"/proc/${before%:*}/stat"; set -- ${last##*)}; '
    'case "$1" in ""|Z|X) exit 1;; esac; [ "${20}" = "${before#*:}" ]); } 2>/dev/null; '
    "trap 'left=1' INT QUIT; "
    '[ -p "$gate" ] && { while [ -z "$left" ] && [ -p "$gate" ]; do read -r _ <&3; done; } 3<>"$gate" 2>/dev/null; '
    '[ -n "$asks" ] && [ -z "$left" ] && { read -r _ || left=1; }; '
    'while [ -z "$left" ] && is_in_use; do '
    'printf "perdure: %s still runs as process %s; Enter tries again.\\n" "$name" "${before%:*}"; '
    "read -r _ || left=1; done; "
    "trap - INT QUIT; "
    'if [ -n "$left" ]; then printf "\\nperdure: %s was not started.\\n" "$name"; '
    '[ -n "$again" ] && printf "To start it: %s\\n" "$again"; '
    '[ -n "$status" ] && { echo 130 >"$status"; } 2>/dev/null; [ -n "$gate" ] && rm -f -- "$gate"; '
    'elif [ -n "$run" ]; then shift; exec /bin/sh -c "$run" perdure running "$@"; '
    'else shift 11; [ $# -gt 0 ] && exec /usr/bin/env -- "$@"; fi; ' + _LEAVE_SHELL
)

# What a user's shell does once it has read all its files: it goes to where its pane is, for they may have gone elsewhere,
# and becomes the rest of its words. direnv and mise only act at a prompt, which never comes.
_BECOME = (
    r'{ \cd -- "$1" || :; } >/dev/null 2>&1; shift; '
    "for hook in _direnv_hook _mise_hook; do "
    'if command -v "$hook" >/dev/null 2>&1; then "$hook" || :; fi; done; '
    r'\exec "$@"'
)
_BECOME_IN_FISH = (
    "builtin cd -- $argv[2] >/dev/null 2>&1; "
    "for hook in __direnv_export_eval __mise_env_eval; if functions -q $hook; $hook; end; end; "
    "exec $argv[3..-1]"
)

# What that is: a shell that lays the pane's variables over what those files gave, and becomes the program.
# - Variables that are nobody else's business come through a file, for everybody may read the words of a process. What
#   stands in it is never a program's text: names are checked, and values only assigned.
# - A PATH only goes before the one there is: what it leads to may be gone, and be in another place now.
_LAY = (
    'private_=$1; shift; if [ -s "$private_" ]; then while IFS= read -r name_ && IFS= read -r value_; do '
    'case "$name_" in ""|[0-9]*|*[!A-Za-z0-9_]*) ;; *) export "$name_=$value_";; esac; '
    'done <"$private_"; true >"$private_"; fi 2>/dev/null; '
    'case "$1" in PATH=*) laid_=${1#PATH=} rest_=$PATH:; shift; '
    'while [ -n "$rest_" ]; do each_=${rest_%%:*} rest_=${rest_#*:}; '
    'case ":$laid_::" in *":$each_:"*) ;; *) laid_=$laid_:$each_;; esac; done; export PATH="$laid_";; esac; '
    'exec /usr/bin/env -- "$@"'
)

# - The user's shells become the program, so that only this one waits for it, and in any shell the same is done after.
# - With job control (-m) the program is a job of its own, as it is below a prompt: Ctrl-C is its own, tmux names the
#   pane after it, and when it is stopped it can be gone on with.
# - bash is the /bin/sh of many systems, and leaves a script when Ctrl-C ended a job of it, trap or no trap (with one, it
#   forgets the status). What is to be done after is then done on the way out.
# - What a signal ended has not put its terminal right.
_RUN = (
    "status=$5 shell=$6 name=$7 again=$8; shift 11; "
    f'set -- "$PWD" /bin/sh -c \'{_LAY}\' perdure "${{status:+${{status%.status}}.private}}" "$@"; '
    '[ -x "$shell" ] || shell=${SHELL:-/bin/sh}; '
    "after() { trap - EXIT; set +m; "
    'if [ "$code" -gt 128 ]; then stty sane; '
    r'printf "\033[?1049l\033[?25h\033[?1000l\033[?1002l\033[?1003l\033[?1006l\033[?2004l\033[m"; fi 2>/dev/null; '
    '[ -n "$status" ] && { echo "$code" >"$status"; } 2>/dev/null; '
    r'printf "\nperdure: %s ended with status %s.\n" "$name" "$code"; '
    r'[ "$code" -ne 0 ] && [ -n "$again" ] && printf "To try again: %s\n" "$again"; '
    "trap - INT QUIT; " + _LEAVE_SHELL + "; }; "
    "stopped() { case $code in 14[5-9]|150) jobs %1 >/dev/null 2>&1;; *) false;; esac; }; "
    'if [ -n "$BASH_VERSION" ]; then trap : QUIT; trap \'code=$?; [ "$code" -eq 130 ] && [ -t 0 ] && after\' EXIT; '
    "else trap : INT QUIT; fi; "
    "set -m; "
    'case "${shell##*/}" in '
    f'bash) "$shell" -l -c \'\\exec "$0" -i -c "$@"\' "$shell" \'{_BECOME}\' perdure "$@";; '
    f'fish) "$shell" -l -i -c \'{_BECOME_IN_FISH}\' perdure "$@";; '
    f'zsh|sh|dash|ash|ksh|ksh93|mksh|yash) "$shell" -l -i -c \'{_BECOME}\' perdure "$@";; '
    f"*) /bin/sh -l -c '{_BECOME}' perdure \"$@\";; esac; "
    "code=$?; "
    r'while stopped; do printf "\nperdure: %s is stopped. Leave this shell to go on with it.\n" "$name"; '
    '"$shell"; fg %1 >/dev/null; code=$?; done; '
    "after"
)

_ENDED = re.compile(r"perdure: .* ended with status (\d{1,3})\.")

# For a program `env` would take for a variable.
_PLAINLY = (*SH, 'case "$1" in -*) exit 127;; esac; exec "$@"', MARK)
# For a shell that is to stay, which may not be there any more.
_STAYING = (*SH, 'command -v "$1" >/dev/null 2>&1 && exec "$@"; shell=; ' + _LEAVE_SHELL, MARK)


def through_shell(shell: str, cwd: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start a program as the user's shell would: from `cwd`, once it has read all its files.

    The shell becomes the program. One that is not known is left out, for `/bin/sh`.
    """
    words = (MARK, cwd, *argv)
    match shell.rpartition("/")[2]:
        case "bash":
            return (shell, "-l", "-c", r'\exec "$0" -i -c "$@"', shell, _BECOME, *words)
        case "fish":
            return (shell, "-l", "-i", "-c", _BECOME_IN_FISH, *words)
        case "zsh" | "sh" | "dash" | "ash" | "ksh" | "ksh93" | "mksh" | "yash":
            return (shell, "-l", "-i", "-c", _BECOME, *words)
    return ("/bin/sh", "-l", "-c", _BECOME, *words)


def needs_wrapper(start: Start) -> bool:
    """Say whether a pane has to run `command(start)`: False where the shell tmux starts by itself does as well."""
    return start != Start(name=start.name, again=start.again, status=start.status)


def command(start: Start) -> tuple[str, ...]:
    """Return the words for tmux: always several, so that tmux hands none of them to a shell as a program."""
    runs = bool(start.argv) and not start.stays
    words = (
        Stage.PRELUDE.value,
        start.text or "",
        start.gate or "",
        asking_word(asks=start.asks, is_guess=start.is_guess, before=start.before),
        start.status or "",
        start.shell or "",
        visible(start.name),
        visible(start.again),
        _end(start),
        _RUN if runs else "",
        str(len(start.environ)),
        # PATH first: it is looked for there.
        *(f"{name}={start.environ[name]}" for name in sorted(start.environ, key=lambda name: name != "PATH")),
        *_before(start.argv, stays=start.stays),
        *start.argv,
    )
    return (*SH, _PRELUDE, MARK, *words)


def is_starting(argv: Sequence[str]) -> bool:
    """Say whether a process is still on its way to become a pane's program: the user's shell that reads its files."""
    return any(word in (_BECOME, _BECOME_IN_FISH, _LAY) for word in argv)


def ended_with(lines: Sequence[str]) -> int | None:
    """Return the status a pane says its program has ended with, None when it does not."""
    found = (_ENDED.fullmatch(line.rstrip()) for line in reversed(lines))
    return next((int(match[1]) for match in found if match), None)


def _end(start: Start) -> str:
    if start.signal is not None:
        return f"-{start.signal}"
    return "" if start.exits is None else str(start.exits)


def _before(argv: tuple[str, ...], *, stays: bool) -> tuple[str, ...]:
    """Return what goes in front of an argv so that `env` starts it."""
    if not argv:
        return ()
    if stays:
        return _STAYING
    # Reading takes these words away, so an argv that begins with them gets them once more.
    return _PLAINLY if "=" in argv[0] or is_helped(argv) else ()
