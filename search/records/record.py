"""A record: one measurement as a value and as a line of JSON, every field of which is checked when it is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from statistics import median
from typing import Any, NoReturn, TypeVar

from ...dialects.errors import Error

E = TypeVar("E", bound=StrEnum)

SCHEMA = 1
"""Version of the line format; raised when a field changes its meaning."""

LONGEST_LINE = 1 << 20
"""Bytes of a line; the longest that tuning writes, an error's text and a schedule, are some tens of kilobytes."""
SHORTEST_S = 1e-12
"""Seconds of a run: less than a clock cycle of any device is a damaged number."""
LONGEST_S = 1e9
"""Seconds of a run, a build or a search: 30 years."""

_LAST_STAMP = 253402300799.0
"""The last second of the year 9999, after which `time.gmtime` and most calendars know no dates."""
_DEEPEST = 16
"""Lists and objects inside one another; a template's arguments have about four."""
_MOST = 1 << 16
"""Elements of a list."""
_LARGEST = (1 << 63) - 1
"""Whole numbers of 64 bits with a sign."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SHOWN = 40
"""Characters of a wrong value that an error shows."""

_LEFT_OUT: dict[str, Any] = {
    "round": 0,
    "predicted": None,
    "flop": 0.0,
    "resources": (),
    "template": {},
    "limits": {},
    "fleet": {},
}
"""Fields that a line has only where they say something."""


class ErrorCode(StrEnum):
    """Outcome of a measurement."""

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
    """The reason for a record: a trial of the search, a run-off at its end, or the winner of that run-off."""

    TRIAL = "trial"
    FINAL = "final"
    WINNER = "winner"


class RecordError(Error):
    """A record, or a file of records, cannot be used; the sentence says why."""


class RecordVersionError(RecordError):
    """A record was written by another version of the line format or of a primitive."""


@dataclass(frozen=True)
class Record:
    """One measurement; `times_s` holds seconds per run, one number a repeat, and is empty when it failed.

    `workload_key` is JSON `[name, arguments, hash]`, `workload_hash` of the workload's IR, `target` a target's text.
    `decisions` are a row of the sketch named `sketch`; `schedule`, the pass pipeline, says by itself what was measured.
    `message` is what an `error` said. `build_s` and `run_s` are seconds of building and of running with the check,
    `timestamp` seconds since 1970. `versions` are those of packages and primitives, `artifact` a hash of the machine
    code and its launches: with `reused` an earlier record of the same one had been timed. One that is `stopped_early`
    was clearly slower than the best after fewer repeats.
    """

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
    """Prediction of the cost model before, larger for faster; None: it made none."""
    flop: float = 0.0
    """Arithmetic operations of one run; 0: not known."""
    resources: tuple[Mapping[str, Any], ...] = ()
    """Resources of each launch on a GPU: registers, shared bytes, bytes spilled."""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Of a template: its `name`, `args`, the `index` of the config, and the `config` as a value for each knob."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits of the device when the search began: `gflops_per_s` by element type, `gbytes_per_s`, and the `source`."""
    fleet: Mapping[str, Any] = field(default_factory=dict)
    """Of a fleet: the `device` that measured it, and when its job there `started` and `ended`, seconds since 1970."""
    schema: int = SCHEMA

    @property
    def ok(self) -> bool:
        """True where it ran and was right."""
        return self.error is ErrorCode.OK and bool(self.times_s)

    @property
    def time_s(self) -> float:
        """Seconds per run of the shortest repeat, as disturbances only ever lengthen one; infinity when it failed."""
        return min(self.times_s) if self.ok else math.inf

    def times_as_fast(self, other: Record) -> float:
        """Time of another record over that of this one, by what a search decides by.

        That is the median where both were timed in turn at its end, as of laps among neighbours the shortest is one
        that was spared by chance; else the shortest.
        """
        decide = min if Role.TRIAL in (self.role, other.role) else median
        return decide(other.times_s) / decide(self.times_s)

    @property
    def gflops_per_s(self) -> float:
        """10^9 arithmetic operations a second; 0 when it failed or they are not known."""
        return self.flop / self.time_s / 1e9

    def __str__(self) -> str:
        """The workload, how fast it is or how it failed, and the config of a template, or the schedule."""
        known = key_of(self.workload_key)
        name = self.workload_key if known is None else known[0]
        result = duration(self.time_s) if self.ok else self.error.value
        chosen = self.schedule
        if self.template:
            config = self.template.get("config")
            values = config.items() if isinstance(config, Mapping) else ()
            chosen = ", ".join(f"{knob}={value}" for knob, value in values) or str(config)
        return f"{name} on {self.device or self.target}: {result}, {self.sketch}: {chosen}"

    def to_json(self) -> str:
        """Return the record as one line, without the newline."""
        values = asdict(self)
        for name, unset in _LEFT_OUT.items():
            if values[name] == unset:
                del values[name]
        return json.dumps(values, allow_nan=False, separators=(",", ":"))

    @staticmethod
    def from_json(line: str) -> Record:
        """Parse one line; raises RecordVersionError for another schema, RecordError for anything else wrong.

        Each field has the type and the range that docs/records.md gives it, so that what follows may rely on them:
        numbers are finite, times above 0, texts can be printed and encoded, and nothing is nested deeply.
        """
        if len(line) > LONGEST_LINE:
            raise RecordError(f"a line of {len(line):,} characters, where a record has {LONGEST_LINE:,} at most")
        try:
            data = json.loads(line, parse_constant=_no_number)
        except RecursionError:
            raise RecordError("not a record: lists or objects are nested too deeply") from None
        except ValueError as error:
            raise RecordError(f"not a JSON object: {error}") from error
        if not isinstance(data, dict):
            raise RecordError("not a JSON object")
        if "schema" not in data:
            raise RecordError("no record of loopwright's: it names no schema")
        schema = data["schema"]
        if isinstance(schema, bool) or schema != SCHEMA:
            raise RecordVersionError(f"record schema {_shown(schema)} cannot be read, this version reads {SCHEMA}")
        try:
            return _from_dict(data)
        except ValueError as error:
            raise RecordError(f"not a record: {error}") from error


