"""CUDA C as an output of stock `xdsl-opt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from ..source_target import SourceTarget
from .compile import print_cuda


@dataclass(frozen=True)
class CudaSource(SourceTarget):
    """CUDA C, for the module's device."""

    name: ClassVar[str] = "lw-cuda"
    kind: ClassVar[str] = "cuda"

    def source(self, module: ModuleOp) -> str:
        return print_cuda(module).source
