"""Asking a backend something by its own program: is it there, and to end a job inside it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from perdure.errors import PerdureError
from perdure.host.run import Ran
from perdure.jobs.backends.remote import NO_WAY_TO_TELL, SOME_LEFT
from perdure.model.secrets import redact_text
from perdure.model.text import decode, encode

#: How long a backend may take to answer, in seconds.
PATIENCE = 30.0
#: What a backend's own program is given of our environment: what it takes to get there, and nothing that is meant for jobs.
_OWN = frozenset(
    "PATH HOME USER LOGNAME LANG LC_ALL TERM TMPDIR SSH_AUTH_SOCK XDG_RUNTIME_DIR XDG_CONFIG_HOME DBUS_SESSION_BUS_ADDRESS "
    "DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_API_VERSION "
    "CONTAINER_HOST CONTAINER_SSHKEY CONTAINER_CONNECTION CONTAINERS_CONF REGISTRY_AUTH_FILE".split()
)


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the program that leads to a backend finds in its environment."""
    return {decode(encode(name)): decode(encode(value)) for name, value in environ.items() if name in _OWN}


def program_of(name: str, environ: Mapping[str, str]) -> str:
    """Return where a program is. Raises PerdureError when it is nowhere."""
    found = shutil.which(name, path=environ.get("PATH"))
    if found is None:
        raise PerdureError(f"There is no program {name} here, which this backend needs.")
    return found


def ask(argv: Sequence[str], environ: Mapping[str, str], *, told: bytes = b"", patience: float = PATIENCE) -> Ran:
    """Run a backend's own program to its end, with something to read. Raises PerdureError when it takes too long."""
    try:
        done = subprocess.run(
            [encode(word) for word in argv],
            env={encode(name): encode(value) for name, value in environ.items()},
            cwd="/",
            input=told,
            capture_output=True,
            timeout=patience,
            check=False,
            # So that a Ctrl-C at our terminal does not leave half of it done.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise PerdureError(f"{argv[0]} did not come to an end within {patience:.0f} s.") from None
    except OSError as error:
        raise PerdureError(f"{argv[0]}: {error.strerror or error}.") from error
    return Ran(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def last_words(ran: Ran) -> str:
    """Return the last a program said of what went wrong, without a full stop, secrets aside."""
    lines = [line.strip() for line in ran.err.splitlines() if line.strip()]
    said = redact_text(lines[-1]) if lines else f"it ended with {ran.status}"
    return said.rstrip(".")[:300]


def found_in(ran: Ran, where: str) -> int:
    """Return how many processes were ended. Raises PerdureError when not all of them were, or nobody knows."""
    if ran.status == NO_WAY_TO_TELL:
        raise PerdureError(f"{where} has no /proc: which processes are the job's cannot be told there.")
    if ran.status == SOME_LEFT:
        raise PerdureError(f"Something of the job is left in {where} that no signal ends.")
    if ran.status != 0 or not ran.out.strip().isdigit():
        raise PerdureError(f"The job could not be ended in {where}: {last_words(ran)}.")
    return int(ran.out)
