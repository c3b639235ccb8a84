"""Sums and products so far, of rows that are one part and of several, beside NumPy in double precision."""

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te
from loopwright.topi.scan import PART, WHOLE

Array = np.ndarray[Any, Any]
ROWS = (1, PART, WHOLE, WHOLE + 1, 5 * PART, 300, WHOLE * PART + 7)
"""One part, just several, whole and ragged ones, and parts whose totals come in parts."""


def _expected(data: Array, product: bool, axis: int, exclusive: bool, reverse: bool) -> Array:
    wide = np.flip(data, axis).astype("float64") if reverse else data.astype("float64")
    found = (np.cumprod if product else np.cumsum)(wide, axis)
    if exclusive:
        first = np.full_like(found.take([0], axis), float(product))
        found = np.concatenate([first, np.delete(found, -1, axis)], axis)
    return np.flip(found, axis) if reverse else found


@pytest.mark.parametrize("extent", ROWS)
def test_sums_and_products_so_far_are_numpys(extent: int) -> None:
    rng = np.random.default_rng(extent)
    for number, (exclusive, reverse) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        axis, product = number % 2, number >= 2
        shape = (extent, 3) if axis == 0 else (2, extent)
        data = (rng.uniform(0.9, 1.1, shape) if product else rng.standard_normal(shape)).astype("float32")
        scan = topi.cumprod if product else topi.cumsum

        x = te.placeholder(shape, name="x")
        tensors = [x, scan(x, axis, exclusive, reverse)]
        task = lw.SearchTask(tensors, target="llvm cores=1")
        wanted = _expected(data, product, axis, exclusive, reverse)
        for found in (*run_te(te.create_module(tensors), [data]), task.build(task.default_schedule)(data)):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_steps_grow_as_rows_do() -> None:
    def flops(extent: int) -> float:
        x = te.placeholder((extent,), name="x")
        return lw.SearchTask([x, topi.cumsum(x)], target="llvm cores=1").flops

    assert flops(8000) < 11 * flops(800)


def test_sums_before_a_part_are_a_stage_of_their_own_where_they_are_put_together_of_parts() -> None:
    """In their reader, which divides for them, lanes were gathered; of a few parts they are sums of one stage."""
    x = te.placeholder((50, 600), name="x")
    schedule = lw.SearchTask([x, topi.cumsum(x, 1)], target="llvm cores=1 vector_bytes=64").default_schedule
    assert 'compute-inline{block="T_cumsum1"}' not in schedule
    assert 'compute-inline{block="cumsum_totals"}' in schedule
    assert 'lw-split{block="T_cumsum2" loop="i1" factors=0,1,16}' in schedule
