"""Windows of images that the copy engine walks over: right by the interpreter, which names what is wrong; CUDA C."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from gpu_programs import parse
from lowered_runs import exact_inputs
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, ModuleOp, i64
from xdsl.utils.exceptions import VerifyException

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.kernel_source import TensorMap
from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.pixel_walk import Walk
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.search.rules import _gpu_walks, gpu_tensor
from loopwright.search.sketch.sketch import Sketch

HOPPER = "cuda model=h200"
TILES = {"columns": 64, "j_tiles": 1, "j_warps": 1, "i_tiles": 1, "i_warps": 1, "k_steps": 4, "stages": 2, "group": 1}


class Images(NamedTuple):
    """Convolutions of images; `walk` is the one that the copy engine makes of them, `end` that of the sketch's name."""

    walk: Walk
    shape: tuple[int, int, int, int] = (2, 8, 8, 64)
    window: int = 3
    stride: int = 1
    pad: int = 1
    dilation: int = 1
    dtype: str = "float16"
    taken: tuple[tuple[str, int], ...] = ()
    filters: int = 64
    end: str = "_bulk"


IMAGES = {
    "as they are": Images(Walk((-1, -1), (6, 6), (1, 1))),
    "of an odd size, past the last one": Images(Walk((-1, -1), (5, 7), (1, 1)), (3, 7, 9, 64)),
    "past the last one, three tiles at once": Images(
        Walk((-1, -1), (5, 7), (1, 1)), (5, 7, 9, 64), taken=(("i_tiles", 3), ("group", 2))
    ),
    "every second pixel": Images(Walk((-1, -1), (7, 13), (2, 2)), (2, 9, 15, 64), stride=2),
    "every third, far taps": Images(Walk((-2, -2), (7, 7), (3, 3)), (4, 12, 12, 64), stride=3, pad=2, dilation=2),
    "one pixel, every second": Images(Walk((0, 0), (12, 10), (2, 2)), (2, 13, 11, 128), 1, 2, 0),
    "of several channels a pixel": Images(
        Walk((-2, -2), (5, 5), (1, 1)), (2, 8, 8, 32), 5, pad=2, taken=(("k_steps", 2),)
    ),
    "bfloat16, without padding": Images(Walk((0, 0), (7, 7), (1, 1)), (2, 10, 10, 64), pad=0, dtype="bfloat16"),
    "past the only one": Images(Walk((-1, -1), (7, 8), (1, 1)), (1, 9, 10, 64)),
    "past the only one, every second pixel": Images(Walk((-1, -1), (7, 13), (2, 2)), (1, 9, 15, 64), stride=2),
    "24 channels as 32": Images(
        Walk((-1, -1), (5, 7), (1, 1)), (3, 7, 9, 24), taken=(("k_steps", 2),), end="_bulk_c32"
    ),
    "48 channels as 64, to 16 filters": Images(
        Walk((-1, -1), (5, 7), (1, 1)), (3, 7, 9, 48), filters=16, end="_bulk_n16_c64"
    ),
    "40 channels as 48, to 24 filters": Images(
        Walk((-1, -1), (5, 7), (1, 1)), (3, 7, 9, 40), taken=(("k_steps", 1),), filters=24, end="_bulk_n32_c48"
    ),
    "to 32 filters": Images(Walk((-1, -1), (6, 6), (1, 1)), filters=32, end="_bulk_n32"),
}


def task(images: Images) -> lw.SearchTask:
    *_, channels = images.shape
    data = te.placeholder(images.shape, images.dtype, name="data")
    weights = te.placeholder((images.window, images.window, channels, images.filters), images.dtype, name="weights")
    bias = te.placeholder((images.filters,), images.dtype, name="bias")
    sums = topi.nn.conv2d_nhwc(data, weights, images.stride, images.pad, images.dilation, out_dtype="float32")
    found = topi.cast(topi.nn.relu(sums + topi.cast(bias, "float32")), images.dtype)
    return lw.SearchTask(lambda: [data, weights, bias, found], target=HOPPER)


def sketch_of(found: lw.SearchTask, end: str = "_bulk") -> Sketch:
    (one,) = [s for s in found.sketches if s.name.endswith(end)]
    return one


def lowered(found: lw.SearchTask, taken: tuple[tuple[str, int], ...] = (), end: str = "_bulk") -> ModuleOp:
    sketch = sketch_of(found, end)
    values = {**TILES, "resident": 1, **dict(taken)}
    row = [h.choices.index(values[h.name.removeprefix("compute_")]) for h in sketch.holes]
    assert sketch.legal(np.array([row])).all()
    module = found.schedule_module(sketch.schedule(np.array(row)))
    lower_loop_to_kernel(module)
    module.verify()
    return module


def copies(module: ModuleOp) -> list[kernel.BulkCopyOp]:
    return [op for op in module.walk() if isinstance(op, kernel.BulkCopyOp)]


