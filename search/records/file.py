"""Records: one self-contained JSON line per measurement, in an append-only file that several processes may share."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from ...dialects.caller import warn_caller
from ...passes.installed import installed_passes
from ...storage.ownership import is_ours, require_ours
from .record import LONGEST_LINE
from .record import ErrorCode as ErrorCode
from .record import Record as Record
from .record import RecordError as RecordError
from .record import RecordVersionError as RecordVersionError
from .record import Role as Role

_OWN_PASSES = "lw-"
_OPTIONS = re.compile(r'\{(?:"[^"\\\n]*"|[^"{}])*\}')
"""Options of a step of a schedule's text, in which quoted names may have commas."""

DEFAULT_SKETCH = "default"
"""The sketch name of the first trial, the schedule that an untuned build uses."""

RECORD_MARKS = (b'{"workload_key"', b'"workload_key":')
"""Marks of files of records: the first field of a line, which a torn one keeps, wherever other tools put it."""

_LINES_SHOWN = 8
"""Numbers of skipped lines that a warning names."""


class RecordWarning(UserWarning):
    """Lines of a record file were skipped."""


def primitives_of(schedule: str) -> set[str]:
    """The names of the primitives that a schedule uses."""
    return {step.strip() for step in _OPTIONS.sub("", schedule).split(",")} - {""}


def is_primitive(name: str) -> bool:
    """True where a version's name is that of a primitive, ours or another package's, and of no package."""
    return name.startswith(_OWN_PASSES) or name in installed_passes()


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
        require_ours(path, "record file", RECORD_MARKS)
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


def require_writable(path: str | os.PathLike[str]) -> None:
    """Raise RecordError where records could not be appended to `path`, as far as is known without making the file."""
    place = Path(path)
    try:
        there = next(one for one in (place, *place.absolute().parents) if one.exists())
        if there != place and not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if there != place and not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise RecordError(f"cannot open record file {os.fspath(path)!r}: {error.strerror}") from error
    if there == place:
        append(path, [])


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

    Lines that are torn, no records (a field has another type or is out of its range), of another schema, or (with
    `versions`) of another version of a primitive are skipped; one RecordWarning counts them, names them, and shows the
    first reason. Raises RecordError when the file cannot be read, or is no file of records.
    """
    records: list[Record] = []
    skipped: dict[int, RecordError] = {}
    try:
        with open(path, "rb") as file:
            _lock(file.fileno(), fcntl.LOCK_SH)  # not amid another process's line
            lines = ((number, line) for number, line in enumerate(_lines(file), start=1) if line.strip())
            for number, line in lines:
                try:
                    records.append(_record_in(line, versions))
                except RecordError as error:
                    skipped[number] = error
    except OSError as error:
        raise RecordError(f"cannot read record file {os.fspath(path)!r}: {error.strerror}") from error
    if skipped and not records and not is_ours(path, RECORD_MARKS):
        raise RecordError(f"{os.fspath(path)} holds no record: {_what_was_skipped(skipped)}")
    if skipped:
        warn_caller(f"{os.fspath(path)}: {_what_was_skipped(skipped)}", RecordWarning)
    return records


def _record_in(line: bytes, versions: Mapping[str, str] | None) -> Record:
    """The record in a line of a file; RecordError where it is none, or is of other versions of primitives."""
    record = Record.from_json(line.decode("utf-8", "replace"))
    if versions is not None:
        check_replayable(record, versions)
    return record


def loaded(records: str | os.PathLike[str] | Iterable[Record]) -> list[Record]:
    """The records of a file, or those given; TypeError for what is neither."""
    if isinstance(records, str | os.PathLike):
        return load(records)
    if not isinstance(records, Iterable):
        raise TypeError(f"records are the path of a file, or a list of records, got {type(records).__name__}")
    return list(records)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is longer than a record can be no more than shows that, however long it is."""
    while line := file.readline(LONGEST_LINE + 2):
        yield line.rstrip(b"\n")
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)


