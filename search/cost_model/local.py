"""Cost models of this user's CPUs, trained where they are used (`lw.calibrate`): they take the place of what ships."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from ...dialects.caller import warn_caller
from ...dialects.shown_text import one_line
from ...dialects.target import Target
from ...storage.code_digest import code_digest
from ...storage.folders import models_folder
from ...storage.ownership import is_ours
from .general import General
from .plain_file import Fields, PlainFileError, read_plain, write_plain
from .saved import MAGIC, as_state, known_features
from .store import CostModelError

MODEL, SAMPLES = "cost.model", "samples.jsonl"
"""Files of a target's folder: the model, and the records that it was trained on."""
_ESTIMATES = ("search/estimates", "search/features", "search/rules")
"""Folders of the code that a model corrects the estimates of."""
_DIGITS = 8
"""Of a target's digest: targets of one model differ in their caches."""
_LONGEST = 400
"""Characters of a text in a file. A choice: a target has 200 at most."""


class CalibrationWarning(UserWarning):
    """A calibrated cost model is there and is not used: it is damaged, or corrects what is estimated otherwise now."""


@dataclass(frozen=True)
class Calibration:
    """A cost model of one core of a CPU, and how good it is.

    `picks` has, for the `calibrated` model of workloads that it has not seen, for the one that `ships` (where one
    does) and for `estimates` alone, how long what it picks of a workload's samples takes over the fastest, in geometric
    mean. `kept` says if it was good enough to be used.
    """

    target: str
    device: str
    samples: int
    workloads: int
    picks: Mapping[str, float]
    kept: bool
    made_s: float = field(default_factory=time.time)
    """Seconds since 1970."""
    estimates: str = field(default_factory=lambda: code_digest(_ESTIMATES))
    """Digest of the code that estimates."""

    @property
    def is_current(self) -> bool:
        """True where candidates are estimated as they were when it was trained."""
        return self.estimates == code_digest(_ESTIMATES)

    @property
    def in_use(self) -> bool:
        """True where schedules are chosen by it."""
        return self.kept and self.is_current

    def __str__(self) -> str:
        """A line."""
        picks = ", ".join(f"{name} {ratio:.3f}" for name, ratio in self.picks.items())
        state = (
            "in use"
            if self.in_use
            else "not used: " + ("it picks no better, or by chance" if self.is_current else "outdated")
        )
        return f"{self.target}: {self.samples} samples of {self.workloads} workloads on {self.device}; {picks}; {state}"

    @staticmethod
    def of(target: Target) -> Calibration | None:
        """That of a target, whatever its cores; None where there is none, CostModelError where it is damaged."""
        path = _model_file(target)
        if path is None or not path.is_file():
            return None
        try:
            return _read_about(read_plain(path, MAGIC))
        except PlainFileError as error:
            raise CostModelError(f"{path} is no calibrated cost model: {error}") from None

    @staticmethod
    def every() -> Iterator[tuple[Path, Calibration | None]]:
        """Each folder of this user's, with its calibration; None where there is none that can be read."""
        folder = models_folder()
        for path in sorted(folder.glob(f"*/{MODEL}")) if folder is not None else ():
            try:
                yield path.parent, _read_about(read_plain(path, MAGIC))
            except (PlainFileError, OSError):
                yield path.parent, None


def folder_of(target: Target) -> Path | None:
    """The folder of a CPU's calibration, whatever its cores; None where this user has no home."""
    folder, alone = models_folder(), str(target.with_cores(1))
    digest = hashlib.sha256(alone.encode()).hexdigest()[:_DIGITS]
    return None if folder is None else folder / f"{target.kind}-{target.model}-{digest}"


def _model_file(target: Target) -> Path | None:
    folder = folder_of(target)
    return None if folder is None else folder / MODEL


def keep(model: General, about: Calibration, folder: Path) -> None:
    """Write a model with what is known of it, in place of what is there, which may be damaged; OSError if it fails."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / MODEL
    if not is_ours(path, [MAGIC.encode()]):
        path.unlink(missing_ok=True)
    values = {"features": known_features(), **as_state(model), "calibration": json.dumps(asdict(about))}
    write_plain(path, MAGIC, values)


def remove(target: Target) -> bool:
    """Remove a target's model and its samples; False where there are none."""
    folder = folder_of(target)
    if folder is None or not folder.is_dir():
        return False
    shutil.rmtree(folder)
    return True


def local_model(target: Target) -> General | None:
    """The calibrated model for one core of a CPU; None where none is in use, with a warning where one cannot be."""
    path = _model_file(target)
    try:
        status = None if path is None else path.stat()
    except OSError:
        return None
    if path is None or status is None:
        return None
    found = _loaded(path, status.st_mtime_ns, status.st_size)
    if isinstance(found, str):
        warn_caller(found, CalibrationWarning)
        return None
    return found


@cache
def _loaded(path: Path, changed_ns: int, size: int) -> General | str | None:
    """The model in a file; None where it is not to be used, and a sentence where it cannot be."""
    unused = f"the calibrated cost model {path} is not used"
    try:
        fields = read_plain(path, MAGIC)
        model = General.read(fields.part("state"))
        about = _read_about(fields)
    except (PlainFileError, OSError) as error:
        return f"{unused}: {error}; `loopwright calibrate` makes another, `loopwright calibrate --remove` removes it"
    if not about.is_current:
        cause = "another version of loopwright made it, which estimates otherwise"
        return f"{unused}: {cause}; `loopwright calibrate --train-only` trains it anew"
    return model if about.kept else None


def _read_about(fields: Fields) -> Calibration:
    """The calibration in a file; PlainFileError where a value is none that it has."""
    try:
        values = json.loads(fields.text("calibration"))
        texts = [one_line(str(values[name]), _LONGEST) for name in ("target", "device", "estimates")]
        samples, workloads = int(values["samples"]), int(values["workloads"])
        picks = {one_line(str(name), _LONGEST): float(ratio) for name, ratio in values["picks"].items()}
        made_s, kept = float(values["made_s"]), bool(values["kept"])
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        raise PlainFileError("'calibration' is not what a calibration writes") from None
    if not all(math.isfinite(ratio) for ratio in (made_s, *picks.values())):
        raise PlainFileError("'calibration' has numbers that are not finite")
    target, device, estimates = texts
    return Calibration(target, device, samples, workloads, picks, kept, made_s, estimates)
