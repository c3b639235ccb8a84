"""Products that add to running sums of attention, beside NumPy: the kernels of threads that keep all of a row."""

from typing import Any

import numpy as np
import pytest
from gpu_programs import run_kernel
from xdsl.dialects import arith

import loopwright as lw
from loopwright import te
from loopwright.backends.scheduled import lower_in_place
from loopwright.dialects.kernel import AllocOp
from loopwright.dialects.loop import blocks_in
from loopwright.passes.analysis.nest import buffer_name

ROWS, TERMS, COLUMNS = 8, 12, 2
TARGET = "cuda max_threads_per_block=64 warp_size=32 compute_capability=90"


def weighted(dtype: str = "float32", scale: float = 1.0) -> list[te.Tensor]:
    """softmax(x) v, its quotients rounded to the type of v; with a scale of x times it, masked."""
    given, v = te.placeholder((ROWS, TERMS), name="x"), te.placeholder((TERMS, COLUMNS), dtype, "v")
    x = given
    if scale != 1.0:
        lowest = float("-inf")
        x = te.compute(x.shape, lambda i, j: te.if_then_else(j <= i + 4, given[i, j] * scale, lowest), name="scaled")
    k, n, r = (te.reduce_axis((0, TERMS), name) for name in "knr")
    largest = te.compute((ROWS,), lambda i: te.max(x[i, k], axis=k), name="largest")
    powers = te.compute(x.shape, lambda i, j: te.exp(x[i, j] - largest[i]), name="powers")
    total = te.compute((ROWS,), lambda i: te.sum(powers[i, n], axis=n), name="total")
    weights = te.compute(x.shape, lambda i, j: (powers[i, j] / total[i]).astype(dtype), name="weights")
    out = te.compute(
        (ROWS, COLUMNS),
        lambda i, c: te.sum(weights[i, r].astype("float32") * v[r, c].astype("float32"), axis=r),
        name="out",
    )
    return [given, v, out]


def scheduled(rounded: int = 0, scope: str = "local", scale: float = 1.0) -> Any:
    """Four rows, one of each thread, over blocks of 4 terms; `scope` is that of the largest of a block."""
    sch = lw.Schedule(weighted("float16" if rounded else "float32", scale), target=TARGET)
    sch.online_softmax("out", 4, rounded=rounded)
    blocks = sch.blocks[: sch.blocks.index("out_run")]
    task, row = sch.split("out", sch.get_loops("out")[0], [None, 4])
    sch.bind("out", str(task), "blockIdx.x")
    sch.bind("out", str(row), "threadIdx.x")
    sch.compute_at("out_run", str(row))
    loops = sch.get_loops("out_run")
    sch.reorder("out_run", loops[-1], *loops[2:-1])
    for block in reversed(blocks):
        sch.compute_at(block, str(loops[-1]))
    for block in (*blocks, "out_run"):
        written = next(b for b in blocks_in(sch.module) if b.block_name == block).outputs
        for buffer in written:
            sch.set_scope(block, scope if block == "largest" else "local", buffer=buffer_name(buffer))
    return sch


def drawn(special: bool) -> list[np.ndarray]:
    """Random scores and values; in `special` rows, blocks and a whole row are -inf, and one score is no number."""
    random = np.random.default_rng(3)
    x = random.standard_normal((ROWS, TERMS)).astype(np.float32) * 4
    if special:
        x[0, :4] = x[1, 4:8] = x[2, 8:] = x[3] = x[4, 1:] = -np.inf
        x[5, 6], x[6, 2] = np.nan, np.inf
    return [x, random.standard_normal((TERMS, COLUMNS)).astype(np.float32)]


def expected(x: np.ndarray, v: np.ndarray, scale: float = 1.0) -> np.ndarray:
    x = x.astype(np.float64) * scale
    if scale != 1.0:
        x[~np.tri(ROWS, TERMS, 4, dtype=bool)] = -np.inf
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(1, keepdims=True))
        found: np.ndarray = powers / powers.sum(1, keepdims=True) @ v.astype(np.float64)
    return found


def interpreted(sch: Any, inputs: list[np.ndarray]) -> tuple[set[str], np.ndarray]:
    """The buffers of the kernel that a schedule becomes, and its result."""
    kernel = sch.module.clone()
    lower_in_place(kernel)
    kept = {op.label.data for op in kernel.walk() if isinstance(op, AllocOp)}
    with np.errstate(invalid="ignore"):
        (found,) = run_kernel(kernel, inputs)
    return kept, found


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("rounded", [0, 1])
def test_products_add_to_running_sums(rounded: int, special: bool) -> None:
    """Also where blocks or whole rows are -inf, and rows have what is no number."""
    x, v = drawn(special)
    kept, got = interpreted(scheduled(rounded), [x, v.astype(np.float16) if rounded else v])
    assert "largest_factor" in kept and "out_part" not in kept
    digits = 2**-10 if rounded else 1e-5
    np.testing.assert_allclose(got, expected(x, v), rtol=digits, atol=8 * digits)
    assert np.isnan(got[3:4]).any() == special


def test_large_scores_keep_their_digits() -> None:
    """Powers of 2 of a multiply-add: 2000 has a step of 2^-13, and its product with a rounded constant no more."""
    x, v = drawn(False)
    x += 2000
    _, got = interpreted(scheduled(1), [x, v.astype(np.float16)])
    np.testing.assert_allclose(got, expected(x, v), atol=4e-3)


def test_those_whose_maximum_threads_share_are_joined_as_ever() -> None:
    x, v = drawn(False)
    kept, got = interpreted(scheduled(scope="shared"), [x, v])
    assert "largest_factor" not in kept and "out_part" in kept
    np.testing.assert_allclose(got, expected(x, v), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [0.25, -0.5])
def test_scales_are_left_to_the_powers(scale: float) -> None:
    """Positive ones, which a maximum may be taken before; a mask chooses another term as ever."""
    x, v = drawn(False)
    sch = scheduled(1, scale=scale)
    kernel = sch.module.clone()
    lower_in_place(kernel)
    scaled = [op for op in kernel.walk() if isinstance(op, arith.ConstantOp) and str(op.value) == "2.500000e-01 : f32"]
    assert len(scaled) == (scale > 0), "that of the maximum of a row"
    (got,) = run_kernel(kernel, [x, v.astype(np.float16)])
    np.testing.assert_allclose(got, expected(x, v, scale), atol=2e-3)
