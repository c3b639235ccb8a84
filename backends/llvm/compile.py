"""From a kernel-level module to an artifact with machine code for a CPU."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import target_of
from .emit import KernelText, emit
from .executable import Artifact
from .host import cpu_of
from .jit import compile_text


def compile_module(module: ModuleOp, check_addresses: bool = False) -> tuple[KernelText, Artifact]:
    """Compile a kernel-level module; returns its LLVM IR too.

    With `check_addresses` the loaded kernel raises OutsideBufferError instead of touching what is outside of a buffer.
    """
    text = emit(module, check_addresses)
    made = compile_text(text.source, cpu=cpu_of(target_of(module)).using(text.features))
    known = (text.name, text.arguments, text.workspace_bytes, text.threads)
    return text, Artifact(*known, made.object_code, text.accesses, made.features)
