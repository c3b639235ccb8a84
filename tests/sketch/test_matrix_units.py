"""Products on matrix units of CPUs: sketches that are right, the operand packed for them, and what is left alone."""

from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.interpreted import interpreted
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.intrinsics import intrinsics
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.rules._unit_plan import LARGE_ROWS
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


def dense(constant: bool = True, rows: int = 16, columns: int = 32, k: int = 64) -> list[te.Tensor]:
    """With bias and activation, in bf16, rounded at the end; the weight is (out, in)."""
    data = te.placeholder((rows, k), "bfloat16", name="data")
    weight = te.placeholder((columns, k), "bfloat16", name="weight", constant=constant)
    bias = te.placeholder((columns,), "float32", name="bias")
    sums = topi.nn.matmul(data, weight, transpose_b=True, out_dtype="float32")
    return [data, weight, bias, topi.cast(topi.nn.relu(sums + bias), "bfloat16")]


def batched(m: int = 16, n: int = 16, k: int = 64) -> list[te.Tensor]:
    a, b = te.placeholder((3, m, k), "int8", name="a"), te.placeholder((3, n, k), "int8", name="b")
    return [a, b, topi.batch_matmul(a, b, transpose_b=True, out_dtype="int32")]


def convolution(
    data: str = "uint8", weights: str = "int8", stride: int = 1, height: int = 4, width: int = 6, window: int = 3
) -> list[te.Tensor]:
    """Padded with a number, with a factor of each channel, rounded to whole numbers."""
    x = te.placeholder((1, height, width, 32), data, name="data")
    w = te.placeholder((window, window, 32, 32), weights, name="weight", constant=True)
    scale = te.placeholder((32,), "float32", name="scale")
    sums = topi.nn.conv2d_nhwc(x, w, stride, window // 2, pad_value=7)
    wide = topi.multiply(topi.cast(sums, "float32"), scale)
    return [x, w, scale, topi.cast(topi.clip(topi.round(wide), -50.0, 90.0), data)]


def quantised_image(channels: int, width: int = 14) -> list[te.Tensor]:
    """The first convolution of a network of bytes: what it pads with is the zero point."""
    x = te.placeholder((1, 14, width, channels), "uint8", name="data")
    w = te.placeholder((5, 5, channels, 16), "int8", name="weight", constant=True)
    return [x, w, topi.nn.conv2d_nhwc(x, w, 2, 2, out_dtype="int32", pad_value=114)]


def image(channels: int) -> list[te.Tensor]:
    """The first convolution of a network: few channels, a large window, a stride."""
    x = te.placeholder((1, 14, 14, channels), "bfloat16", name="data")
    w = te.placeholder((5, 5, channels, 16), "bfloat16", name="weight", constant=True)
    return [x, w, topi.nn.conv2d_nhwc(x, w, 2, 2, out_dtype="float32")]


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
    "rows of 7": lambda: matmul(14, 16, 64),
    "prime": lambda: matmul(17, 64, 64),
    "ragged": lambda: matmul(19, 37, 70),
    "ragged bf16": lambda: matmul(7, 21, 33, "bfloat16", "bfloat16", "float32"),
    "ragged weight": lambda: dense(rows=19, columns=37),
    "ragged k": lambda: dense(rows=18, k=37),
    "ragged batch": lambda: batched(17, 19, 40),
    "convolution of 7": lambda: convolution(height=7, width=7),
    "pointwise": lambda: convolution(height=5, width=17, window=1),
    "lines of a prime width": lambda: convolution(height=5, width=37),
    "every second pixel of a prime width": lambda: convolution("int8", stride=2, height=5, width=37),
    "few channels of bytes": lambda: quantised_image(3),
    "few channels of bytes in odd lines": lambda: quantised_image(3, 46),
    "few channels": lambda: image(3),
    "four channels": lambda: image(4),
}
BF16 = (
    "few channels",
    "four channels",
    "bf16",
    "constant weight",
    "weight",
    "ragged bf16",
    "ragged weight",
    "ragged k",
)
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
            np.testing.assert_allclose(got.astype(np.float64), wanted, **reference.tolerances[0]._asdict())


def names(make: Callable[[], list[te.Tensor]], target: str = XEON) -> list[str]:
    return [sketch.name for sketch in lw.SearchTask(make, target=target).sketches]


def test_the_best_unit_is_taken_without_a_search() -> None:
    assert names(lambda: matmul(256, 256, 256))[:2] == ["amx", "avx512vnni"]
    assert names(lambda: matmul(256, 256, 256), TARGETS["avx512"])[0] == "avx512vnni"
    assert names(lambda: matmul(256, 256, 256), TARGETS["avx2"])[0] == "avx2"
    assert names(lambda: matmul(256, 256, 256, "bfloat16", "bfloat16", "float32"))[0] == "amx"


