"""The tracker: Dask's scheduler, closed to strangers, that loses a job after as many devices as we say."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import AsyncIterator
from typing import Any

from .address import host_and_port, quiet
from .link import MOST_LOST
from .protocol import FleetError
from .register import own_scratch

_SILENT = "15s"
"""After which a device that says nothing, as one that was stopped, counts as lost; devices speak every second."""


@contextlib.asynccontextmanager
async def tracker(host: str, port: int, security: Any, dashboard: bool = False) -> AsyncIterator[Any]:
    """Run a scheduler; FleetError where the address cannot be had."""
    import dask
    from distributed import Scheduler
    from distributed.scheduler import DEFAULT_EXTENSIONS
    from distributed.spans import SpansSchedulerExtension

    class NoSpans(SpansSchedulerExtension):  # type: ignore[misc]
        """Dask's spans without tasks: they keep a record of every job for ever (distributed 2026.8)."""

        def observe_tasks(self, tss: Any, code: Any, span_metadata: Any) -> dict[Any, Any]:
            return {}

        def heartbeat(self, ws: Any, data: Any) -> None:
            pass

    quiet()
    scratch = own_scratch()
    settings = {"distributed.scheduler.worker-ttl": _SILENT, "distributed.worker.daemon": False}
    with dask.config.set({**settings, "temporary-directory": str(scratch.path)}):
        scheduler = Scheduler(
            host=host,
            port=port,
            security=security,
            allowed_failures=MOST_LOST,
            dashboard=dashboard and has_dashboard(),
            dashboard_address=f"{host}:0",
            extensions={**DEFAULT_EXTENSIONS, "spans": NoSpans},
            protocol="tls" if security.require_encryption else "tcp",
        )
        try:
            await scheduler
        except OSError as error:
            with contextlib.suppress(Exception):
                await scheduler.close()
            scratch.remove()
            raise FleetError(f"no tracker can listen at {host}:{port}: {error.strerror or error}") from None
    try:
        yield scheduler
    finally:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(scheduler.close(), 10)
        scratch.remove()


def has_dashboard() -> bool:
    """True where the package that draws Dask's dashboard is installed."""
    return importlib.util.find_spec("bokeh") is not None


def address_of(scheduler: Any) -> str:
    """The address of a tracker, as devices and tuners are told it."""
    host, port = host_and_port(scheduler.address)
    return f"{host}:{port}"