def duration(seconds: float) -> str:
    """Seconds with a prefix: `12.3 us`."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def key_of(text: str) -> tuple[str, list[Any], str] | None:
    """The name, the arguments and the hash of a workload key; None where the text is no such key."""
    try:
        match json.loads(text):
            case [str(name), list(args), str(digest)]:
                return name, args, digest
    except (ValueError, RecursionError):
        pass
    return None


def _from_dict(data: dict[str, Any]) -> Record:
    missing = [name for name in _REQUIRED if name not in data]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    values = {name: _field(name, check, data[name]) for name, check in _FIELDS.items() if name in data}
    record = Record(**values)
    if record.error is ErrorCode.OK and not record.times_s:
        raise ValueError("it is OK, but has no times_s")
    return record


def _field(name: str, check: Callable[[Any], Any], value: Any) -> Any:
    """A field's value, checked; ValueError with its name."""
    try:
        return check(value)
    except ValueError as error:
        raise ValueError(f"{name} must be {error}, got {_shown(value)}") from None


def _shown(value: Any) -> str:
    """A wrong value, shortened; nothing of one that is too large or too deep to be written out."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _line(value: Any) -> str:
    """A text of one line."""
    if not isinstance(value, str) or not _encodes(value) or _CONTROL.search(value):
        raise ValueError("a text of one line")
    return value


def _lines(value: Any) -> str:
    if not isinstance(value, str) or not _encodes(value):
        raise ValueError("a text")
    return value


def _encodes(text: str) -> bool:
    """False for halves of surrogate pairs, which cannot be printed or written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _digest(value: Any) -> str:
    """A hash, which becomes a part of file names."""
    if not isinstance(value, str) or not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", value):
        raise ValueError("1 to 64 letters and digits")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return value

    return check


