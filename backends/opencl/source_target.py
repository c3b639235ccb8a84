"""OpenCL C as an output of stock `xdsl-opt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from ..source_target import SourceTarget
from .compile import print_opencl


@dataclass(frozen=True)
class OpenclSource(SourceTarget):
    """OpenCL C, for the module's device."""

    name: ClassVar[str] = "lw-opencl"
    kind: ClassVar[str] = "opencl"

    def source(self, module: ModuleOp) -> str:
        return print_opencl(module).source
