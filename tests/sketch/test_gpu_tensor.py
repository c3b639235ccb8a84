"""Products on matrix units by the search's rule: what it finds; random candidates of random forms are right."""

import numpy as np
import pytest
from gpu_programs import compile_cuda, scheduled_kernel
from program_trials import products_interpreted

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch

TARGET = lw.resolve_target("cuda model=h200")


def matmul(m: int, n: int, k: int, dtype: str = "float16", sums: str = "float32") -> list[te.Tensor]:
    a, b = te.placeholder((m, k), dtype, name="a"), te.placeholder((n, k), dtype, name="b")
    return [a, b, topi.nn.matmul(a, b, transpose_b=True, out_dtype=sums)]


def sketches(tensors: list[te.Tensor], target: lw.Target = TARGET) -> list[Sketch]:
    return generate_sketches(te.create_module(tensors, target), target)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.few(4)
def test_candidates_of_random_products_are_right(seed: int) -> None:
    """Interpreted, with each element exactly that of the te program: sums of whole numbers."""
    outcome = products_interpreted(seed, 5)
    assert not outcome.faults, outcome.faults[0].what
    assert outcome.tried + outcome.counts["too long to run"] == 5


@pytest.mark.parametrize(
    ("dtype", "sums"), [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32")]
)
def test_each_type_has_its_instruction(dtype: str, sums: str) -> None:
    (sketch,) = sketches(matmul(64, 64, 64, dtype, sums))
    assert sketch.name.startswith("tensor_mma_m16n16k")


def test_sums_in_half_precision_are_left_to_lanes() -> None:
    """The instruction's would be another, more precise result: who wants it says so by the type of the sums."""
    assert not any(s.name.startswith("tensor") for s in sketches(matmul(64, 64, 64, sums="float16")))


def test_devices_without_the_instruction_are_left_to_lanes() -> None:
    old = lw.resolve_target("cuda model=v100")
    assert not any(s.name.startswith("tensor") for s in sketches(matmul(64, 64, 64), old))


def test_extents_are_padded_to_those_of_the_instruction() -> None:
    """Of 7 x 7 pixels the fewest more that make multiples of 16, here 8 x 8; masks are in the copies."""
    data = te.placeholder((1, 7, 7, 32), "float16", name="data")
    kernel = te.placeholder((3, 3, 32, 32), "float16", name="kernel")
    conv = topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="float32")
    (sketch,) = sketches([data, kernel, topi.cast(conv, "float16")])
    pads = [step for step in sketch.template.split(",lw-") if step.startswith("pad{")]
    assert pads == [f'pad{{block="compute" loop="{axis}" factor=8}}' for axis in ("yy", "xx")]


def test_a_few_rows_are_left_to_lanes_too() -> None:
    """Of 16 rows that the instruction computes 5 are asked for: a search decides."""
    names = [s.name for s in sketches(matmul(5, 64, 64))]
    assert any(n.startswith("tensor") for n in names) and not all(n.startswith("tensor") for n in names)


def test_few_tiles_are_divided_along_k() -> None:
    names = [s.name for s in sketches(matmul(16, 256, 4096))]
    assert len(names) == 2 and any(n.endswith("_split") for n in names)


@pytest.mark.parametrize("size", [1024, 4096])
def test_nearly_all_candidates_fit_the_device(size: int) -> None:
    """Threads, shared memory and registers are known before anything is built; those drawn compile without a spill."""
    tensors = matmul(size, size, size)
    (sketch,) = sketches(tensors)
    rows = sketch.sample(np.random.default_rng(0), 2)
    assert len(rows) == 2
    module = te.create_module(tensors, TARGET)
    for row in (*rows, sketch.default):
        compile_cuda(scheduled_kernel(str(module), sketch.schedule(row)), (90,))


def test_the_untuned_choice_fills_the_device() -> None:
    """A product of 4096 has more than one block of threads for each multiprocessor, each of large tiles."""
    (sketch,) = sketches(matmul(4096, 4096, 4096))
    columns = sketch.columns(sketch.default[None])
    rows = columns["T_matmul_i_tiles"] * columns["T_matmul_i_warps"] * 16
    columns_ = columns["T_matmul_j_tiles"] * columns["T_matmul_j_warps"] * 16
    assert rows * columns_ >= 128 * 128
    assert (4096 // rows) * (4096 // columns_) >= TARGET.cores
