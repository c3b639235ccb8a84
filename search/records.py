"""Records: one self-contained JSON line per measurement, in an append-only file that several processes may share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import os
import re
import stat
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

SCHEMA = 1
"""Version of the line format; raised when a field changes its meaning."""

PRIMITIVE_PREFIX = "lw-"

_LEFT_OUT: dict[str, Any] = {"round": 0, "predicted": None, "flop": 0.0, "resources": (), "template": {}}
"""Fields that a line has only where they say something."""


class ErrorCode(StrEnum):
    """How a measurement ended."""

    OK = "OK"
    INSTANTIATION_ERROR = "INSTANTIATION_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    COMPILE_TIMEOUT = "COMPILE_TIMEOUT"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    RUN_TIMEOUT = "RUN_TIMEOUT"
    WRONG_RESULT = "WRONG_RESULT"
    DEVICE_LOST = "DEVICE_LOST"
    UNKNOWN = "UNKNOWN"


class Role(StrEnum):
    """Why a record was written: a trial of the search, a run-off at its end, or the winner of that run-off."""

    TRIAL = "trial"
    FINAL = "final"
    WINNER = "winner"


class RecordError(Exception):
    """A record, or a file of records, cannot be used; the sentence says why."""


class RecordVersionError(RecordError):
    """A record was written by another version of the line format or of a primitive."""


class RecordWarning(UserWarning):
    """Lines of a record file were skipped."""


@dataclass(frozen=True)
class Record:
    """One measurement; `times_s` holds seconds per run, one number a repeat, and is empty when it failed."""

    workload_key: str
    workload_hash: str
    target: str
    sketch: str
    decisions: tuple[int, ...]
    schedule: str
    times_s: tuple[float, ...] = ()
    error: ErrorCode = ErrorCode.OK
    message: str = ""
    build_s: float = 0.0
    run_s: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    device: str = ""
    timestamp: float = 0.0
    seed: int = 0
    artifact: str = ""
    stopped_early: bool = False
    reused: bool = False
    role: Role = Role.TRIAL
    round: int = 0
    """The batch of the search that it came with, from 1; 0: not known."""
    predicted: float | None = None
    """What the cost model said before, larger for faster; None: it said nothing."""
    flop: float = 0.0
    """Arithmetic operations of one run; 0: not known."""
    resources: tuple[Mapping[str, Any], ...] = ()
    """What each launch takes on a GPU: registers, shared bytes, bytes spilled."""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Of a template: its `name`, `args`, the `index` of the config, and the `config` as a value for each knob."""
    schema: int = SCHEMA

    @property
    def ok(self) -> bool:
        """Whether it ran and was right."""
        return self.error is ErrorCode.OK and bool(self.times_s)

    @property
    def time_s(self) -> float:
        """Seconds per run of the shortest repeat, as disturbances only ever lengthen one; infinity when it failed."""
        return min(self.times_s) if self.ok else math.inf

    def to_json(self) -> str:
        """Return the record as one line, without the newline."""
        values = asdict(self)
        for name, unset in _LEFT_OUT.items():
            if values[name] == unset:
                del values[name]
        return json.dumps(values, allow_nan=False, separators=(",", ":"))

    @staticmethod
    def from_json(line: str) -> Record:
        """Parse one line; raises RecordVersionError for another schema, RecordError for anything else wrong."""
        try:
            data = json.loads(line)
        except ValueError as error:
            raise RecordError(f"not a JSON object: {error}") from error
        if not isinstance(data, dict):
            raise RecordError("not a JSON object")
        if data.get("schema") != SCHEMA:
            raise RecordVersionError(
                f"record schema {data.get('schema')!r} cannot be read, this version reads {SCHEMA}"
            )
        return _from_dict(data)


def _from_dict(data: dict[str, Any]) -> Record:
    known = {f.name for f in fields(Record)}
    values = {name: value for name, value in data.items() if name in known}
    try:
        values["decisions"] = tuple(int(d) for d in values["decisions"])
        values["times_s"] = tuple(float(t) for t in values["times_s"])
        values["error"] = ErrorCode(values["error"])
        values["role"] = Role(values.get("role", Role.TRIAL))
        values["resources"] = tuple(values.get("resources", ()))
        return Record(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"not a record: {type(error).__name__}: {error}") from error