def _number(low: float, high: float, what: str) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(what)  # comparisons refuse NaN, and take whole numbers of any size
        return float(value)

    return check


def _either(unset: Any, check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: unset if value is unset else check(value)


def _tuple(check: Callable[[Any], Any], what: str) -> Callable[[Any], tuple[Any, ...]]:
    def check_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > _MOST:
            raise ValueError(what)
        try:
            return tuple(map(check, value))
        except ValueError:
            raise ValueError(what) from None

    return check_all


def _code(value: Any) -> ErrorCode:
    return _of_enum(ErrorCode, value)


def _role(value: Any) -> Role:
    return _of_enum(Role, value)


def _of_enum(kind: type[E], value: Any) -> E:
    if not isinstance(value, str) or value not in {member.value for member in kind}:
        raise ValueError(f"one of {', '.join(member.value for member in kind)}")
    return kind(value)


def _names(value: Any) -> dict[str, str]:
    """Texts by name."""
    if not isinstance(value, dict):
        raise ValueError("an object of texts")
    try:
        return {_line(name): _line(text) for name, text in value.items()}
    except ValueError:
        raise ValueError("an object of texts") from None


def _object(value: Any) -> dict[str, Any]:
    """An object of anything that is flat enough, and has only numbers and texts that can be written again."""
    if not isinstance(value, dict) or not _plain(value, _DEEPEST):
        raise ValueError(f"an object of numbers and texts, nested {_DEEPEST} deep at most")
    return value


def _plain(value: Any, depth: int) -> bool:
    match value:
        case str():
            return _encodes(value)
        case bool() | None:
            return True
        case int():
            return abs(value) <= _LARGEST
        case float():
            return math.isfinite(value)
        case dict():
            return depth > 0 and all(_encodes(name) for name in value) and _all_plain(value.values(), depth - 1)
        case list():
            return depth > 0 and _all_plain(value, depth - 1)
    return False


def _all_plain(values: Iterable[Any], depth: int) -> bool:
    return all(_plain(value, depth) for value in values)


_SECONDS = _number(0.0, LONGEST_S, f"seconds from 0 to {LONGEST_S:g}")
_TIME = _number(SHORTEST_S, LONGEST_S, f"seconds from {SHORTEST_S:g} to {LONGEST_S:g}")
_ANY = _number(-1e300, 1e300, "a finite number")
_AMOUNT = _number(0.0, 1e300, "a number from 0")

_FIELDS: dict[str, Callable[[Any], Any]] = {
    "workload_key": _line,
    "workload_hash": _digest,
    "target": _line,
    "sketch": _line,
    "decisions": _tuple(_whole(0, _LARGEST), "a list of whole numbers from 0"),
    "schedule": _line,
    "times_s": _tuple(_TIME, f"a list of seconds from {SHORTEST_S:g} to {LONGEST_S:g}"),
    "error": _code,
    "message": _lines,
    "build_s": _SECONDS,
    "run_s": _SECONDS,
    "versions": _names,
    "device": _line,
    "timestamp": _number(0.0, _LAST_STAMP, "seconds since 1970"),
    "seed": _whole(-_LARGEST, _LARGEST),
    "artifact": _line,
    "stopped_early": _flag,
    "reused": _flag,
    "role": _role,
    "round": _whole(0, _LARGEST),
    "predicted": _either(None, _ANY),
    "flop": _AMOUNT,
    "resources": _tuple(_object, "a list of objects"),
    "template": _object,
    "limits": _object,
    "fleet": _object,
}
_REQUIRED = ("workload_key", "workload_hash", "target", "sketch", "decisions", "schedule", "times_s", "error")
assert {f.name for f in fields(Record)} == {*_FIELDS, "schema"}, "each field of a record is checked"
