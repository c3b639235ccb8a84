"""Registered devices and builders as a tracker tells of them, and the queue of each key."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import __version__
from ..dialects.target import Target, parse_target
from .protocol import PROTOCOL, FleetError, key_resource


@dataclass(frozen=True)
class RegisteredDevice:
    """A device, and what it has done: `mean_s` seconds a job, `last_seen_s` seconds ago. `aside` says why it rests."""

    key: str
    name: str
    identity: str
    address: str
    target: str
    backend: str
    device: str
    protocol: int
    version: str
    done: int = 0
    failed: int = 0
    mean_s: float = 0.0
    waiting: int = 0
    running: int = 0
    last_seen_s: float = 0.0
    aside: str = ""

    def require_same_protocol(self) -> None:
        """FleetError for a device of another version of the protocol."""
        if self.protocol != PROTOCOL:
            raise FleetError(
                f"device '{self.name}' is loopwright {self.version} with protocol {self.protocol}, this is loopwright "
                f"{__version__} with protocol {PROTOCOL}: install the same version on both"
            )

    @property
    def limits(self) -> Target:
        """The target with the limits of its hardware."""
        return parse_target(self.target)


@dataclass(frozen=True)
class RegisteredBuilder:
    """A machine that builds candidates for devices elsewhere, `builders` at once."""

    name: str
    identity: str
    protocol: int
    version: str
    builders: int
    done: int = 0
    failed: int = 0


@dataclass(frozen=True)
class KeyQueue:
    """The devices under a key: how many there are (0 once all have gone), how many are free, and the jobs that wait."""

    key: str
    total: int
    free: int
    pending: int


@dataclass(frozen=True)
class FleetStatus:
    """The queues of a tracker by key, its devices and its builders; `str` is the table."""

    tracker: str
    queues: Sequence[KeyQueue]
    devices: Sequence[RegisteredDevice]
    builders: Sequence[RegisteredBuilder] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        queues = [("key", "total", "free", "pending")]
        queues += [(q.key, str(q.total), str(q.free), str(q.pending)) for q in self.queues]
        devices = [("device", "key", "done", "failed", "mean (ms)", "seen (s)", "runs on")]
        for each in self.devices:
            counts = (str(each.done), str(each.failed), f"{each.mean_s * 1e3:.1f}", f"{each.last_seen_s:.1f}")
            devices.append((each.name, each.key, *counts, each.device))
        lines = [*_columns(queues), "", *_columns(devices)]
        if self.builders:
            builders = [("builder", "at once", "done", "failed")]
            builders += [(b.name, str(b.builders), str(b.done), str(b.failed)) for b in self.builders]
            lines += ["", *_columns(builders)]
        lines += [each.aside for each in self.devices if each.aside]
        return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def devices_of(
    identity: Mapping[str, Any], processing: Mapping[str, Sequence[Any]] | None = None
) -> list[RegisteredDevice]:
    """The devices among the workers of Dask's scheduler, by its `identity`; jobs at each by `processing`."""
    found = []
    for address, worker in identity["workers"].items():
        if not isinstance(known := worker.get("loopwright"), Mapping):
            continue
        now = worker.get("metrics", {}).get("loopwright-now") or {}
        jobs = len((processing or {}).get(address, ()))
        running = min(1, jobs)
        found.append(
            RegisteredDevice(
                key=str(known["key"]),
                name=str(known["name"]),
                identity=str(known["identity"]),
                address=address,
                target=str(known["target"]),
                backend=str(known["backend"]),
                device=str(known["device"]),
                protocol=int(known["protocol"]),
                version=str(known["version"]),
                done=int(now.get("done", 0)),
                failed=int(now.get("failed", 0)),
                mean_s=float(now.get("mean_s", 0.0)),
                waiting=jobs - running,
                running=running,
                last_seen_s=max(0.0, time.time() - float(worker.get("last_seen") or 0.0)),
                aside=_aside(worker, known, now),
            )
        )
    return sorted(found, key=lambda each: (each.key, each.name))


def builders_of(identity: Mapping[str, Any]) -> list[RegisteredBuilder]:
    """The builders among the workers of Dask's scheduler, by its `identity`."""
    found = []
    for worker in identity["workers"].values():
        if isinstance(known := worker.get("loopwright-builder"), Mapping):
            now = worker.get("metrics", {}).get("loopwright-now") or {}
            found.append(
                RegisteredBuilder(
                    name=str(known["name"]),
                    identity=str(known["identity"]),
                    protocol=int(known["protocol"]),
                    version=str(known["version"]),
                    builders=int(known["builders"]),
                    done=int(now.get("done", 0)),
                    failed=int(now.get("failed", 0)),
                )
            )
    return sorted(found, key=lambda each: each.name)


def _aside(worker: Mapping[str, Any], known: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The reason why a device takes no jobs: as it says, once Dask's resource of it is gone."""
    if worker.get("resources", {}).get(key_resource(str(known["key"])), 1):
        return ""
    return str(now.get("aside") or f"device '{known['name']}' is set aside")


def queues_of(devices: Sequence[RegisteredDevice], without: Mapping[str, int]) -> list[KeyQueue]:
    """The queue of each key; jobs `without` a device by key, which none is there for, or none that takes jobs."""
    by_key: dict[str, list[RegisteredDevice]] = {key: [] for key in without}
    for device in devices:
        by_key.setdefault(device.key, []).append(device)
    return [
        KeyQueue(
            key,
            len(own),
            sum(not each.running and not each.aside for each in own),
            sum(each.waiting for each in own) + without.get(key, 0),
        )
        for key, own in sorted(by_key.items())
    ]


def serving(devices: Sequence[RegisteredDevice], key: str, tracker: str) -> list[RegisteredDevice]:
    """The devices under a key; FleetError where there is none, or one of another protocol."""
    own = [each for each in devices if each.key == key]
    if not own:
        keys = ", ".join(sorted({each.key for each in devices})) or "none"
        raise FleetError(
            f"no device '{key}' at {tracker}; registered: {keys} (`loopwright fleet device --tracker {tracker} --key "
            f"{key}` registers one)"
        )
    for each in own:
        each.require_same_protocol()
    return own