def workload_hash(text: str) -> str:
    """Return the hash under which a workload's text is found."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def primitives_of(schedule: str) -> set[str]:
    """The names of the primitives that a schedule uses."""
    return set(re.findall(rf"{PRIMITIVE_PREFIX}[\w-]+", schedule))


def check_replayable(record: Record, versions: Mapping[str, str]) -> None:
    """Raise RecordVersionError if a primitive that the record's schedule uses has another version now.

    `versions` maps pass names (`lw-split`) to versions, as a backend's `versions()` does; other keys are ignored.
    """
    for name in sorted(primitives_of(record.schedule) & record.versions.keys()):
        now = versions.get(name)
        if now != record.versions[name]:
            raise RecordVersionError(
                f"record of {record.workload_hash} was made with {name} version {record.versions[name]}, "
                f"this is {'without it' if now is None else 'version ' + now}: tune again"
            )


def append(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Append records to `path`, creating it and its folders; all of them arrive, or none does.

    Without records it only makes sure that the file can be opened. Raises RecordError when it cannot be written.
    """
    data = "".join(record.to_json() + "\n" for record in records).encode()
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise RecordError(f"cannot open record file {os.fspath(path)!r}: {error.strerror}") from error
    try:
        _lock(descriptor, fcntl.LOCK_EX)
        if data:
            _append_bytes(descriptor, data)
    except OSError as error:
        raise RecordError(f"cannot write record file {os.fspath(path)!r}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> None:
    with contextlib.suppress(OSError):  # some network file systems have no locks; O_APPEND still holds
        fcntl.flock(descriptor, kind)


def _append_bytes(descriptor: int, data: bytes) -> None:
    regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
    size = os.fstat(descriptor).st_size
    if regular and size and os.pread(descriptor, 1, size - 1) != b"\n":
        data = b"\n" + data  # an earlier writer was cut off inside its line
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        if regular:
            os.ftruncate(descriptor, size)
        raise


def load(path: str | os.PathLike[str], versions: Mapping[str, str] | None = None) -> list[Record]:
    """Read the records of `path` in the order of the file.

    Lines that are torn, of another schema, or (with `versions`) of another version of a primitive are skipped;
    one RecordWarning counts them and shows the first reason. Raises RecordError when the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            _lock(file.fileno(), fcntl.LOCK_SH)  # not amid another process's line
            lines = file.read().split(b"\n")
    except OSError as error:
        raise RecordError(f"cannot read record file {os.fspath(path)!r}: {error.strerror}") from error
    records: list[Record] = []
    skipped: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = Record.from_json(line.decode("utf-8", "replace"))
            if versions is not None:
                check_replayable(record, versions)
            records.append(record)
        except RecordError as error:
            skipped.append(f"line {number}: {error}")
    if skipped:
        warnings.warn(f"{os.fspath(path)}: {len(skipped)} line(s) skipped; {skipped[0]}", RecordWarning, stacklevel=2)
    return records


def select(
    records: Iterable[Record], workload_hash: str | None = None, target: str | None = None, device: str | None = None
) -> list[Record]:
    """Return the records that match every given value."""
    return [
        r
        for r in records
        if (workload_hash is None or r.workload_hash == workload_hash)
        and (target is None or r.target == target)
        and (device is None or r.device == device)
    ]


def best(
    records: Iterable[Record], workload_hash: str | None = None, target: str | None = None, device: str | None = None
) -> Record:
    """Return the fastest right record among those that match; raises RecordError when there is none.

    A run-off's winner stands for every trial before it on that workload, target and device, because trials were
    each timed once, at different moments, while the run-off timed its schedules in turn.
    """
    matching = select(records, workload_hash, target, device)
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in matching:
        if record.ok:
            groups.setdefault((record.workload_hash, record.target, record.device), []).append(record)
    if not groups:
        raise RecordError(_no_valid(matching, workload_hash, target, device))
    return min((_best_of_group(group) for group in groups.values()), key=lambda r: r.time_s)


def _best_of_group(group: Sequence[Record]) -> Record:
    winners = [r for r in group if r.role is Role.WINNER]
    trials = [r for r in group if r.role is Role.TRIAL and not r.stopped_early] or list(group)
    if not winners:
        return min(trials, key=lambda r: r.time_s)
    last = max(winners, key=lambda r: r.timestamp)
    later = [r for r in trials if r.timestamp > last.timestamp or r.template]  # a template's were not in the run-off
    return min([last, *later], key=lambda r: r.time_s)


def _no_valid(matching: Sequence[Record], workload_hash: str | None, target: str | None, device: str | None) -> str:
    wanted = {"workload": workload_hash, "target": target, "device": device}
    what = ", ".join(f"{name} {value}" for name, value in wanted.items() if value is not None) or "any workload"
    if not matching:
        return f"no record for {what}: tune it first"
    counts = ", ".join(f"{n} {code}" for code, n in Counter(r.error.value for r in matching).most_common())
    return f"no valid record for {what}: {len(matching)} record(s), all failed ({counts}); tune it again"


def distill(records: Iterable[Record]) -> list[Record]:
    """Keep the best record of each (workload, target, device), in order of first appearance."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record.ok:
            groups.setdefault((record.workload_hash, record.target, record.device), []).append(record)
    return [_best_of_group(group) for group in groups.values()]


def merge(groups: Iterable[Iterable[Record]]) -> list[Record]:
    """Return the records of all groups by time of measurement, each distinct one once."""
    distinct = {record.to_json(): record for group in groups for record in group}
    return sorted(distinct.values(), key=lambda r: r.timestamp)


@dataclass(frozen=True)
class WorkloadStats:
    """Counts and the best time of one (workload, target, device); `stopped_early` and `reused` are among the right."""

    workload_key: str
    workload_hash: str
    target: str
    device: str
    trials: int
    ok: int
    errors: Mapping[str, int]
    best_s: float
    measuring_s: float
    stopped_early: int = 0
    reused: int = 0
    rounds: int = 0
    seeds: tuple[int, ...] = ()


def stats(records: Iterable[Record]) -> list[WorkloadStats]:
    """Summarise records per (workload, target, device), in order of first appearance."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.workload_hash, record.target, record.device), []).append(record)
    return [_group_stats(group) for group in groups.values()]


def _group_stats(group: Sequence[Record]) -> WorkloadStats:
    first, trials = group[0], [r for r in group if r.role is Role.TRIAL]
    right = [r for r in group if r.ok]
    return WorkloadStats(
        first.workload_key,
        first.workload_hash,
        first.target,
        first.device,
        trials=len(trials),
        ok=sum(r.ok for r in trials),
        errors=dict(Counter(r.error.value for r in trials if not r.ok).most_common()),
        best_s=_best_of_group(right).time_s if right else math.inf,
        measuring_s=sum(r.build_s + r.run_s for r in group),
        stopped_early=sum(r.stopped_early for r in trials),
        reused=sum(r.reused for r in trials),
        rounds=len({(r.seed, r.round) for r in trials if r.round}),
        seeds=tuple(sorted({r.seed for r in trials})),
    )