def require_right(found: lw.SearchTask, module: ModuleOp) -> None:
    inputs = exact_inputs(found.module)
    (got,), (wanted,) = run_kernel(module, inputs), run_te(found.module, inputs)
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.few(2)
def test_windows_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy engine fills in zeros around images, and behind the last one."""
    monkeypatch.setattr(_gpu_walks, "FEWEST_PIXELS", 1)
    images = IMAGES[name]
    found = task(images)
    module = lowered(found, images.taken, images.end)
    assert {op.pixel_walk for op in copies(module)} == {images.walk, None}
    require_right(found, module)


@pytest.mark.parametrize("clusters", [(1, 2), (2, 1)])
@pytest.mark.few(1)
def test_blocks_of_a_cluster_share_pixels(clusters: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two blocks asks for half of the pixels, or of the weights, of both."""
    monkeypatch.setattr(gpu_tensor, "SHARED_FLOPS", 0)
    monkeypatch.setattr(gpu_tensor, "_may_share", lambda variant: variant.bulk and not variant.split)
    data, weights = te.placeholder((4, 8, 8, 64), "float16"), te.placeholder((3, 3, 64, 128), "float16")
    sums = topi.nn.conv2d_nhwc(data, weights, 1, 1, out_dtype="float32")
    found = lw.SearchTask(lambda: [data, weights, sums], target=HOPPER)
    module = lowered(found, (("i_cluster", clusters[0]), ("j_cluster", clusters[1])), "_shared")
    pixels = {op.box_extents[0] for op in copies(module) if op.pixel_walk is not None}
    assert pixels == {64 // clusters[1]}
    require_right(found, module)


@pytest.mark.parametrize("name", ["past the last one, three tiles at once", "every second pixel"])
@pytest.mark.few(1)
def test_cuda_compiles_them(name: str) -> None:
    images = IMAGES[name]
    module = lowered(task(images), images.taken)
    assert str(parse(str(module))) == str(module)
    source = print_cuda(module.clone()).source
    assert "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes" in source
    artifact = compile_module(module)
    (launch,), (resources,) = artifact.kernel.launches, artifact.resources
    assert launch.maps[0] == TensorMap(
        0, "f16", images.shape, (64 * dict(images.taken).get("i_tiles", 1), 64), 128, images.walk
    )
    assert Artifact.from_bytes(artifact.to_bytes(), "cuda") == artifact
    assert resources.stack_bytes == 0 and resources.spill_store_bytes == 0


def test_sums_of_pixels_are_kept_close() -> None:
    """28 x 28 pixels are 49 times 16: what tells images apart is a digit of the same number still."""
    data, weights = te.placeholder((2, 28, 28, 64), "float16"), te.placeholder((3, 3, 64, 64), "float16")
    sums = topi.nn.conv2d_nhwc(data, weights, 1, 1, out_dtype="float32")
    found = lw.SearchTask(lambda: [data, weights, topi.cast(topi.nn.relu(sums), "float16")], target=HOPPER)
    module = lowered(found, (("i_tiles", 2),))
    (kept,) = [op for op in module.walk() if isinstance(op, kernel.AllocOp) and "local" in str(op.results[0].type)]
    assert "memref<64xf32" in str(kept.results[0].type)


# -- what the interpreter, and the operation, find --------------------------------------------------------------------


def with_operand(place: int, value: int) -> Callable[[ModuleOp], None]:
    """A constant in the place of what a walk is given: the array, its place in four dimensions, and two taps."""

    def change(module: ModuleOp) -> None:
        op = next(op for op in copies(module) if op.pixel_walk is not None)
        block, number = op.parent_block(), ConstantOp(IntegerAttr(value, IndexType()))
        assert block is not None
        block.insert_op_before(number, op)
        op.operands[place] = number.result

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_operand(3, 0), "a walk begins between its positions"),
        (with_operand(6, 256), "a tap is not within 0 and 255"),
    ],
)
def test_what_is_wrong_is_named(change: Callable[[ModuleOp], None], message: str) -> None:
    found = task(IMAGES["every second pixel"])
    module = lowered(found)
    change(module)
    with pytest.raises(InterpretationError, match=message):
        run_kernel(module, exact_inputs(found.module))


@pytest.mark.parametrize(
    ("walked", "message"),
    [
        ([-1, -1, 6, 6, 1, 9], r"a box of \[64, 64\] in steps of \[1, 9\] is too large"),
        ([-129, -1, 6, 6, 1, 1], r"positions from \[-129, -1\] to \[6, 6\] are further than 128"),
        ([-1, 6, 1], r"a walk over \[2, 8, 8, 64\] has positions in each dimension|a walk has a tap for each"),
    ],
)
def test_walks_that_the_copy_engine_does_not_make(walked: list[int], message: str) -> None:
    module = lowered(task(IMAGES["as they are"]))
    op = next(op for op in copies(module) if op.pixel_walk is not None)
    op.walked = DenseArrayBase.from_list(i64, walked)
    with pytest.raises(VerifyException, match=message):
        op.verify()


def test_images_whose_channels_are_no_whole_chunks_are_left_to_threads() -> None:
    assert not [s for s in task(Images(Walk((), (), ()), (2, 8, 8, 20))).sketches if "bulk" in s.name]
