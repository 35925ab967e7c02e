"""Containers, by docker or podman: inside one that runs, or each job in one of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perdure.errors import PerdureError
from perdure.host.run import Ran
from perdure.jobs.backends.asking import PATIENCE, ask, found_in, last_words, own_environment, program_of
from perdure.jobs.backends.backend import Wrapped
from perdure.jobs.backends.remote import carrying_out, ending, mark_of
from perdure.model.config import BackendConfig
from perdure.model.job import Job, Order
from perdure.model.secrets import is_secret_name, is_secret_value

# What no job types: else Ctrl-P Ctrl-Q would leave it without anybody to talk to.
_NEVER_LEAVE = "--detach-keys=ctrl-^,ctrl-_,ctrl-^,ctrl-_"


class Container:
    """The `Backend` that is a container, or an image of which each job gets one. Needs `sh` inside."""

    def __init__(self, name: str, config: BackendConfig, environ: Mapping[str, str]) -> None:
        self._config = config
        self._where = f"{name} ({config.container or config.image})"
        self._environ = own_environment(environ)

    def check(self) -> None:
        """Ask the engine whether the container runs, or the image is there; nothing is fetched."""
        config = self._config
        if config.container:
            ran = self._ask("exec", config.container, "sh", "-c", ":")
        else:
            ran = self._ask("image", "inspect", "--format", "{{.Id}}", config.image)
        if ran.status != 0:
            raise PerdureError(f"{self._where} cannot be used: {last_words(ran)}.")

    def wrap(self, id: str, order: Order, *, env: Mapping[str, str], directory: str) -> Wrapped:
        """Return what has the engine carry out the order inside."""
        config = self._config
        environ = dict(self._environ)
        words = [self._program(), "exec" if config.container else "run", "--interactive", _NEVER_LEAVE]
        if order.terminal is not None:
            words += ["--tty"]
            environ["TERM"] = env.get("TERM", "dumb")
            words += ["--env", f"TERM={environ['TERM']}"]
        if config.user:
            words += ["--user", config.user]
        words += ["--env", mark_of(id), *self._variables(order, environ), *config.options]
        program, *rest = carrying_out(order)
        if config.container:
            words += [config.container, program, *rest]
        else:
            words += ["--rm", "--init", "--pull=never", "--name", _container_of(id)]
            words += ["--entrypoint", program, config.image, *rest]
        return Wrapped(argv=tuple(words), cwd="/", env=environ)

    def kill(self, job: Job, grace: float) -> int:
        """End the job's processes inside; one with a container of its own ends with that."""
        patience = PATIENCE + grace
        if self._config.container:
            return found_in(
                self._ask("exec", self._config.container, *ending(job.id, grace), patience=patience), self._where
            )
        name = _container_of(job.id)
        if self._ask("inspect", "--format", "{{.Id}}", name).status != 0:
            self.check()
            return 0
        ran = self._ask("stop", "--time", str(round(grace)), name, patience=patience)
        if ran.status != 0 and self._ask("inspect", "--format", "{{.Id}}", name).status == 0:
            raise PerdureError(f"The job could not be ended in {self._where}: {last_words(ran)}.")
        return 1

    def _variables(self, order: Order, environ: dict[str, str]) -> Iterator[str]:
        """What the order asks for. A secret is named only, and is in the environment of the engine's program instead."""
        for name, value in order.env.items():
            is_secret = is_secret_name(name) or is_secret_value(value)
            # What would tell that program something itself is never given to it.
            if is_secret and name not in environ and not name.upper().startswith(_FOR_THE_PROGRAM):
                environ[name] = value
                yield from ("--env", name)
            else:
                yield from ("--env", f"{name}={value}")

    def _ask(self, *words: str, patience: float = PATIENCE) -> Ran:
        return ask((self._program(), *words), self._environ, patience=patience)

    def _program(self) -> str:
        return program_of(self._config.kind, self._environ)


#: How the names of variables begin that engines' programs, or what loads them, take for their own.
_FOR_THE_PROGRAM = (
    "DOCKER",
    "PODMAN",
    "CONTAINER",
    "REGISTRY",
    "BUILD",
    "STORAGE",
    "LD_",
    "GO",
    "SSH",
    "XDG",
    "HTTP",
    "NO_PROXY",
    "ALL_PROXY",
)


def _container_of(id: str) -> str:
    return f"perdure-{id}"
