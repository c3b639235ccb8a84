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
from loopwright.testing.narrow import attention, dense, pointwise

CUDA = "cuda model=h200"


def bare(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), "int8", "a"), te.placeholder((n, k), "int8", "b")
    return [a, b, topi.nn.matmul(a, b, transpose_b=True, out_dtype="int32")]


WORKLOADS: dict[str, Callable[[], list[te.Tensor]]] = {
    "halves": partial(dense, 32, 64, 1024, "float16"),
    "ragged halves": partial(dense, 19, 70, 1000, "float16", transposed=False),
    "groups": partial(dense, 64, 64, 2048, "float16"),
    "bytes": partial(bare, 32, 64, 1024),
    "pixels": partial(pointwise, 7, 512, 64, "float16"),
    "planes": partial(pointwise, 7, 512, 32, "float16", channels_last=False),
    "token": partial(attention, 2, 1, 256, 64),
    "ragged tokens": partial(attention, 2, 3, 256, 64),
}


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(2)
def test_candidates_are_right(name: str) -> None:
    """One launch, whose blocks wait for each other."""
    task = lw.SearchTask(WORKLOADS[name], target=CUDA)
    sketches = [s for s in generate_sketches(task.module, task.target) if "_clustered" in s.name]
    assert sketches
    rng, reference = np.random.default_rng(len(name)), task.reference
    for sketch in sketches:
        for row in (sketch.default, *sketch.sample(rng, 1)):
            module = scheduled_kernel(str(task.module), sketch.schedule(row))
            launches = sum(isinstance(op, kernel.LaunchOp) for op in module.walk())
            assert launches == 1 if "_aligned" not in sketch.name else launches in (2, 3)  # copies of factors before
            (found,) = run_kernel(module, reference.inputs)
            np.testing.assert_allclose(found, reference.expected[0], **reference.tolerances[0]._asdict())


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


@pytest.mark.slow(1.2)
def test_results_of_several_images_that_are_padded_are_clustered_by_a_second_kernel() -> None:
    """Tiles of 8 of 7 pixels, of rows of two images, are no boxes of the parts."""
    task = lw.SearchTask(partial(pointwise, 7, 512, 64, "float16", images=2), target=CUDA)
    names = [s.name for s in generate_sketches(task.module, task.target)]
    assert any("_split" in name for name in names) and not any("_clustered" in name for name in names)


def test_older_devices_have_second_kernels() -> None:
    names = [s.name for s in lw.SearchTask(WORKLOADS["halves"], target="cuda model=a100").sketches]
    assert any("_split" in name for name in names) and not any("_clustered" in name for name in names)


def _padded_image() -> list[te.Tensor]:
    """3x3 of 10x10 pixels, whose rows and columns are padded to 12 in tiles."""
    data, kernel = te.placeholder((1, 10, 10, 512), "float16", "data"), te.placeholder((3, 3, 512, 48), "float16", "w")
    return [
        data,
        kernel,
        topi.cast(topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="float32")), "float16"),
    ]


def test_tiles_of_padded_images_are_boxes() -> None:
    task = lw.SearchTask(_padded_image, target=CUDA)
    sketches = [s for s in generate_sketches(task.module, task.target) if "_clustered" in s.name]
    assert sketches
    for sketch in sketches:
        rows = sketch.sample(np.random.default_rng(0), 60)
        tile = sketch.columns(rows)["compute_rf_i_tile"]
        assert ((tile % 12 == 0) | (12 % tile == 0)).all()
        scheduled_kernel(str(task.module), sketch.schedule(rows[0]))  # no block reads what another one has written
