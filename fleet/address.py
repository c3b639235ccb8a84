"""Addresses of trackers, and connecting to one."""

from __future__ import annotations

import logging
import socket
import ssl
from functools import cache
from pathlib import Path
from typing import Any

from .protocol import FleetError, FleetInputError
from .security import CA, CERTIFICATE, KEY, is_encrypted

DEFAULT_PORT = 9190
CONNECT_S = 3.5
"""For a connection to a tracker to be made: errors are said within 5 s, of which Python takes one to start."""
_GREETING_S = 1.0
"""For Dask's greeting, before a tracker that is silent is asked if it speaks TLS; a busy one may be late."""
KEEP_TRYING_S = 60.0
"""For a tracker that was lost to come back, after which a search ends."""
_SHORT = {
    "admin": {"low-level-log-length": 50, "log-length": 50, "system-monitor": {"log-length": 120}},
    "worker": {"profile": {"enabled": False}},
}
"""Of what Dask keeps for those who debug it. Its last 1000 messages and steps, its defaults, hold the kernels of jobs
several times; its samples of the machine grow for an hour, and its profiles of jobs for 1000 s."""


def host_and_port(tracker: str) -> tuple[str, int]:
    """The host and port of `HOST:PORT`, also with `tcp://` or `tls://`; FleetInputError for what is no address."""
    text = tracker.rpartition("://")[2]
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise FleetInputError(f"a tracker is given as HOST:PORT, as in 127.0.0.1:{DEFAULT_PORT}, got {tracker!r}")
    return host.strip("[]"), int(port)


def dask_address(tracker: str, security: Any) -> str:
    """A tracker's address as Dask writes it."""
    host, port = host_and_port(tracker)
    return f"{'tls' if is_encrypted(security) else 'tcp'}://{f'[{host}]' if ':' in host else host}:{port}"


def require_tracker(tracker: str, security: Any) -> None:
    """FleetError with a sentence where nobody listens at an address, or does not speak as we do."""
    host, port = host_and_port(tracker)
    try:
        with socket.create_connection((host, port), CONNECT_S) as plain:
            if is_encrypted(security):
                context = security.get_connection_args("client")["ssl_context"]
                with context.wrap_socket(plain, server_hostname=host) as encrypted:
                    _greeting(encrypted, CONNECT_S)
            else:
                _plain_greeting(plain, host, port)
    except ssl.SSLError as error:
        why = "it speaks without TLS" if "WRONG_VERSION" in str(error) else (error.reason or str(error)).lower()
        raise _not_ours(host, port, why) from None
    except _NoDaskError:
        raise FleetError(f"what listens at {host}:{port} does not answer as a tracker does") from None
    except OSError as error:
        raise FleetError(
            f"no tracker can be reached at {host}:{port} ({error.strerror or error}): `loopwright fleet tracker` "
            "starts one"
        ) from None


def _not_ours(host: str, port: int, why: str) -> FleetError:
    files = ", ".join((CA, CERTIFICATE, KEY))
    return FleetError(
        f"the tracker at {host}:{port} is not of this fleet ({why}): use the {files} that it was started with"
    )


class _NoDaskError(OSError):
    """Something else than Dask listens."""


def _plain_greeting(plain: socket.socket, host: str, port: int) -> None:
    """Wait for the greeting of a tracker without TLS; FleetError where it speaks TLS, and so waits for us."""
    try:
        _greeting(plain, _GREETING_S)
    except _NoDaskError:
        if _speaks_tls(host, port):
            raise _not_ours(host, port, "it speaks TLS, and no --tls-dir was given") from None
        _greeting(plain, CONNECT_S - 2 * _GREETING_S)


def _greeting(connection: socket.socket, timeout_s: float) -> None:
    """Wait for the first bytes, which Dask sends unasked."""
    connection.settimeout(timeout_s)
    try:
        if not connection.recv(1):
            raise _NoDaskError
    except (TimeoutError, ConnectionResetError):
        raise _NoDaskError from None


def _speaks_tls(host: str, port: int) -> bool:
    """True where a handshake begins, or is refused for want of a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), _GREETING_S) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def connect(tracker: str, security: Any) -> Any:
    """A client of a tracker, which connects again where that restarts; FleetError where there is none."""
    from distributed import Client

    require_tracker(tracker, security)
    quiet()
    try:
        client = Client(
            dask_address(tracker, security),
            timeout=CONNECT_S,
            security=security,
            set_as_default=False,
            name="loopwright",
        )
    except (OSError, TimeoutError) as error:
        raise FleetError(f"the tracker at {tracker} does not answer as Dask's scheduler does: {error}") from None
    client._timeout = KEEP_TRYING_S  # of reconnecting, which Dask has no other option for
    return client


@cache
def _keep_logs_short() -> None:
    """Bound what Dask keeps for those who debug it, where its configuration does not say otherwise."""
    import dask
    import distributed  # noqa: F401 (its own defaults come first)

    dask.config.update_defaults({"distributed": _SHORT})


def quiet() -> None:
    """Keep to ourselves what Dask logs of lost connections: a sentence of ours says it where it matters."""
    _keep_logs_short()
    ours = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    for name in ("tornado.application", *ours):
        logger = logging.getLogger(name)
        if logger.level in (logging.NOTSET, logging.INFO, logging.WARNING):  # as Dask sets them, and not debugging
            logger.setLevel(logging.CRITICAL)


def certificates(tls_dir: str | Path | None) -> str:
    """The options that say the certificates, for a command to be copied."""
    return "" if tls_dir is None else f" --tls-dir {tls_dir}"
