"""Where the HTTP interface listens, and that it does so nowhere by accident. Light: `perdure up` needs it before anything else."""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import suppress

from msgspec import Struct, structs

from perdure.errors import PerdureError, Refused, UsageError
from perdure.host.directories import make_private
from perdure.host.unix_socket import bound
from perdure.model.config import ApiConfig
from perdure.model.text import encode

#: What may be said in place of a port: nobody listens then.
OFF = "off"
_BACKLOG = 128
_LOOPBACK = ("127.", "::1")


class Listening(Struct, frozen=True, kw_only=True):
    """A socket that listens, and how it is reached."""

    socket: socket.socket
    #: Such as `http://127.0.0.1:7717`; of a Unix socket what stands for it.
    base: str
    port: int
    is_secure: bool
    #: Names by which we may be asked for.
    hosts: frozenset[str]
    #: A Unix socket's path, to be removed in the end.
    path: str | None = None

    def close(self) -> None:
        """Listen no longer."""
        self.socket.close()
        if self.path is not None:
            with suppress(OSError):
                os.unlink(encode(self.path))


def chosen(config: ApiConfig, said: str | None) -> ApiConfig:
    """Return where to listen when the environment says `said`: `off`, or a port. Raises `UsageError`."""
    if not said:
        return config
    if said == OFF:
        return structs.replace(config, enabled=False)
    if not (said.isascii() and said.isdigit() and int(said) <= 65535):
        raise UsageError(f"PERDURE_PORT is {said[:20]!r}; it has to be a port from 0 to 65535, or {OFF!r}.")
    return structs.replace(config, port=int(said))


def listen(config: ApiConfig) -> Listening:
    """Listen where the configuration says. Raises `Refused` for where it is not safe, and `PerdureError` for where it cannot be."""
    if config.unix_socket:
        return _at_path(config.unix_socket)
    is_secure = bool(config.tls_cert)
    family, address = _resolved(config)
    if not address[0].startswith(_LOOPBACK) and not is_secure and not config.insecure_bind:
        raise Refused(
            f"{config.host} can be reached from elsewhere, where everybody could read along: give a certificate "
            "(--tls-cert, --tls-key), or say --insecure-bind when something else sees to that."
        )
    if is_secure:
        _check_certificate(config)
    listener = _bound(family, address, config.host)
    port = listener.getsockname()[1]
    shown = f"[{config.host}]" if ":" in config.host else config.host
    if address[0] in ("0.0.0.0", "::"):
        shown = "localhost"
    own = {"127.0.0.1", "localhost", "[::1]", shown.lower(), *(name.lower() for name in config.hosts)}
    base = f"{'https' if is_secure else 'http'}://{shown}:{port}"
    return Listening(socket=listener, base=base, port=port, is_secure=is_secure, hosts=frozenset(own))


def _resolved(config: ApiConfig) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{config.host!r} is no address of this machine: {error}.") from None
    # The older kind first: `localhost` is both, and what is printed as 127.0.0.1 has to be it.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return family, (str(address[0]), config.port)


def _check_certificate(config: ApiConfig) -> None:
    """Raises `UsageError` for one that cannot be used, before anything is begun."""
    import ssl  # of no use to most

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.tls_cert, config.tls_key or None)
    except (OSError, ssl.SSLError) as error:
        what = error.strerror or error.args[-1]
        raise UsageError(f"The certificate {config.tls_cert} cannot be used with its key: {what}.") from None


def _bound(family: socket.AddressFamily, address: tuple[str, int], host: str) -> socket.socket:
    # TCP by name: only then asyncio turns off the wait for more (Nagle) of those who are let in, and a letter's echo would
    # come 40 ms late.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # What was closed a moment ago must not be in the way; two at once are refused all the same.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PerdureError(
                f"Port {address[1]} of {host} is in use, by another program or by another user's perdure: "
                "--port takes another (0: any that is free), --no-api none."
            ) from None
        raise PerdureError(f"Nobody can listen at {host}, port {address[1]}: {error.strerror or error}.") from None
    return listener


def _at_path(path: str) -> Listening:
    full = os.path.abspath(path)
    try:
        make_private(os.path.dirname(encode(full)))
    except OSError as error:
        raise PerdureError(f"{os.path.dirname(full)} cannot be made: {error.strerror or error}.") from None
    if _is_something_else(full):
        raise PerdureError(f"{full} is there already, and is no socket.")
    if _is_answered(full):
        raise PerdureError(f"Somebody listens at {full} already.")
    hosts = frozenset({"localhost", "127.0.0.1"})
    return Listening(socket=bound(full), base="http://localhost", port=0, is_secure=False, hosts=hosts, path=full)


def _is_something_else(path: str) -> bool:
    try:
        return not stat.S_ISSOCK(os.lstat(encode(path)).st_mode)
    except OSError:
        return False


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(encode(path))
        except OSError:
            return False
    return True
