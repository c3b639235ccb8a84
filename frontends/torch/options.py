"""Options of the front end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .types import TARGET_KINDS


@dataclass(frozen=True)
class TorchOptions:
    """Options of `torch.compile(model, backend="loopwright", options={...})` and of `lw.torch.optimize`.

    `target` is that of the tensors' device; one that is named leaves tensors on other kinds of devices to PyTorch.
    `records` is a file of tuning records, which kernels take their schedules from; with `tune`, so many seconds of
    tuning are spent on each graph before it is compiled, and the records are added to that file. `freeze` takes
    parameters as constants where no gradients are computed. `versions` is how many shapes of one graph are compiled;
    further ones run in PyTorch. With `check` each kernel is held to the interpreter's results when it is compiled.
    """

    target: str | None = None
    records: str | os.PathLike[str] | None = None
    tune: float = 0.0
    freeze: bool = True
    versions: int = 8
    check: bool = False

    def __post_init__(self) -> None:
        if self.target is not None and self.target.split()[:1] not in [[kind] for kind in TARGET_KINDS.values()]:
            kinds = " or ".join(TARGET_KINDS.values())
            raise ValueError(f"graphs of PyTorch are compiled for targets of kind {kinds}, got target {self.target!r}")
        if self.tune and self.records is None:
            raise ValueError("option tune needs the option records, a file that keeps what is found")
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
