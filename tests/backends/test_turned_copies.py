"""Copies that transpose rows whose number no vector divides: beside NumPy, and what is left to loads one by one."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi

SCHEDULE = (
    'lw-lower-te-to-loop,lw-cache-read{block="T_batch_matmul" buffer="k" scope="global" '
    'layout="b","j/24","k","j%24" label="k_panel"},lw-split{block="T_batch_matmul" loop="j" factors=0,3,8},'
    'lw-split{block="k_panel" loop="j_i" factors=0,8},lw-split{block="k_panel" loop="k" factors=0,4},'
    'lw-reorder{block="k_panel" loops="j_i0","k1","j_i1"},lw-unroll{block="k_panel" loop="k1"},'
    'lw-vectorize{block="k_panel" loop="j_i1"}'
)


@pytest.mark.parametrize("rows", [5, 24, 29, 40, 45, 48])
@pytest.mark.parametrize("terms", [12, 14])
def test_lanes_of_the_last_rows_are_transposed_too(rows: int, terms: int) -> None:
    q, k = te.placeholder((2, 6, terms), name="q"), te.placeholder((2, rows, terms), name="k")
    task = lw.SearchTask(lambda: [q, k, topi.batch_matmul(q, k, transpose_b=True)], target="llvm vector_bytes=32")
    kernel = task.build(SCHEDULE)
    rng = np.random.default_rng(rows)
    a, b = (rng.standard_normal(t.shape, dtype=np.float32) for t in (q, k))
    np.testing.assert_allclose(kernel(a, b), np.einsum("bik,bjk->bij", a, b), rtol=2e-5, atol=2e-5)


def test_no_lane_is_loaded_for_itself_where_a_panel_ends_within_its_last_vector() -> None:
    q, k = te.placeholder((2, 6, 12), name="q"), te.placeholder((2, 45, 12), name="k")
    task = lw.SearchTask(lambda: [q, k, topi.batch_matmul(q, k, transpose_b=True)], target="llvm vector_bytes=32")
    source = task.build(SCHEDULE).source
    assert "shufflevector" in source and "masked.gather" not in source
