"""Code as an output of stock `xdsl-opt`: `-t lw-cuda` prints the source of a kernel, from IR at any level."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ..dialects.target import TargetAttr, target_of
from .build import lower_to_kernel


@dataclass(frozen=True)
class SourceTarget(Target):
    """An output of `xdsl-opt` in a language; a module without a target is lowered for this one's kind."""

    kind: ClassVar[str]

    @abstractmethod
    def source(self, module: ModuleOp) -> str:
        """Return the code of a module at the level of kernels."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Lower a copy of the module as far as it is not, and write its code; ValueError for one of another kind."""
        given = module.attributes.get("lw.target")
        if isinstance(given, TargetAttr) and target_of(module).kind != self.kind:
            raise ValueError(f"{self.name} prints kernels for {self.kind}, the module is for '{target_of(module)}'")
        kernel = lower_to_kernel(module, None if isinstance(given, TargetAttr) else self.kind)
        print(self.source(kernel).rstrip(), file=output)
