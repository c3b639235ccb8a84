"""Lower scheduled loops and run the kernel twice: interpreted with every access checked, and compiled between fences."""

import numpy as np
from loopwright.backends.context import create_context
from loopwright.backends.kernel_function import Kernel
from loopwright.backends.llvm.executable import LlvmExecutable, compile_module
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

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
    _, artifact = compile_module(module)
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


def check_lowering(
    module: ModuleOp, inputs: list[np.ndarray], wanted: list[np.ndarray], rtol: float = 1e-5, atol: float = 1e-6
) -> ModuleOp:
    """Lower `module` and hold both ways of running it to `wanted`; returns the kernel."""
    kernel = lowered(module)
    compiled = run_between_fences(kernel, inputs)
    for results, how in ((run_kernel(kernel, inputs), "interpreted"), (compiled, "compiled")):
        for result, want in zip(results, wanted, strict=True):
            assert result.shape == want.shape
            np.testing.assert_allclose(result, want, rtol=rtol, atol=atol, err_msg=f"{how}\n{module}\n{kernel}")
    return kernel


__all__ = ["Kernel", "check_lowering", "fenced", "lowered", "run_between_fences"]
