"""From a kernel-level module to a kernel on this CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import target_of
from ..kernel_function import Kernel
from .compile import compile_module
from .cpu import why_not_here
from .executable import ElsewhereExecutable, LlvmExecutable
from .host import cpu_of
from .jit import compile_text


def build_llvm(module: ModuleOp, params: Mapping[str, Any] | None = None, check_addresses: bool = False) -> Kernel:
    """Compile a kernel-level module, and load it where this CPU can run it; the rest is that of `lw.build`."""
    text, artifact = compile_module(module, check_addresses)
    runs_here = why_not_here(artifact.features) is None
    executable = (LlvmExecutable if runs_here else ElsewhereExecutable)(artifact, params)
    return Kernel(
        name=text.name,
        arguments=executable.arguments,
        executable=executable,
        source=text.source,
        assembly=lambda: compile_text(text.source, texts=True, cpu=cpu_of(target_of(module))).assembly,
    )
