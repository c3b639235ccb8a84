"""Boxes that the copy engine brings to all blocks of a cluster which want them: right, and none too early."""

from collections.abc import Callable

import numpy as np
import pytest
from gpu_programs import parse
from lowered_runs import exact_inputs
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.primitive import ScheduleError
from loopwright.search.rules import gpu_tensor
from loopwright.search.sketch.sketch import Sketch

HOPPER = "cuda model=h200"
TILES = {"columns": 64, "j_tiles": 1, "j_warps": 1, "i_tiles": 1, "i_warps": 1, "k_steps": 4, "stages": 3, "group": 1}


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products have the structure, too."""
    monkeypatch.setattr(gpu_tensor, "SHARED_FLOPS", 0)


def product(m: int, n: int, k: int, transposed: bool = True) -> lw.SearchTask:
    a = te.placeholder((m, k), "float16", name="a")
    b = te.placeholder((n, k) if transposed else (k, n), "float16", name="b")
    sums = topi.matmul(a, b, transpose_b=transposed, out_dtype="float32")
    return lw.SearchTask(lambda: [a, b, topi.cast(sums, "float16")], target=HOPPER)


def sketch_of(task: lw.SearchTask) -> Sketch:
    (found,) = [s for s in task.sketches if s.name.endswith("_bulk_shared")]
    return found


def row(sketch: Sketch, **taken: int) -> np.ndarray:
    values = {**TILES, "resident": 1, **taken}
    return np.array([h.choices.index(values[h.name.removeprefix("T_matmul_")]) for h in sketch.holes])


def lowered(task: lw.SearchTask, **taken: int) -> ModuleOp:
    sketch = sketch_of(task)
    module = task.schedule_module(sketch.schedule(row(sketch, **taken)))
    lower_loop_to_kernel(module)
    module.verify()
    return module


def require_right(task: lw.SearchTask, module: ModuleOp) -> None:
    inputs = exact_inputs(task.module)
    (got,), (wanted,) = run_kernel(module, inputs), run_te(task.module, inputs)
    np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=1e-2)


def operations(module: ModuleOp, kind: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("rows, columns", [(1, 2), (2, 1)])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.few(3)
def test_products_are_right(rows: int, columns: int, transposed: bool) -> None:
    task = product(128, 256, 256, transposed)
    module = lowered(task, i_cluster=rows, j_cluster=columns)
    require_right(task, module)
    (launch,) = operations(module, kernel.LaunchOp)
    assert isinstance(launch, kernel.LaunchOp) and launch.cluster_size == (1, columns, rows)
    axes = {op.axes for op in operations(module, kernel.BulkCopyOp) if isinstance(op, kernel.BulkCopyOp)}
    assert axes == {("blockIdx.y",) * (columns > 1), ("blockIdx.z",) * (rows > 1)}


@pytest.mark.slow(1.2)
def test_rows_and_columns_that_tiles_do_not_divide() -> None:
    for shape in ((120, 360, 256), (200, 328, 264)):
        task = product(*shape)
        sketch = sketch_of(task)
        module = task.schedule_module(sketch.schedule(sketch.default))
        lower_loop_to_kernel(module)
        require_right(task, module)


def test_cuda_copies_to_several_blocks() -> None:
    module = lowered(product(128, 256, 256), i_cluster=2, j_cluster=2)
    source = print_cuda(module.clone()).source
    assert "__cluster_dims__(1, 2, 2)" in source and ".multicast::cluster" in source
    assert "3u << (blockIdx.z % 2 * 2)" in source and "5u << (blockIdx.y % 2 * 1)" in source
    (resources,) = compile_module(module).resources
    assert resources.stack_bytes == 0


def test_kernels_parse_back() -> None:
    module = lowered(product(128, 128, 256), i_cluster=1, j_cluster=2)
    assert str(parse(str(module))) == str(module)


def without(kind: type[Operation], number: int = -1) -> Callable[[ModuleOp], None]:
    def change(module: ModuleOp) -> None:
        operations(module, kind)[number].detach()

    return change


def of_the_block_alone(module: ModuleOp) -> None:
    """A block's barrier where a cluster's is needed."""
    barrier = operations(module, kernel.ClusterBarrierOp)[0]
    parent = barrier.parent_block()
    assert parent is not None
    parent.insert_op_before(kernel.BarrierOp(), barrier)
    barrier.detach()


MISTAKES = {
    "no wait": (without(kernel.ClusterMeetOp), "is written for a cluster that has not waited for its reads"),
    "a barrier of the block": (of_the_block_alone, "is written for a cluster that has not waited for its reads"),
    "a box too few": (without(kernel.BulkCopyOp), "a phase of a barrier never ends: 0 arrivals are left"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_missing_is_named(mistake: str) -> None:
    change, message = MISTAKES[mistake]
    task = product(128, 128, 512)
    module = lowered(task, i_cluster=1, j_cluster=2)
    change(module)
    with pytest.raises(InterpretationError, match=message):
        run_kernel(module, exact_inputs(task.module))


def test_clusters_take_boxes_and_axes_of_blocks() -> None:
    task = product(128, 128, 256)
    sketch = sketch_of(task)
    text = sketch.schedule(row(sketch, i_cluster=1, j_cluster=2))
    for old, new, rule in (
        (" bulk=1", "", "a cluster takes bulk=1"),
        ('cluster="blockIdx.z blockIdx.y"', 'cluster="blockIdx.q"', "loops around bound to its axes"),
    ):
        assert old in text
        with pytest.raises(ScheduleError, match=rule):
            task.schedule_module(text.replace(old, new))
