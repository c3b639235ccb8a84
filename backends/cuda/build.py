"""A kernel-level module for CUDA as a callable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ..c_family.executable import DeviceExecutable
from ..device_kernel import DeviceKernel
from .architecture import Architecture
from .compile import compile_module
from .nvrtc import compile_ptx
from .runtime import CudaRuntime


def build_cuda(module: ModuleOp, params: Mapping[str, Any] | None) -> DeviceKernel:
    """Compile a module; the first device is opened when the kernel is first called."""
    artifact = compile_module(module)
    executable = DeviceExecutable(artifact, lambda: CudaRuntime(artifact), params)
    made_for = Architecture.of(artifact.architecture)
    return DeviceKernel(
        executable,
        lambda lines: compile_ptx(artifact.kernel.source, made_for.capability, exact=made_for.exact, lines=lines),
    )
