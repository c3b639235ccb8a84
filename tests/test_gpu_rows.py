"""Reductions and chains of them over rows on GPUs: what fits in shared memory, how many blocks, how many kernels."""

import numpy as np
import pytest
from gpu_programs import opencl_device

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda import device as cuda_device
from loopwright.backends.opencl import device as opencl
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.kernel import LaunchOp

SMALL = "opencl cores=4 max_threads_per_block=64 max_shared_bytes=8192 max_vthreads=8"
"""Little of everything: rows of a few thousand elements are long."""


def softmax(*shape, axis=-1):
    data = te.placeholder(shape, name="data")
    return [data, topi.nn.softmax(data, axis)]


def task_of(tensors, target):
    return lw.SearchTask(te.create_module(tensors), target=target)


def schedules(task, seed=0, count=2):
    """The default and some candidates of each sketch."""
    rng = np.random.default_rng(seed)
    return [s.schedule(row) for s in task.sketches for row in (s.default, *s.sample(rng, count))]


def launches(task, schedule):
    """The grid and the block of each kernel."""
    module = scheduled_kernel(str(task.module), schedule)
    found = [op for op in module.walk() if isinstance(op, LaunchOp)]
    return [tuple(tuple(n.data for n in size) for size in (op.grid, op.block)) for op in found]


def check_on_opencl(task, some):
    opencl_device()
    reference = task.reference
    for schedule in dict.fromkeys(some):
        kernel = opencl.load(opencl.build(str(task.module), schedule))
        outputs = [np.full(e.shape, np.nan if e.dtype.kind == "f" else 77, e.dtype) for e in reference.expected]
        kernel.run([*reference.inputs, *outputs])
        for got, expected in zip(outputs, reference.expected, strict=True):
            np.testing.assert_allclose(got, expected, atol=reference.atol, rtol=reference.rtol, err_msg=schedule)


# -- long rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "longest"),
    [("cuda model=h200", 57800), ("cuda model=gtx1080ti", 12000), ("opencl model=mali-t860", 8192)],
)
@pytest.mark.parametrize("longer", [0, 2000, 60000])
def test_rows_of_any_length_are_within_shared_memory(target, longest, longer):
    task = task_of(softmax(3, longest + longer), target)
    for schedule in schedules(task):
        assert len(launches(task, schedule)) == 1
    assert ('lw-compute-inline{block="T_softmax_exp"}' in task.default_schedule) == (longer > 0)


def test_long_rows_compile_for_cuda():
    task = task_of(softmax(3, 60001), "cuda model=h200")
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), task.default_schedule), "cuda")
    (launch,) = artifact.kernel.launches
    assert launch.static_shared_bytes + launch.dynamic_shared_bytes < 4096


@pytest.mark.parametrize("extent", [1999, 2047, 3001])
def test_long_rows_are_right(extent):
    task = task_of(softmax(5, extent), SMALL)
    check_on_opencl(task, schedules(task))


def test_long_rows_are_right_where_the_rest_of_a_chain_is_inside():
    data = te.placeholder((5, 3001), name="data")
    weights = topi.nn.softmax(data)
    task = task_of([data, topi.sqrt(topi.nn.softmax(topi.exp(weights)))], SMALL)
    check_on_opencl(task, schedules(task))
