"""A kernel-level module for OpenCL as a callable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..c_family.executable import DeviceExecutable
from ..device_kernel import DeviceKernel
from .compile import compile_module
from .executable import OpenClRuntime


def build_opencl(module: ModuleOp, params: Mapping[str, Any] | None) -> DeviceKernel:
    """Print a module; the first device compiles it when the kernel is first called."""
    artifact = compile_module(module, None)
    executable = DeviceExecutable(artifact, lambda: OpenClRuntime(artifact, 0), params)
    return DeviceKernel(executable, lambda _: compile_module(module, 0).binary.decode(errors="replace"))
