"""From a kernel-level module to an artifact: OpenCL C, with a binary where the device is at hand."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from ...dialects.presets import PRESETS
from ...dialects.target import Target, target_of
from ..c_family.artifact import Artifact
from ..c_family.kernel_source import KernelSource
from ..c_family.source import print_module
from .executable import build_program
from .language import OpenCl
from .operations import OWN_OPERATIONS
from .platform import describe, device_at

NVIDIA_STATEMENTS = 1024
"""Statements of an innermost loop after unrolling, for NVIDIA's OpenCL compiler, which unrolls less than the one for
CUDA: a matrix product of 4096 on an H200 takes 3.20 ms so, 4.48 ms without (3.38 ms through CUDA)."""


def print_opencl(module: ModuleOp) -> KernelSource:
    """Print a kernel-level module as OpenCL C."""
    language = OpenCl(NVIDIA_STATEMENTS if _is_nvidia(target_of(module)) else 0)
    return print_module(module, language, OWN_OPERATIONS, sys.maxsize)


def _is_nvidia(target: Target) -> bool:
    return target.model.startswith("nvidia") or ("cuda", target.model) in PRESETS


def compile_module(module: ModuleOp, index: int | None = 0) -> Artifact:
    """Compile a kernel-level module for a device by its number, or print it only for none.

    Raises CompileError with the compiler's log, MissingOpenCl where there is no such device.
    """
    artifact = Artifact("opencl", "", print_opencl(module), (), b"")
    if index is None:
        return artifact
    import pyopencl as cl

    program = build_program(artifact, index)
    binary = bytes(program.get_info(cl.program_info.BINARIES)[0])
    return Artifact("opencl", describe(device_at(index)), artifact.kernel, (), binary)
