"""Texts of the kernel dialect, built by LLVM and run beside the kernel interpreter, which checks every access."""

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from loopwright.backends.context import create_context
from loopwright.backends.kernel_function import Kernel
from loopwright.dialects.interpret.kernel import run_kernel

N = 160
"""Elements of the arrays that kernels copy."""


def parse(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def copy_text(kind: str, lanes: int | None, load: str, store: str, before: str = "") -> str:
    """Return a kernel that loads one value or vector with `load` in its address and stores it with `store`."""
    shape = f"vector<{lanes}x{kind}>" if lanes else kind
    array = f"memref<{N}x{kind}>"
    return f"""
    func.func @copy(%in : {array} {{lw.name = "in"}}, %out : {array} {{lw.name = "out", lw.output}}) {{
      %zero = arith.constant 0 : index
      %start = arith.constant 64 : index
      {before}
      %x = lw_kernel.load %in{load} : {array} -> {shape}
      lw_kernel.store %x, %out{store} : {shape}, {array}
      func.return
    }}"""


def compare(kernel: Kernel, module: ModuleOp, *arrays: np.ndarray) -> np.ndarray:
    """Run a kernel and the interpreter on the module it was built from."""
    (expected,) = run_kernel(module, arrays)
    out = np.zeros(expected.shape, expected.dtype)
    kernel(*arrays, out)
    untouched = np.isnan(expected) if expected.dtype.kind == "f" else expected == _least(expected.dtype)
    np.testing.assert_array_equal(out[~untouched], expected[~untouched])
    assert not out[untouched].any()
    return out


def _least(dtype: np.dtype) -> int:
    return 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)


def protect(memory: object, start: int, size: int) -> None:
    """Let nobody read or write a page of a memory map from a byte on."""
    import ctypes

    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))  # type: ignore[arg-type]
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + start), ctypes.c_size_t(size), 0) == 0
