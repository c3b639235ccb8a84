"""Asking a tracker who is registered, and ending devices and trackers."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from typing import Any

from .address import connect
from .devices import FleetStatus, RegisteredBuilder, RegisteredDevice, builders_of, devices_of, queues_of, serving
from .job import serve
from .protocol import device_resource, key_of, order
from .security import security_of

_STOP_S = 15.0
"""For devices to end: longer than a job usually takes."""


def fleet_status(tracker: str, *, tls_dir: str | os.PathLike[str] | None = None) -> FleetStatus:
    """The devices registered at a tracker and the queue of each key; FleetError where it cannot be reached."""
    client = connect(tracker, security_of(tls_dir))
    try:
        return _status(client, tracker)
    finally:
        client.close(timeout=2)


def require_served(key: str, tracker: str, *, tls_dir: str | os.PathLike[str] | None = None) -> None:
    """FleetError where a tracker cannot be reached, or nobody there serves a key."""
    client = connect(tracker, security_of(tls_dir))
    try:
        serving(devices_of(client.sync(client.scheduler.identity, n_workers=-1)), key, tracker)
    finally:
        client.close(timeout=2)


def _status(client: Any, tracker: str) -> FleetStatus:
    identity = client.sync(client.scheduler.identity, n_workers=-1)
    devices = devices_of(identity, client.processing())
    queues = queues_of(devices, client.run_on_scheduler(jobs_without_device))
    return FleetStatus(tracker, queues, devices, builders_of(identity))


def jobs_without_device(dask_scheduler: Any) -> dict[str, int]:
    """The jobs by key that no device takes, as the last one has gone or rests; run by Dask's scheduler."""
    asked = [key for task in dask_scheduler.unrunnable for key in map(key_of, task.resource_restrictions or ()) if key]
    return dict(Counter(asked))


def _of(status: FleetStatus, key: str | None) -> list[RegisteredDevice | RegisteredBuilder]:
    """The devices under a key; without one all of them, and the builders."""
    if key is None:
        return [*status.devices, *status.builders]
    return [each for each in status.devices if each.key == key]


def stop_fleet(
    tracker: str, *, key: str | None = None, tls_dir: str | os.PathLike[str] | None = None
) -> tuple[list[str], list[str]]:
    """End the devices under a key, or the whole fleet; the names of those that ended, and of those that did not.

    A job that a device is at is finished first.
    """
    client = connect(tracker, security_of(tls_dir))
    try:
        devices = _of(_status(client, tracker), key)
        futures = [
            client.submit(
                serve,
                order("stop"),
                key=("loopwright-stop", each.identity),
                pure=False,
                resources={device_resource(each.identity): 1},
                priority=1 << 20,
            )
            for each in devices
        ]
        left = {each.identity: each.name for each in devices}
        until_s = time.monotonic() + _STOP_S
        while left and time.monotonic() < until_s:
            here = {each.identity for each in _of(_status(client, tracker), key)}
            left = {identity: name for identity, name in left.items() if identity in here}
            time.sleep(0.2)
        del futures
        if key is None:
            with contextlib.suppress(Exception):  # it goes while it is told to
                client.shutdown()
        return [each.name for each in devices if each.identity not in left], sorted(left.values())
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=2)
