"""Programs of the kernel dialect for GPUs: made from a body, interpreted, run on OpenCL, compiled for CUDA."""

import functools
import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from kernel_elements import DTYPE
from late_notes import noting
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from loopwright.backends.c_family.executable import DeviceExecutable
from loopwright.backends.context import create_context
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.search.measure.reference import Reference

CAPABILITIES = (75, 80, 90)
"""The least that CUDA 13's compiler takes, and the two generations that servers have."""


def parse(text: str) -> ModuleOp:
    module = Parser(create_context(), text).parse_module()
    module.verify()
    return module


@functools.cache
def opencl_device() -> int:
    """Return the number of a device that runs kernels; without one the tests fail in CI, and are skipped elsewhere."""
    from loopwright.backends.opencl.platform import MissingOpenCl, device_at

    try:
        device_at(0)
    except MissingOpenCl as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return 0


def load_opencl(module: ModuleOp, index: int) -> DeviceExecutable:
    """Load a kernel-level module on a device from its source.

    PoCL would compile each kernel once more to make a binary first; tests of the runtime and of measuring load those.
    """
    from loopwright.backends.opencl.compile import compile_module
    from loopwright.backends.opencl.executable import load

    return load(compile_module(module, None), index)


def run_opencl(module: ModuleOp, *inputs: np.ndarray) -> list[np.ndarray]:
    """Build a kernel-level module, run it on the device, and return its outputs."""
    executable = load_opencl(module, opencl_device())
    outputs = [np.zeros(a.shape, a.dtype) for a in executable.arguments if a.is_output]
    executable.run([*map(np.ascontiguousarray, inputs), *outputs])
    return outputs


def check_on_opencl(workload: ModuleOp, reference: Reference, schedules: Iterable[str]) -> None:
    """Build each schedule of a workload, run it into outputs that hold NaN or 77, and compare with what is right."""
    index, text = opencl_device(), str(workload)
    for schedule in dict.fromkeys(schedules):
        kernel = load_opencl(scheduled_kernel(text, schedule), index)
        outputs = [np.full(e.shape, np.nan if e.dtype.kind == "f" else 77, e.dtype) for e in reference.expected]
        kernel.run([*reference.inputs, *outputs])
        check_outputs(outputs, reference, schedule)


def check_interpreted(workload: ModuleOp, reference: Reference, schedules: Iterable[str]) -> None:
    """Interpret each schedule of a workload for a GPU, free of races, and compare with what is right."""
    text = str(workload)
    for schedule in dict.fromkeys(schedules):
        with noting(schedule):
            outputs = run_kernel(scheduled_kernel(text, schedule), reference.inputs)
        check_outputs(outputs, reference, schedule)


def check_outputs(outputs: Sequence[np.ndarray], reference: Reference, schedule: str) -> None:
    """Compare outputs with those of a reference, within its tolerances."""
    for got, expected, (atol, rtol) in zip(outputs, reference.expected, reference.tolerances, strict=True):
        right = np.asarray(expected, np.float64)
        np.testing.assert_allclose(np.asarray(got, np.float64), right, atol=atol, rtol=rtol, err_msg=schedule)


def compile_cuda(module: ModuleOp, capabilities: Sequence[int] = CAPABILITIES) -> None:
    """Print a kernel-level module for several architectures and compile each; registers must not be spilled."""
    from loopwright.backends.cuda.compile import compile_module
    from loopwright.dialects.target import Target, TargetAttr

    for capability in capabilities:
        module.attributes["lw.target"] = TargetAttr(Target(kind="cuda", compute_capability=capability))
        artifact = compile_module(module)
        assert artifact.binary[:4] == b"\x7fELF"
        assert [r.name for r in artifact.resources] == [launch.name for launch in artifact.kernel.launches]
        assert all(r.registers > 0 and r.spill_store_bytes == 0 for r in artifact.resources)


def elementwise(
    bodies: Mapping[str, str], inputs: Sequence[str], outputs: Mapping[str, str], lanes: int, size: int
) -> str:
    """Return a kernel that runs each of `bodies` on elements of its inputs: lanes %x0, %x1, ... give %r.

    A body is one or more lines; `$v` in it stands for `vector<..x` or nothing, `$e` for its end. Output `name` is of
    type `outputs[name]`. Each thread does `lanes` elements.
    """
    arguments = [f'%a{n} : memref<{size}x{t}> {{lw.name = "a{n}"}}' for n, t in enumerate(inputs)]
    arguments += [f'%o_{name} : memref<{size}x{outputs[name]}> {{lw.name = "{name}", lw.output}}' for name in bodies]
    lines = [
        f"func.func @op({', '.join(arguments)}) {{",
        f"lw_kernel.launch grid [1, 1, 1] block [{size // lanes}, 1, 1] {{",
    ]
    lines += ['%t = lw_kernel.thread "threadIdx.x" : index', f"%n = arith.constant {lanes} : index"]
    lines.append("%i = arith.muli %t, %n : index")
    for n, t in enumerate(inputs):
        align = f" align {lanes * np.dtype(DTYPE[t]).itemsize}" if lanes > 1 else ""
        lines.append(f"%x{n} = lw_kernel.load %a{n}[%i]{align} : memref<{size}x{t}> -> {typed(t, lanes)}")
    for name, body in bodies.items():
        result = outputs[name]
        align = f" align {lanes * np.dtype(DTYPE[result]).itemsize}" if lanes > 1 else ""
        text = body.replace("$v", f"vector<{lanes}x" if lanes > 1 else "").replace("$e", ">" if lanes > 1 else "")
        lines += [text.replace("%r", f"%r_{name}").replace("%c", f"%c_{name}").replace("%d", f"%d_{name}")]
        stored = f"{typed(result, lanes)}, memref<{size}x{result}>"
        lines.append(f"lw_kernel.store %r_{name}, %o_{name}[%i]{align} : {stored}")
    return "\n".join([*lines, "}", "func.return", "}"])


def typed(kind: str, lanes: int) -> str:
    return f"vector<{lanes}x{kind}>" if lanes > 1 else kind
