"""What runs on the other side of a backend: small programs for `sh` that never change, and words as data for them.

Nothing of an order ever becomes a part of a program. What a job is, is told there by the mark in its environment, which
a process keeps through whatever it does to its session, group and parent.
"""

from __future__ import annotations

from perdure.errors import UsageError
from perdure.model.job import Order
from perdure.model.text import encode

# Not that of this machine (`kin.MARK`), which what leads to a backend has: it may lead to this very machine.
_MARK = "PERDURE_JOB_INSIDE"
#: What every shell reads as one backslash. Quoted it would be something else to some of them.
_BACKSLASH = "\\\\"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,@-")

# Between single quotes, for whatever shell somebody has at login: so without any quote of that kind, backslash, line's end
# or exclamation mark. Takes the words apart again (`_coded`), with those that were left in a file, and becomes `env`.
_UNPACK = (
    "b=$1; f=$HOME/.perdure/$2; shift 2; "
    "d() { v=${1#_}; case $v in *+*) "
    'v=$(printf %s "$v+170" | sed "s/+/$b${b}0/g"); v=$(printf %b "$v"); v=${v%x};; esac; }; '
    'n=$#; while [ $n -gt 0 ]; do d "$1"; shift; set -- "$@" "$v"; n=$((n-1)); done; m=$1; shift; '
    'if [ -f "$f" ]; then while read -r l; do d "$l"; set -- "$v" "$@"; done <"$f"; rm -f "$f"; fi; '
    'exec env "$m" "$@"'
)

#: Goes into a directory, if one is given, and carries out words there. Stays, so that a signal that ends them is told as
#: a code; hears signals, but does not follow them, so that nobody's last words are lost.
_CARRY_OUT = (
    'if [ -n "$1" ]; then cd -- "$1" || exit 127; fi\n'
    "shift\n"
    "trap : HUP INT QUIT TERM\n"
    # Not by its name alone: what is a word of the shell, such as `eval`, would be carried out by it.
    '(exec "$@")\n'
    "exit $?\n"
)

#: Has the shell of whoever we are there carry out a text, as at a login.
_THROUGH_SHELL = 'exec "${SHELL:-/bin/sh}" -l -c "$1"'

#: Keeps what it reads for one job, so that it stands in no list of processes.
_LEAVE = 'umask 077; mkdir -p "$HOME/.perdure" && cat >"$HOME/.perdure/$1"'

#: Ends every process of a job: those that have its mark, and whoever is in a session that one of these leads. Asked first,
#: then forced; says how many there were. 70: some are left; 69: there is no way to tell.
_END = r"""
mark=$1 tenths=$2
[ -r /proc/self/environ ] || exit 69
look() {
  found=
  for file in $(grep -lF -- "$mark" /proc/[0-9]*/environ 2>/dev/null); do
    if { tr '\000' '\n' <"$file"; } 2>/dev/null | grep -qxF -- "$mark"; then
      pid=${file#/proc/}
      found="$found ${pid%/environ}"
    fi
  done
  led=$found
  for file in /proc/[0-9]*/stat; do
    pid=${file#/proc/}
    pid=${pid%/stat}
    { read -r line <"$file"; } 2>/dev/null || continue
    set -- ${line##*) }
    case "$1 $found " in [ZX]*|*" $pid "*) continue ;; esac
    case "$led " in *" $4 "*) found="$found $pid" ;; esac
  done
}
look
set -- $found
echo $#
[ $# -gt 0 ] || exit 0
kill -TERM $found 2>/dev/null
kill -CONT $found 2>/dev/null
passed=0
while [ $passed -lt $((tenths + 50)) ]; do
  look
  [ -n "$found" ] || exit 0
  [ $passed -lt "$tenths" ] || kill -KILL $found 2>/dev/null
  sleep 0.1 2>/dev/null || { sleep 1; passed=$((passed + 9)); }
  passed=$((passed + 1))
done
exit 70
"""

NO_WAY_TO_TELL, SOME_LEFT = 69, 70


def mark_of(id: str) -> str:
    """Return what every process of a job has in its environment."""
    return f"{_MARK}={id}"


def command_of(order: Order) -> tuple[str, ...]:
    """Return the words that carry out an order: those it has, or those that give its text to a shell there.

    Raises `UsageError` for a program whose name would be taken for an option on its way.
    """
    if order.shell is not None:
        return ("sh", "-c", _THROUGH_SHELL, "perdure", order.shell)
    words = order.argv or ()
    if words[0].startswith("-"):
        raise UsageError(
            f"The program of a job in {order.backend} cannot begin with '-': it would be taken for an option."
        )
    return words


def carrying_out(order: Order) -> tuple[str, ...]:
    """Return the words of a program that carries out an order in its directory, and ends with its code."""
    return ("sh", "-c", _CARRY_OUT, "perdure", order.cwd, *command_of(order))


def ending(id: str, grace: float) -> tuple[str, ...]:
    """Return the words of a program that ends a job."""
    return ("sh", "-c", _END, "perdure", mark_of(id), str(round(min(grace, 600.0) * 10)))


def keeping_environment(id: str) -> tuple[str, ...]:
    """Return the words of a program that keeps what it reads until the job begins; `environment_lines` is what it reads."""
    return ("sh", "-c", _LEAVE, "perdure", id)


def environment_lines(order: Order) -> bytes:
    """Return the variables of an order, each in a line."""
    return b"".join(f"{_coded(f'{name}={value}')}\n".encode() for name, value in order.env.items())


def text_for_shell(words: tuple[str, ...], *, id: str = "", mark: str = "PERDURE_BACKEND=1") -> str:
    """Return a text that any shell reads as a command with these words and a mark in its environment.

    With an `id`, the variables that were kept for that job are in its environment too.
    """
    return f"exec sh -c '{_UNPACK}' perdure {_BACKSLASH} {id or '-'} {' '.join(map(_coded, (mark, *words)))}"


def _coded(word: str) -> str:
    """Return a word in characters that mean nothing to any shell."""
    return "_" + "".join(chr(byte) if byte in _PLAIN else f"+{byte:03o}" for byte in encode(word))
