"""Options of the front end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from .types import TARGET_KINDS

BACKGROUND = "background"
"""The option `tune` for tuning beside the program."""


@dataclass(frozen=True)
class TorchOptions:
    """Options of `torch.compile(model, backend="loopwright", options={...})` and of `lw.torch.optimize`.

    `target` is that of the tensors' device; one that is named leaves tensors on other kinds of devices to PyTorch.
    `records` is a file of tuning records, which kernels take their schedules from: unless given, one in the cache
    folder, by a key of the graph. With `tune`, so many seconds of tuning are spent on each graph before it is compiled,
    and the records are added to that file; "background" tunes in a process beside, and kernels change between calls as
    better ones are found, on CPUs. `freeze` takes parameters as constants where no gradients are computed. `versions`
    is how many shapes of one graph are compiled; further ones run in PyTorch. With `buckets`, open extents of a
    dimension are padded to the next of those it names, as in `{0: (1, 8, 32)}`, where that is shown to change no
    result. With `check` each kernel is held to the interpreter's results when it is compiled. `precision` is that of
    `lw.compile`; unless given it is tf32 on CUDA devices where PyTorch's own products may round to it
    (`torch.set_float32_matmul_precision("high")`). Without `wait` calls on CPUs run in PyTorch until a thread has
    compiled what they need.
    """

    target: str | None = None
    records: str | os.PathLike[str] | None = None
    tune: float | str = 0.0
    freeze: bool = True
    versions: int = 8
    buckets: Mapping[int, Sequence[int]] = field(default_factory=dict)
    check: bool = False
    precision: str | None = None
    wait: bool = True

    def __post_init__(self) -> None:
        if self.target is not None and self.target.split()[:1] not in [[kind] for kind in TARGET_KINDS.values()]:
            kinds = " or ".join(TARGET_KINDS.values())
            raise ValueError(f"graphs of PyTorch are compiled for targets of kind {kinds}, got target {self.target!r}")
        if self.precision is not None:
            from ...graph.precision import require_precision

            require_precision(self.precision)
        if self.records is not None:
            _require_records(self.records, bool(self.tune))
        if self.tune != BACKGROUND and (isinstance(self.tune, str) or self.tune < 0):
            raise ValueError(f"option tune is seconds or '{BACKGROUND}', got {self.tune!r}")
        for dimension, steps in self.buckets.items():
            if not isinstance(dimension, int) or not steps or steps[0] < 1 or sorted(set(steps)) != list(steps):
                raise ValueError(
                    f"option buckets is extents of at least 1 in increasing order, by the dimension's number, as in "
                    f"{{0: (1, 8, 32)}}; got {self.buckets!r}"
                )
        if self.versions < 1:
            raise ValueError(f"option versions is a number of at least 1, got {self.versions}")

    def takes(self, device: Any) -> bool:
        """True where tensors on a device of PyTorch's are compiled for."""
        kind = TARGET_KINDS.get(device.type)
        return kind is not None and (self.target is None or self.target.split()[0] == kind)

    @staticmethod
    def of(given: Mapping[str, Any] | TorchOptions | None) -> TorchOptions:
        """Return options from a mapping; ValueError names one that does not exist."""
        if isinstance(given, TorchOptions):
            return given
        known = [each.name for each in fields(TorchOptions)]
        for name in given or {}:
            if name not in known:
                raise ValueError(f"the backend loopwright has no option '{name}'; it has {', '.join(known)}")
        return TorchOptions(**(given or {}))


def _require_records(records: str | os.PathLike[str], is_made: bool) -> None:
    """ValueError where the option names no file that is there, or none that can be made, if it is."""
    if not isinstance(records, str | os.PathLike):
        raise ValueError(f"option records is the path of a file, got {records!r}")
    if os.path.isdir(records):
        raise ValueError(f"option records is the path of a file, and {os.fspath(records)!r} is a folder")
    if not is_made and not os.path.exists(records):
        raise ValueError(f"option records: there is no file {os.fspath(records)!r}, and without tune none is made")
