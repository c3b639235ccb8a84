"""Products on matrix units of CPUs: sketches that are right, the operand packed for them, and what is left alone."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.interpreted import interpreted
from loopwright.dialects.intrinsics import intrinsics
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.sketch.sketch import Sketch

XEON = "llvm model=sapphirerapids cores=4 l1_bytes=49152 l2_bytes=2097152"
TARGETS = {
    "amx": XEON,
    "avx512": f"{XEON} features=-amx-tile",
    "avx2": "llvm model=haswell",
    "neon": "llvm model=neoverse-v1",
}
UNITS = {unit.name.partition(".")[0] for unit in intrinsics() if unit.target == "llvm"}


def matmul(m: int, n: int, k: int, a: str = "uint8", b: str = "int8", c: str = "int32") -> list[te.Tensor]:
    data, weight = te.placeholder((m, k), a, name="data"), te.placeholder((k, n), b, name="weight")
    return [data, weight, topi.nn.matmul(data, weight, out_dtype=c)]


def dense(constant: bool = True) -> list[te.Tensor]:
    """With bias and activation, in bf16, rounded at the end; the weight is (out, in)."""
    data = te.placeholder((16, 64), "bfloat16", name="data")
    weight = te.placeholder((32, 64), "bfloat16", name="weight", constant=constant)
    bias = te.placeholder((32,), "float32", name="bias")
    sums = topi.nn.matmul(data, weight, transpose_b=True, out_dtype="float32")
    return [data, weight, bias, topi.cast(topi.nn.relu(sums + bias), "bfloat16")]


def batched() -> list[te.Tensor]:
    a, b = te.placeholder((3, 16, 64), "int8", name="a"), te.placeholder((3, 16, 64), "int8", name="b")
    return [a, b, topi.batch_matmul(a, b, transpose_b=True, out_dtype="int32")]


def convolution(data: str = "uint8", weights: str = "int8", stride: int = 1) -> list[te.Tensor]:
    """Padded with a number, with a factor of each channel, rounded to whole numbers."""
    x = te.placeholder((1, 4, 6, 32), data, name="data")
    w = te.placeholder((3, 3, 32, 32), weights, name="weight", constant=True)
    scale = te.placeholder((32,), "float32", name="scale")
    sums = topi.nn.conv2d_nhwc(x, w, stride, 1, pad_value=7)
    wide = topi.multiply(topi.cast(sums, "float32"), scale)
    return [x, w, scale, topi.cast(topi.clip(topi.round(wide), -50.0, 90.0), data)]


WORKLOADS: dict[str, Callable[[], list[te.Tensor]]] = {
    "matmul": lambda: matmul(32, 32, 64),
    "one row": lambda: matmul(1, 64, 64),
    "signed": lambda: matmul(16, 16, 128, "int8"),
    "bf16": lambda: matmul(48, 16, 32, "bfloat16", "bfloat16", "float32"),
    "constant weight": dense,
    "weight": lambda: dense(constant=False),
    "batched": batched,
    "convolution": convolution,
    "convolution, int16": lambda: convolution("int16", "int16", 2),
}
BF16 = ("bf16", "constant weight", "weight")
MISSING = {"avx2": BF16, "neon": ("convolution, int16",)}
"""Types that a CPU has no instruction for."""
CASES = [(name, unit) for unit in TARGETS for name in WORKLOADS if name not in MISSING.get(unit, ())]


def on_units(task: lw.SearchTask) -> list[Sketch]:
    return [sketch for sketch in task.sketches if UNITS & set(sketch.name.split("+")) or sketch.name in UNITS]


@pytest.mark.parametrize(("name", "unit"), CASES)
@pytest.mark.few(1)
def test_products_on_units_are_right(name: str, unit: str) -> None:
    """The interpreter runs the instructions of all CPUs."""
    task = lw.SearchTask(WORKLOADS[name], target=TARGETS[unit])
    reference = task.reference
    sketches = on_units(task)
    assert sketches
    for sketch in sketches:
        assert "lw-tensorize" in sketch.template
        for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 1)]:
            module = task.module.clone()
            apply_schedule(module, sketch.schedule(row))
            lower_loop_to_kernel(module)
            got = np.asarray(interpreted(module)(*reference.inputs))
            wanted = reference.expected[0].astype(np.float64)
            np.testing.assert_allclose(got.astype(np.float64), wanted, atol=reference.atol, rtol=reference.rtol)


def names(make: Callable[[], list[te.Tensor]], target: str = XEON) -> list[str]:
    return [sketch.name for sketch in lw.SearchTask(make, target=target).sketches]


def test_the_best_unit_is_taken_without_a_search() -> None:
    assert names(lambda: matmul(256, 256, 256))[:2] == ["amx", "avx512vnni"]
    assert names(lambda: matmul(256, 256, 256), TARGETS["avx512"])[0] == "avx512vnni"
    assert names(lambda: matmul(256, 256, 256), TARGETS["avx2"])[0] == "avx2"
    assert names(lambda: matmul(256, 256, 256, "bfloat16", "bfloat16", "float32"))[0] == "amx"


def test_padded_convolutions_with_channels_last_are_products() -> None:
    """AMX would need lines of 16 pixels."""
    assert names(convolution, TARGETS["avx512"])[0] == "avx512vnni"
    assert names(lambda: convolution("int16", "int16"), TARGETS["avx2"])[0] == "avx2"
    sketch = lw.SearchTask(lambda: convolution("int16", "int16"), target=TARGETS["avx2"]).sketches[0]
    assert "lw-transform-layout" in sketch.template and "lw-cache-read" not in sketch.template


def test_products_that_are_not_added_in_one_instruction_leave_registers() -> None:
    """Those and an epilogue's constants are in registers, too."""
    sketch = lw.SearchTask(lambda: matmul(256, 256, 256, "int16", "int16"), target=TARGETS["avx2"]).sketches[0]
    rows, columns = (next(h for h in sketch.holes if h.name.endswith(name)) for name in ("unit_rows", "unit_columns"))
    for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 20)]:
        m, n = (int(h.choices[row[sketch.holes.index(h)]]) for h in (rows, columns))
        assert m * n + n + 1 <= 10


def test_a_constant_weight_is_packed_ahead() -> None:
    sketch = lw.SearchTask(dense, target=XEON).sketches[0]
    assert sketch.name == "amx"
    assert "lw-cache-read" not in sketch.template
    assert 'lw-transform-layout{block="T_matmul" buffer="weight" layout="j/16","k/2","j%16","k%2"}' in sketch.template


def test_what_instructions_do_not_divide_is_left_to_other_rules() -> None:
    assert not UNITS & set(names(lambda: matmul(32, 60, 64)))
    assert not UNITS & set(names(lambda: matmul(32, 64, 5)))
    assert not UNITS & set(names(lambda: matmul(32, 64, 64, "float32", "float32", "float32")))
    assert names(lambda: matmul(30, 64, 64))[0] == "avx512vnni"
