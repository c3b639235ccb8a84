"""A backend whose schedules are bodies of OpenCL C kernels `(const float* x, float* y)`, run by 64 work-items."""

from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.executable import DeviceExecutable
from loopwright.backends.c_family.kernel_source import KernelSource, Launch
from loopwright.backends.opencl import executable
from loopwright.backends.opencl.device import checks, device_name, identity
from loopwright.backends.signature import Argument

__all__ = ["build", "checks", "device_name", "identity", "load", "versions"]

N = 64


def build(workload: str, schedule: str) -> bytes:
    source = f"__kernel void k(__global float* x, __global float* y) {{ int i = get_global_id(0); {schedule} }}"
    arguments = (Argument("x", "float32", (N,), False), Argument("y", "float32", (N,), True))
    kernel = KernelSource("k", arguments, (), (Launch("k", (1, 1, 1), (N, 1, 1), (0, 1), 0, 0, False),), source)
    return Artifact("opencl", "", kernel, (), b"").to_bytes()


def load(artifact: bytes) -> DeviceExecutable:
    return executable.load(Artifact.from_bytes(artifact, "opencl"))


def versions() -> dict[str, str]:
    return {}
