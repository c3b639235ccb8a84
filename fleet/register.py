"""A device registered with a tracker as a Dask worker, again and again where the tracker restarts."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..search.measure.scratch import Scratch, ScratchError
from .address import dask_address, host_and_port, quiet
from .member import Member
from .protocol import FleetError
from .security import is_loopback

_LOOK_EVERY_S = 0.25
_TRY_EVERY_S = 1.0
_CODE_FROM_THE_WIRE = (
    "run",
    "run_coroutine",
    "upload_file",
    "plugin-add",
    "plugin-remove",
    "actor_execute",
    "actor_attribute",
)
"""Requests that Dask's workers carry out for everybody who reaches them, and devices for nobody."""

ALLOWED = {
    ("loopwright.fleet.job", "serve"),
    ("dask._task_spec", "Task"),
    ("dask._task_spec", "Alias"),
    ("dask._task_spec", "DataNode"),
    ("dask._task_spec", "TaskRef"),
    ("dask._task_spec", "Dict"),
    ("dask._task_spec", "List"),
    ("dask._task_spec", "Tuple"),
    ("distributed.shuffle._worker_plugin", "ShuffleWorkerPlugin"),
}
"""The names in pickles that a device takes: our one function, Dask's description of a task, a part of every worker."""


def take_plain_data_only() -> None:
    """Have this process, which is a device's alone, read pickles of nothing but what is allowed, from now on.

    Dask has no option for that: its `deserializers` are not asked about the pickles that tasks are (distributed
    2026.8, `protocol.core.loads`). Python asks its audit hooks before any unpickler looks up a name (PEP 578), and no
    code takes a hook back.
    """
    sys.addaudithook(refuse_other_names)


def refuse_other_names(event: str, arguments: Sequence[Any]) -> None:
    """Hook of Python's audits; UnpicklingError for a name in a pickle that is not allowed."""
    if event == "pickle.find_class" and tuple(arguments[:2]) not in ALLOWED:
        raise pickle.UnpicklingError("a device of a fleet takes jobs of plain data, and no " + ".".join(arguments[:2]))


def own_scratch() -> Scratch:
    """A folder for what a member writes; FleetError where there is none to be had."""
    try:
        return Scratch()
    except ScratchError as error:
        raise FleetError(str(error)) from None


async def register(
    device: Member, tracker: str, security: Any, host: str | None = None, said: Callable[[str], None] = lambda _: None
) -> None:
    """Serve jobs until the device is told to stop; `said` is told when it is registered, and when not."""
    from distributed.core import Status

    quiet()
    scratch = own_scratch()
    try:
        while not device.stopped.is_set():
            if not await _listens(tracker):
                await asyncio.sleep(_TRY_EVERY_S)
                continue
            worker = make_worker(device, tracker, security, str(scratch.path), host)
            try:
                await asyncio.wait_for(worker, timeout=30)
            except Exception as error:  # the tracker went, or does not take it yet
                said(f"{device} is not registered: {error}; it tries again")
                with contextlib.suppress(Exception):
                    await worker.close(timeout=1)
                await asyncio.sleep(_TRY_EVERY_S)
                continue
            said(f"{device} is registered {device.place} at {tracker}")
            await _serve_until_lost(device, worker)
            if worker.status is Status.closed and not (device.stopped.is_set() or await _listens(tracker)):
                said(f"{device} has lost the tracker at {tracker}: it waits for it")
    finally:
        scratch.remove()


def make_worker(device: Member, tracker: str, security: Any, folder: str, host: str | None) -> Any:
    """The Dask worker of a device or builder, without anything that brings code of its own."""
    from distributed import Worker
    from distributed.utils import get_ip

    at, _ = host_and_port(tracker)
    worker: Any = Worker(
        dask_address(tracker, security),
        nthreads=device.threads,
        name=f"{device.name}-{device.identity}-{time.time_ns():x}",
        resources=dict(device.resources),
        startup_information={name: partial(_facts, device, name) for name in device.information},
        metrics={"loopwright-now": lambda _: device.statistics},
        memory_limit=0,
        security=security,
        host=host or ("127.0.0.1" if is_loopback(at) else get_ip(at)),
        local_directory=folder,
        dashboard=False,
    )
    worker.loopwright_device = device
    for name in _CODE_FROM_THE_WIRE:
        worker.handlers.pop(name, None)
    return worker


def _facts(member: Member, name: str, _: Any) -> Any:
    return member.information[name]


async def _serve_until_lost(device: Member, worker: Any) -> None:
    """Return once the device stops or the connection ends, or where it takes jobs again.

    One that is set aside takes its resource back from the tracker alone: to the worker, jobs that wait here still have
    theirs, so that they are answered, and go elsewhere. To offer it again it registers anew: Dask looks again at tasks
    that no worker could run when one comes, and not when one has more to offer (distributed 2026.8, `add_resources`).
    """
    from distributed.core import Status

    offered = not device.aside
    loop = asyncio.get_running_loop()
    try:
        while worker.status in (Status.running, Status.paused, Status.init) and not device.stopped.is_set():
            await loop.run_in_executor(None, device.tidy)
            if device.aside:
                await loop.run_in_executor(None, device.try_again)
            if device.aside and offered:
                offered = False
                with contextlib.suppress(Exception):  # the connection is being lost
                    await _tell_resources(device, worker)
            if not device.aside and not offered:
                return
            await asyncio.sleep(_LOOK_EVERY_S)
    finally:
        if device.stopped.is_set():
            await asyncio.sleep(_LOOK_EVERY_S)  # the answer to who stopped it is on its way
        with contextlib.suppress(Exception):
            await worker.close(timeout=2)


async def _tell_resources(device: Member, worker: Any) -> None:
    await worker.scheduler.set_resources(resources=dict(device.resources), worker=worker.contact_address)


async def _listens(tracker: str) -> bool:
    host, port = host_and_port(tracker)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 4)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
