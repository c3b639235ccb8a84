"""From a kernel-level module to a kernel on this CPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import target_of
from .compile import compile_module
from .cpu import CpuFeatures, why_not_here
from .executable import ElsewhereExecutable, LlvmExecutable
from .export import CpuKernel
from .host import cpu_of
from .jit import compile_text
from .line_table import with_line_table


def build_llvm(module: ModuleOp, params: Mapping[str, Any] | None = None, check_addresses: bool = False) -> CpuKernel:
    """Compile a kernel-level module, and load it where this CPU can run it; the rest is that of `lw.build`."""
    text, artifact = compile_module(module, check_addresses)
    cpu = cpu_of(target_of(module)).using(text.features)
    runs_here = why_not_here(artifact.features) is None
    executable = (LlvmExecutable if runs_here else ElsewhereExecutable)(artifact, params)
    assembly = partial(_assembly, text.source, cpu)
    return CpuKernel(text, cpu, params, executable, executable.arguments, assembly)


def _assembly(source: str, cpu: CpuFeatures, lines: bool) -> str:
    return compile_text(with_line_table(source) if lines else source, texts=True, cpu=cpu).assembly
