"""Lower scheduled loops and run the kernel twice: interpreted, every access checked, and compiled, between fences."""

from math import prod

import numpy as np
from late_notes import noting
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from loopwright.backends.context import create_context
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.executable import Artifact, LlvmExecutable
from loopwright.dialects.element import dtype_name
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.loop import blocks_in
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel

MOST_INTERPRETED = 20_000
"""Instances of blocks; the interpreter takes some 20 to 100 us for each."""
FENCE_BYTES = 4096
FENCE_VALUE = 0xA5


def lowered(module: ModuleOp) -> ModuleOp:
    """A copy of scheduled loops on the kernel level, which verifies and prints as text that parses back to the same."""
    kernel = module.clone()
    lower_loop_to_kernel(kernel)
    kernel.verify()
    printed = str(kernel)
    again = Parser(create_context(), printed).parse_module()
    again.verify()
    assert str(again) == printed
    return kernel


def fenced(shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """An array that starts at an odd multiple of its element size, and the bytes around and in it, all the fence."""
    item = np.dtype(dtype).itemsize
    size = int(np.prod(shape, dtype=np.int64)) * item
    raw = np.full(size + 2 * FENCE_BYTES + 64, FENCE_VALUE, np.uint8)
    start = FENCE_BYTES + -raw.ctypes.data % 64 + item
    return raw[start : start + size].view(dtype).reshape(shape), raw


def run_between_fences(module: ModuleOp, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Compile a module of the kernel level and run it; fails where it writes anything but its outputs."""
    return run_artifact_between_fences(compile_module(module)[1], inputs)


def run_artifact_between_fences(artifact: Artifact, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Run a compiled kernel once; fails where it writes anything but its outputs."""
    arrays, fences = [], []
    for argument in artifact.arguments:
        array, raw = fenced(argument.shape, argument.dtype)
        arrays.append(array)
        fences.append(raw)
    for array, value in zip(arrays, inputs, strict=False):
        array[...] = value
    before = [raw.copy() for raw in fences]
    LlvmExecutable(artifact).run(arrays)
    for argument, array, raw, old in zip(artifact.arguments, arrays, fences, before, strict=True):
        changed = raw != old
        start = array.ctypes.data - raw.ctypes.data
        if argument.is_output:
            changed[start : start + array.nbytes] = False
        assert not changed.any(), f"wrote to byte {np.argmax(changed) - start} of {argument.name}, {array.nbytes} bytes"
    return [a.copy() for a, argument in zip(arrays, artifact.arguments, strict=True) if argument.is_output]


def instances(module: ModuleOp) -> int:
    """Count the instances of blocks that run, those that predicates leave out included."""
    blocks = [block for func in module.ops if isinstance(func, FuncOp) for block in blocks_in(func)]
    return sum(prod(loop.size for loop in block.enclosing_loops) for block in blocks)


def check_lowering(
    module: ModuleOp, inputs: list[np.ndarray], wanted: list[np.ndarray], rtol: float = 1e-5, atol: float = 1e-6
) -> ModuleOp:
    """Lower `module` and hold both ways of running it to `wanted`; returns the kernel.

    Programs that do much, such as those that compute a producer again and again, are not interpreted.
    """
    kernel = lowered(module)
    runs = [(run_between_fences(kernel, inputs), "compiled")]
    if instances(module) <= MOST_INTERPRETED:
        runs.append((run_kernel(kernel, inputs), "interpreted"))
    for results, how in runs:
        for result, want in zip(results, wanted, strict=True):
            assert result.shape == want.shape
            with noting(how, module, kernel):
                np.testing.assert_allclose(result, want, rtol=rtol, atol=atol)
    return kernel


def exact_inputs(workload: ModuleOp) -> list[np.ndarray]:
    """Values for the inputs of a te-level function that differ from each other, and whose sums of products are exact.

    Half precision gets small multiples of 1/4, whole numbers stay below 9.
    """
    func = next(f for f in workload.ops if isinstance(f, FuncOp))
    arrays = []
    for position, kind in enumerate(func.function_type.inputs):
        assert isinstance(kind, TensorType)
        shape, dtype = kind.get_shape(), np.dtype(dtype_name(kind.get_element_type()))
        values = np.random.default_rng(position).permutation(prod(shape))
        scaled = (values % 17 - 8) if dtype.kind == "i" else (values % 9 - 4) / 4 if dtype.itemsize == 2 else values / 8
        arrays.append(scaled.astype(dtype).reshape(shape))
    return arrays
