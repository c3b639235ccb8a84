"""Sketches of parts joined by the blocks of a cluster that computed them: right, and one launch to features."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from sketch_rows import anywhere, require_features_of_ir

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.search.sketch.generate import generate_sketches

CUDA = "cuda model=h200"


def product(m: int, n: int, k: int, dtype: str, summed: str = "float32", transposed: bool = True) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), dtype, "a"), te.placeholder((n, k) if transposed else (k, n), dtype, "b")
    c = te.placeholder((n,), dtype, "c")
    sums = topi.nn.matmul(a, b, transpose_b=transposed, out_dtype=summed)
    return [a, b, c, topi.nn.relu(topi.add(topi.cast(sums, dtype), c))]


def bare(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), "int8", "a"), te.placeholder((n, k), "int8", "b")
    return [a, b, topi.nn.matmul(a, b, transpose_b=True, out_dtype="int32")]


def pointwise(images: int, size: int, channels: int, filters: int, dtype: str, last: bool) -> list[te.Tensor]:
    """A 1x1 convolution, channels last or first."""
    if last:
        x = te.placeholder((images, size, size, channels), dtype, "x")
        w = te.placeholder((1, 1, channels, filters), dtype, "w")
        sums = topi.nn.conv2d_nhwc(x, w, 1, 0, 1, out_dtype="float32")
    else:
        x = te.placeholder((images, channels, size, size), dtype, "x")
        w = te.placeholder((filters, channels, 1, 1), dtype, "w")
        sums = topi.nn.conv2d_nchw(x, w, 1, 0, 1, out_dtype="float32")
    return [x, w, topi.nn.relu(topi.cast(sums, dtype))]


def attention(heads: int, queries: int, keys: int, size: int) -> list[te.Tensor]:
    q = te.placeholder((heads, queries, size), "float16", "q")
    k, v = (te.placeholder((heads, keys, size), "float16", name) for name in "kv")
    scores = topi.cast(topi.nn.batch_matmul(q, k, False, True, out_dtype="float32"), "float16")
    sums = topi.nn.batch_matmul(topi.nn.softmax(scores), v, out_dtype="float32")
    return [q, k, v, topi.cast(sums, "float16")]


WORKLOADS: dict[str, Callable[[], list[te.Tensor]]] = {
    "halves": partial(product, 32, 64, 1024, "float16"),
    "ragged halves": partial(product, 19, 70, 1000, "float16", transposed=False),
    "groups": partial(product, 64, 64, 2048, "float16"),
    "bytes": partial(bare, 32, 64, 1024),
    "pixels": partial(pointwise, 1, 7, 512, 64, "float16", True),
    "planes": partial(pointwise, 1, 7, 512, 32, "float16", False),
    "token": partial(attention, 2, 1, 256, 64),
    "ragged tokens": partial(attention, 2, 3, 256, 64),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(3)
def test_candidates_are_right(name: str) -> None:
    """One launch, whose blocks wait for each other."""
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    sketches = [s for s in generate_sketches(task.module, task.target) if "_clustered" in s.name]
    assert sketches
    rng, reference = np.random.default_rng(len(name)), task.reference
    for sketch in sketches:
        for row in (sketch.default, *sketch.sample(rng, 1)):
            module = scheduled_kernel(str(task.module), sketch.schedule(row))
            assert sum(isinstance(op, kernel.LaunchOp) for op in module.walk()) == 1
            (found,) = run_kernel(module, reference.inputs)
            np.testing.assert_allclose(found, reference.expected[0], atol=reference.atol, rtol=reference.rtol)


@pytest.mark.parametrize("name", ["halves", "groups"])
@pytest.mark.few(1)
def test_features_are_those_of_one_launch(name: str) -> None:
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    sketches = {s.name: s for s in generate_sketches(task.module, task.target)}
    for other, sketch in sketches.items():
        if "_clustered" not in other:
            continue
        require_features_of_ir(task.module, task.target, sketch, anywhere(sketch, np.random.default_rng(0), 2))
        names = list(sketch.feature_names)
        kernels = [
            each.features(each.default[None])[0][names.index("program.kernels")]
            for each in (sketch, sketches[other.replace("_clustered", "")])
        ]
        assert kernels == sorted(kernels) and kernels[0] < kernels[1]


def test_results_of_several_images_that_are_padded_are_clustered_by_a_second_kernel() -> None:
    """Tiles of 8 of 7 pixels, of rows of two images, are no boxes of the parts."""
    task = lw.SearchTask(partial(pointwise, 2, 7, 512, 64, "float16", True), target=CUDA)
    names = [s.name for s in generate_sketches(task.module, task.target)]
    assert any("_split" in name for name in names) and not any("_clustered" in name for name in names)


def test_older_devices_have_second_kernels() -> None:
    names = [s.name for s in lw.SearchTask(WORKLOADS["halves"], target="cuda model=a100").sketches]
    assert any("_split" in name for name in names) and not any("_clustered" in name for name in names)
