"""Launches of small kernels for the interpreter, in pieces of text, and the operations that its errors name."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from gpu_programs import parse
from xdsl.dialects.builtin import ModuleOp

from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError

X = np.arange(64, dtype=np.float32)


def launch(
    body: str, threads: Sequence[int] = (64, 1, 1), grid: Sequence[int] = (1, 1, 1), of: str = "f32", size: int = 64
) -> ModuleOp:
    """A function from `%in` to `%out` that launches a body: `%t` is the thread, `%b` the block; `f32` becomes `of`."""
    text = f"""
    func.func @f(%in : memref<64xf32>, %out : memref<{size}xf32> {{lw.output}}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c63 = arith.constant 63 : index
      %one = arith.constant 1.0 : f32
      lw_kernel.launch grid {list(grid)} block {list(threads)} {{
        %t = lw_kernel.thread "threadIdx.x" : index
        %b = lw_kernel.thread "blockIdx.x" : index
        %s = lw_kernel.alloc "s" : memref<64xf32, "shared">
        %r = lw_kernel.alloc "r" : memref<4xf32, "local">
        {body}
      }}
      func.return
    }}"""
    return parse(text.replace("1.0 : f32", "1 : f32" if of[0] == "i" else "1.0 : f32").replace("f32", of))


LOAD = "%x = lw_kernel.load %in[%t] : memref<64xf32> -> f32"
TO_SHARED = 'lw_kernel.store %x, %s[%t] : f32, memref<64xf32, "shared">'
OUT = "lw_kernel.store %y, %out[%t] : f32, memref<64xf32>"
STORE_Z = OUT.replace("%y", "%z")
COPY = 'lw_kernel.async_copy 1 %in[%t] -> %s[%t] : memref<64xf32> -> memref<64xf32, "shared">'
TURNED = '%u = arith.subi %c63, %t : index\n%y = lw_kernel.load %s[%u] : memref<64xf32, "shared"> -> f32'


def refusal(module: ModuleOp, *inputs: np.ndarray) -> str:
    """The text by which the interpreter refuses a module."""
    with pytest.raises(InterpretationError) as caught:
        run_kernel(module, inputs or [X])
    return str(caught.value)


def operations(error: str, module: ModuleOp) -> list[str]:
    """The operations that an error names, each by a line of the printed module that says so."""
    named = re.findall(r"line (\d+): (.*?)(?:, by thread .*|: the others .*)?$", error, re.M)
    lines = str(module).splitlines()
    for number, text in named:
        assert lines[int(number) - 1].strip() == text
    return [re.sub(r"%\w+ = ", "", text).split()[0] for _, text in named]
