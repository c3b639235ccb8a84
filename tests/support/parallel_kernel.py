"""A kernel with a parallel loop, and whether it is right now, in whatever process and thread."""

import numpy as np
from xdsl.parser import Parser

from loopwright.backends.build import build
from loopwright.backends.context import create_context
from loopwright.backends.kernel_function import Kernel
from loopwright.dialects.target import Target

TWICE = """
func.func @twice(%in : memref<64xf32>, %out : memref<64xf32> {lw.output}) {
  lw_kernel.parallel %i in 64 {
    %x = lw_kernel.load %in[%i] : memref<64xf32> -> f32
    %y = arith.addf %x, %x : f32
    lw_kernel.store %y, %out[%i] : f32, memref<64xf32>
  }
  func.return
}"""
SOURCE = np.arange(64, dtype=np.float32)


def parallel_kernel(cores: int = 2) -> Kernel:
    return build(Parser(create_context(), TWICE).parse_module(), Target(cores=cores, vector_bytes=64))


def is_right(kernel: Kernel) -> bool:
    return np.array_equal(np.asarray(kernel(SOURCE)), SOURCE * 2)
