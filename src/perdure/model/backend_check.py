"""What can be wrong with a backend in the configuration: above all names that would be taken for options. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.model.config import BackendConfig
from perdure.model.job import LOCAL

#: What each kind needs, and what else it can have.
KINDS = {
    "ssh": ("host", "user", "port", "identity", "options"),
    "docker": ("container", "image", "user", "options"),
    "podman": ("container", "image", "user", "options"),
}
_DEFAULTS = BackendConfig(kind="")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
# A name, or an address with or without a zone. Never what begins with a hyphen, which would be an option.
_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:$-]*", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]*", re.ASCII)
_SSH_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9]*=[^\0\n]+", re.ASCII)
_OPTION = re.compile(r"--[a-z][a-z0-9-]*(=[^\0\n]*)?", re.ASCII)
_MOST_PORTS = 65535


def mistakes_in_backend(name: str, backend: BackendConfig) -> Iterator[str]:
    """Yield a sentence without its full stop for everything that is wrong."""
    if name == LOCAL:
        yield f"{LOCAL} is this machine, and cannot be another"
    elif not _NAME.fullmatch(name):
        yield "its name has something else in it than letters, digits, '_', '.' and '-'"
    allowed = KINDS.get(backend.kind)
    if allowed is None:
        yield f"kind is {backend.kind!r}, and must be one of {', '.join(KINDS)}"
        return
    for field in BackendConfig.__struct_fields__[1:]:
        if field not in allowed and getattr(backend, field) != getattr(_DEFAULTS, field):
            yield f"{field} is nothing that {backend.kind} has"
    yield from _mistakes_of_ssh(backend) if backend.kind == "ssh" else _mistakes_of_container(backend)
    if backend.user and not _USER.fullmatch(backend.user):
        yield f"user is {backend.user!r}, which is nobody's name"


def _mistakes_of_ssh(backend: BackendConfig) -> Iterator[str]:
    if not backend.host:
        yield "host is missing"
    elif not _HOST.fullmatch(backend.host):
        yield f"host is {backend.host!r}, which is no host's name or address"
    if backend.port is not None and not 1 <= backend.port <= _MOST_PORTS:
        yield f"port is {backend.port}, and must be from 1 to {_MOST_PORTS}"
    if backend.identity and not backend.identity.startswith(("/", "~/")):
        yield "identity must be an absolute path or begin with ~/"
    for option in backend.options:
        if not _SSH_OPTION.fullmatch(option):
            yield f"options has {option!r}, which is not of the kind 'ConnectTimeout=5'"


def _mistakes_of_container(backend: BackendConfig) -> Iterator[str]:
    if bool(backend.container) is bool(backend.image):
        yield "either container or image has to be given, and not both"
    if backend.container and not _NAME.fullmatch(backend.container):
        yield f"container is {backend.container!r}, which is no container's name"
    if backend.image and not _IMAGE.fullmatch(backend.image):
        yield f"image is {backend.image!r}, which is no image's name"
    for option in backend.options:
        if not _OPTION.fullmatch(option):
            yield f"options has {option!r}, which is not of the kind '--network=none'"
