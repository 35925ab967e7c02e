"""Another machine, by ssh: as the user's own configuration has it, but never asking anybody anything."""

from __future__ import annotations

import os
from collections.abc import Mapping

from perdure.errors import PerdureError
from perdure.host.run import Ran
from perdure.jobs.backends.asking import PATIENCE, ask, found_in, last_words, own_environment, program_of
from perdure.jobs.backends.backend import Wrapped
from perdure.jobs.backends.remote import (
    carrying_out,
    ending,
    environment_lines,
    keeping_environment,
    mark_of,
    text_for_shell,
)
from perdure.jobs.backends.ssh_log import LOG
from perdure.model.config import BackendConfig
from perdure.model.job import Job, Order

# First, so that nothing can say otherwise: the first that is said counts. No way in for others, nothing that is asked for
# at a terminal, no connection that ends with somebody else's, nothing that is run but the job.
_ALWAYS = (
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ControlMaster=no",
    "ControlPath=none",
    "EscapeChar=none",
    "ForkAfterAuthentication=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "SessionType=default",
    "StdinNull=no",
)
#: Unless the configuration says otherwise: a machine that is gone is noticed within a minute.
_USUALLY = ("ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")


class Ssh:
    """The `Backend` that is another machine. What an order says reaches it as data, whatever shell reads it there."""

    def __init__(self, name: str, config: BackendConfig, environ: Mapping[str, str]) -> None:
        self._where = f"{name} ({config.host})"
        self._config = config
        self._environ = own_environment(environ)

    def check(self) -> None:
        """Connect, and see whether a command can be run there."""
        ran = self._ask(("true",))
        if ran.status != 0:
            raise PerdureError(f"{self._where} cannot be used: {last_words(ran)}.")

    def wrap(self, id: str, order: Order, *, env: Mapping[str, str], directory: str) -> Wrapped:
        """Return what connects and carries out the order there; the variables it asks for are there before it."""
        text = text_for_shell(carrying_out(order), id=id, mark=mark_of(id))
        if order.env:
            ran = self._ask(keeping_environment(id), told=environment_lines(order))
            if ran.status != 0:
                raise PerdureError(f"{self._where} did not take the environment of the job: {last_words(ran)}.")
        terminal = ("-tt",) if order.terminal is not None else ("-T",)
        talk = ("-v", "-E", os.path.join(directory, LOG))
        environ = {**self._environ, "TERM": env.get("TERM", "dumb")} if order.terminal is not None else self._environ
        return Wrapped(argv=(*self._words(), *talk, *terminal, "--", self._config.host, text), cwd="/", env=environ)

    def kill(self, job: Job, grace: float) -> int:
        """End the job's processes there, by a connection of its own."""
        return found_in(self._ask(ending(job.id, grace), patience=PATIENCE + grace), self._where)

    def _ask(self, words: tuple[str, ...], *, told: bytes = b"", patience: float = PATIENCE) -> Ran:
        text = text_for_shell(words)
        return ask((*self._words(), "-T", "--", self._config.host, text), self._environ, told=told, patience=patience)

    def _words(self) -> tuple[str, ...]:
        config = self._config
        words = [program_of("ssh", self._environ)]
        for option in (*_ALWAYS, *config.options, *_USUALLY):
            words += ["-o", option]
        if config.user:
            words += ["-l", config.user]
        if config.port is not None:
            words += ["-p", str(config.port)]
        if config.identity:
            words += ["-i", _at_home(config.identity, self._environ)]
        return tuple(words)


def _at_home(path: str, environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("HOME", "/"), path[2:]) if path.startswith("~/") else path
