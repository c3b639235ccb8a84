"""LLVM IR as an output of stock `xdsl-opt`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from ..source_target import SourceTarget
from .emit import emit


@dataclass(frozen=True)
class LlvmSource(SourceTarget):
    """LLVM IR, for the module's CPU."""

    name: ClassVar[str] = "lw-llvm"
    kind: ClassVar[str] = "llvm"

    def source(self, module: ModuleOp) -> str:
        return emit(module).source