def _what_was_skipped(skipped: Mapping[int, RecordError]) -> str:
    first, *others = skipped
    text = f"{len(skipped)} line(s) skipped; line {first}: {skipped[first]}"
    if others:
        more = f" and {len(others) - _LINES_SHOWN} more" if len(others) > _LINES_SHOWN else ""
        text += f" (also line {', '.join(map(str, others[:_LINES_SHOWN]))}{more})"
    return text


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


def best(records: Iterable[Record]) -> Record:
    """Return the fastest right record; raises RecordError when there is none.

    Trials were each timed once, at different moments; a run-off timed the best of them in turn. So its winner stands,
    on its workload, target and device, for what came before it: trials and winners of the schedules that competed, and
    trials no faster than the slowest of these was as a trial, the untuned schedule apart. What is faster was not known
    to the run-off, whatever its place, and competes with the winner, as does every trial that comes after; one that
    failed in the run-off does not. "Before" is
    the order of the records, of a file that of its lines: no clock decides, and no stamp hides a better trial.
    """
    given = list(records)
    found = distill(given)
    if not found:
        raise RecordError(_no_valid(given))
    return min(found, key=lambda r: r.time_s)


def _groups(records: Iterable[Record]) -> list[list[Record]]:
    """Records by workload, target and device, in order of first appearance."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.workload_hash, record.target, record.device), []).append(record)
    return list(groups.values())


def _best_of_group(group: Sequence[Record]) -> Record:
    """The record that counts among those of one workload, target and device, of which one is right: see `best`."""
    standing: list[Record] = []
    for are_trials, block in groupby(group, lambda r: r.role is Role.TRIAL):
        if are_trials:
            standing += [r for r in block if r.ok and not r.stopped_early]
        else:
            standing = _after_run_off(standing, list(block))
    return min(standing or group, key=lambda r: r.time_s)


def _after_run_off(standing: Sequence[Record], run_off: Sequence[Record]) -> list[Record]:
    """Return what still counts of `standing`, and the winner of the run-off that follows it."""
    competed = {r.schedule for r in run_off}
    winners = {r.schedule: r for r in run_off if r.role is Role.WINNER and r.ok}
    if not winners:
        return [*standing]
    of_template = any(r.template for r in run_off)  # whose trials were known; classic tuners have no run-off
    known = [r for r in standing if r.role is Role.TRIAL and bool(r.template) == of_template]
    tried_s = [r.time_s for r in known if r.schedule in competed and r.sketch != DEFAULT_SKETCH]
    known_s = max(tried_s, default=math.inf)
    left = [
        r
        for r in standing
        if bool(r.template) != of_template or (r.schedule not in competed and _may_be_better(r, known_s))
    ]
    return [*left, *winners.values()]


def _may_be_better(record: Record, known_s: float) -> bool:
    """True for the winner of another run-off, and for a trial faster than those that were known."""
    return record.role is Role.WINNER or record.time_s < known_s


def _no_valid(records: Sequence[Record]) -> str:
    if not records:
        return "no record of it: tune it first"
    counts = ", ".join(f"{n} {code}" for code, n in Counter(r.error.value for r in records).most_common())
    return f"no valid record: {len(records)} record(s), all failed ({counts}); tune it again"


def distill(records: Iterable[Record]) -> list[Record]:
    """Keep the best record of each (workload, target, device), in order of first appearance."""
    return [_best_of_group(group) for group in _groups(records) if any(record.ok for record in group)]


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
    return [_group_stats(group) for group in _groups(records)]


def _group_stats(group: Sequence[Record]) -> WorkloadStats:
    first, trials = group[0], [r for r in group if r.role is Role.TRIAL]
    return WorkloadStats(
        first.workload_key,
        first.workload_hash,
        first.target,
        first.device,
        trials=len(trials),
        ok=sum(r.ok for r in trials),
        errors=dict(Counter(r.error.value for r in trials if not r.ok).most_common()),
        best_s=_best_of_group(group).time_s if any(r.ok for r in group) else math.inf,
        measuring_s=sum(r.build_s + r.run_s for r in group),
        stopped_early=sum(r.stopped_early for r in trials),
        reused=sum(r.reused for r in trials),
        rounds=len({(r.seed, r.round) for r in trials if r.round}),
        seeds=tuple(sorted({r.seed for r in trials})),
    )
