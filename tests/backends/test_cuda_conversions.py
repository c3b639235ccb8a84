"""Floats as integers in CUDA C: NaN is 0, also where the instruction has the least integer."""

import pytest

import loopwright as lw
from loopwright import te


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("result", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
def test_integers_of_nan_are_zero(source: str, result: str) -> None:
    """PTX's `cvt` has 0 from at most 32 bits to at most 32 bits alone, where nothing is asked."""
    x = te.placeholder((64,), source, "x")
    kernel = lw.build([x, te.compute((64,), lambda i: x[i].astype(result), "y")], "cuda model=h200")
    body = str(kernel.source).partition("main_k0")[2]
    asks = " == " in body and (" : 0;" in body or " : 0LL;" in body)
    assert asks == (source == "float64" or result.endswith("64")), body