@pytest.mark.parametrize("rows", [7, 13, 31, 197])
def test_rows_that_no_large_tile_divides_are_padded_to_one(rows: int) -> None:
    """Dot products share what they load among the rows of a register tile."""
    sketch = on_units(lw.SearchTask(lambda: matmul(rows, 64, 512), target=TARGETS["avx512"]))[0]
    columns = sketch.columns(sketch.default[None])
    (tile,) = (columns[hole.name][0] for hole in sketch.holes if hole.name.endswith("unit_rows"))
    assert tile >= LARGE_ROWS and ('lw-pad{block="T_matmul" loop="i"' in sketch.template) == (rows != 7)


def test_lines_and_channels_of_a_window_are_padded_by_the_block_that_pads_it() -> None:
    """Also with a zero point: weights of the channels beyond are zero."""
    assert names(WORKLOADS["lines of a prime width"])[0] == "amx"
    for name in ("few channels of bytes", "few channels of bytes in odd lines"):
        found = on_units(lw.SearchTask(WORKLOADS[name], target=TARGETS["avx512"]))
        assert found[0].name == "avx512vnni" and 'lw-pad{block="pad_temp" loop="i3"' in found[0].template


def test_padded_convolutions_with_channels_last_are_products() -> None:
    assert names(convolution)[0] == "amx"
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
    sketch = next(x for x in lw.SearchTask(dense, target=XEON).sketches if x.name == "amx")
    assert "lw-cache-read" not in sketch.template
    assert 'lw-transform-layout{block="T_matmul" buffer="weight" layout="j/16","k/2","j%16","k%2"}' in sketch.template


def test_tiles_are_cut_to_what_divides_extents() -> None:
    """Images of common networks are 7 times a power of 2 wide: tiles have 14 rows or 7, and nothing is padded."""
    for width, rows in ((56, 14), (28, 14), (14, 14), (7, 7), (13, 13)):
        template = lw.SearchTask(lambda w=width: convolution(height=w, width=w), target=XEON).sketches[0].template
        assert f'intrinsic="amx.m{rows}n16k48.u8s8"' in template  # of a line of 3 pixels of 32 channels, in two steps
        assert "lw-pad" not in template


def test_extents_that_few_tiles_divide_are_padded() -> None:
    template = lw.SearchTask(lambda: matmul(197, 1000, 1024), target=XEON).sketches[0].template
    assert 'lw-pad{block="T_matmul" loop="i" factor=210}' in template  # an even number of tiles
    assert 'lw-pad{block="T_matmul" loop="j" factor=1024}' in template
    assert 'intrinsic="amx.m15n16k64.u8s8"' in template


def test_constant_weights_are_packed_ahead_with_room_for_padding() -> None:
    sketch = next(x for x in lw.SearchTask(lambda: dense(columns=37), target=XEON).sketches if x.name == "amx")
    assert "lw-pad" in sketch.template and "lw-cache-read" not in sketch.template
    assert 'layout="j/13:3","k/2","j%13","k%2"' in sketch.template


def test_weights_with_padded_steps_are_packed_ahead() -> None:
    """1,000 columns are 64 tiles of 16, and 1,000 elements of k are 500 pairs, which 512 are laid out for."""
    template = lw.SearchTask(lambda: dense(rows=256, columns=1000, k=1000), target=XEON).sketches[0].template
    assert 'layout="j/16:64","k/2:512","j%16","k%2"' in template
    assert 'buffer="weight"' not in template.split("lw-cache-read", 1)[1].partition("}")[0]


def test_a_line_of_a_window_is_one_k() -> None:
    """Channels are padded to whole groups where the image is padded, and then neighbours along the line go on."""
    template = lw.SearchTask(lambda: image(3), target=XEON).sketches[0].template
    assert 'lw-pad{block="pad_temp" loop="i3" factor=2}' in template
    assert 'intrinsic="amx.m7n16k20.bf16"' in template
    assert "lw-cache-read" not in template


@pytest.mark.parametrize("channels", [2, 5, 6, 8, 12])
def test_lines_of_windows_are_one_k_where_pixels_lie_side_by_side(channels: int) -> None:
    """Those of 6 and of 12 channels are written as vectors of 8 and of 16, and no instruction reads over the gaps."""
    task = lw.SearchTask(lambda: image(channels), target=XEON)
    for sketch in (x for x in task.sketches if x.tensorized):
        assert scheduled_kernel(str(task.module), sketch.schedule(sketch.default))
        assert "rx_rc" not in sketch.template or channels in (2, 8)


def test_what_a_window_reads_is_not_copied() -> None:
    """A copy with padded rows would be larger than the image."""
    found = on_units(lw.SearchTask(lambda: convolution(height=17, width=17), target=XEON))
    assert found and not any("data_padded" in x.template or "pad_temp_padded" in x.template for x in found)


def test_products_in_single_precision_are_left_to_other_rules() -> None:
    assert not UNITS & set(names(lambda: matmul(32, 64, 64, "float32", "float32", "float32")))
