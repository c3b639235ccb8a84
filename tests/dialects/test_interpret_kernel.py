"""The interpreter of the kernel dialect: what it computes and which accesses it refuses."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from loopwright.backends.context import create_context
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError


def parse(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def one_access(access: str) -> ModuleOp:
    return parse(f"""
    func.func @access(%in : memref<8xf32>, %out : memref<8xf32> {{lw.output}}) {{
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %m = lw_kernel.mask %two step -1 : vector<4xi1>
      %l = lw_kernel.lanes : vector<4xindex>
      {access}
      func.return
    }}""")


INSIDE = [
    ("%x = lw_kernel.load %in[%two + 2] : memref<8xf32> -> vector<4xf32>", [4, 5, 6, 7]),
    ("%x = lw_kernel.load %in[%two + 3] mask %m : memref<8xf32> -> vector<4xf32>", [5, 6, 7, 0]),
    ("%x = lw_kernel.load %in[%two + 4] stride -2 : memref<8xf32> -> vector<4xf32>", [6, 4, 2, 0]),
    ("%x = lw_kernel.load %in[%two] stride 0 : memref<8xf32> -> vector<4xf32>", [2, 2, 2, 2]),
    (
        "%x = lw_kernel.gather %in[%l] mask %m : memref<8xf32>, vector<4xindex>, vector<4xi1> -> vector<4xf32>",
        [0, 1, 2, 0],
    ),
]


@pytest.mark.parametrize(("load", "expected"), INSIDE)
def test_loads(load: str, expected: list[int]) -> None:
    module = one_access(f"{load}\nlw_kernel.store %x, %out[%zero + 1] : vector<4xf32>, memref<8xf32>")
    (out,) = run_kernel(module, [np.arange(8, dtype=np.float32)])
    np.testing.assert_array_equal(out, [np.nan, *expected, np.nan, np.nan, np.nan])


OUTSIDE = [
    "%x = lw_kernel.load %in[%two + 6] : memref<8xf32> -> f32",
    "%x = lw_kernel.load %in[%two - 3] : memref<8xf32> -> f32",
    "%x = lw_kernel.load %in[%two + 3] : memref<8xf32> -> vector<4xf32>",
    "%x = lw_kernel.load %in[%two] stride 2 : memref<8xf32> -> vector<4xf32>",
    "%x = lw_kernel.load %in[%two + 4] mask %m : memref<8xf32> -> vector<4xf32>",
    "%x = lw_kernel.load %in[%two] : memref<8xf32> -> vector<4xf32>\n"
    "lw_kernel.store %x, %out[%two + 3] : vector<4xf32>, memref<8xf32>",
    "%x = lw_kernel.load %in[%two] : memref<8xf32> -> vector<4xf32>\n"
    "%n = arith.muli %l, %c : vector<4xindex>\n"
    "lw_kernel.scatter %x, %out[%n] mask %m : vector<4xf32>, memref<8xf32>, vector<4xindex>, vector<4xi1>",
]


@pytest.mark.parametrize("access", OUTSIDE)
def test_accesses_outside_are_refused(access: str) -> None:
    module = one_access(f"%c = arith.constant dense<4> : vector<4xindex>\n{access}")
    with pytest.raises(InterpretationError, match=r"lw_kernel\.\w+ reaches element -?\d+ of a buffer of 8 elements"):
        run_kernel(module, [np.arange(8, dtype=np.float32)])


def test_masked_store_scatter_and_prefetch() -> None:
    module = one_access("""
      %x = lw_kernel.load %in[%zero] : memref<8xf32> -> vector<4xf32>
      lw_kernel.store %x, %out[%two + 3] mask %m : vector<4xf32>, memref<8xf32>
      lw_kernel.scatter %x, %out[%l] mask %m : vector<4xf32>, memref<8xf32>, vector<4xindex>, vector<4xi1>
      lw_kernel.prefetch %in[%two + 1000] : memref<8xf32>
    """)
    (out,) = run_kernel(module, [np.arange(8, dtype=np.float32)])
    np.testing.assert_array_equal(out, [0, 1, 2, np.nan, np.nan, 0, 1, 2])


def test_a_buffer_starts_out_unwritten_each_time() -> None:
    module = parse("""
    func.func @fresh(%out : memref<3xf32> {lw.output}) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      lw_kernel.parallel %i in 3 {
        %t = lw_kernel.alloc "t" : memref<1xf32>
        %old = lw_kernel.load %t[%zero] : memref<1xf32> -> f32
        lw_kernel.store %one, %t[%zero] : f32, memref<1xf32>
        lw_kernel.store %old, %out[%i] : f32, memref<3xf32>
      }
      func.return
    }""")
    (out,) = run_kernel(module, [])
    assert np.isnan(out).all()


def test_precision_is_that_of_the_type() -> None:
    module = parse("""
    func.func @half(%in : memref<1xf16>, %out : memref<1xf16> {lw.output}) {
      %zero = arith.constant 0 : index
      %tiny = arith.constant 1.0e-4 : f16
      %x = lw_kernel.load %in[%zero] : memref<1xf16> -> f16
      %y = arith.addf %x, %tiny : f16
      %z = arith.subf %y, %x : f16
      lw_kernel.store %z, %out[%zero] : f16, memref<1xf16>
      func.return
    }""")
    assert run_kernel(module, [np.ones(1, np.float16)])[0][0] == 0


def test_unknown_operations_are_named() -> None:
    module = parse("""
    func.func @odd(%out : memref<1xi32> {lw.output}) {
      %c = arith.constant 1 : i32
      %x = math.ctpop %c : i32
      func.return
    }""")
    with pytest.raises(InterpretationError, match=r"math\.ctpop has no meaning"):
        run_kernel(module, [])
