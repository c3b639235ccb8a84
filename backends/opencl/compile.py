"""From a kernel-level module to an artifact: OpenCL C, with a binary where the device is at hand."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from ..c_family.artifact import Artifact
from ..c_family.source import KernelSource, print_module
from .executable import build_program
from .language import OpenCl
from .platform import describe, device_at


def print_opencl(module: ModuleOp) -> KernelSource:
    """Print a kernel-level module as OpenCL C."""
    return print_module(module, OpenCl(), sys.maxsize)


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
