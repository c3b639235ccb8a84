"""Tasks of networks: the published lists, keys that last, and what each task says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import loopwright as lw

# The published tasks of MobileNet (auto-scheduling a network for Mali GPUs), NHWC, batch 1: shapes of data, weights
# and result. There the first convolution keeps its normalisation as factors; here it is in the weights.
POINTWISE = [
    ((1, 112, 112, 32), (1, 1, 32, 64), (1, 112, 112, 64)),
    ((1, 56, 56, 64), (1, 1, 64, 128), (1, 56, 56, 128)),
    ((1, 56, 56, 128), (1, 1, 128, 128), (1, 56, 56, 128)),
    ((1, 28, 28, 128), (1, 1, 128, 256), (1, 28, 28, 256)),
    ((1, 28, 28, 256), (1, 1, 256, 256), (1, 28, 28, 256)),
    ((1, 14, 14, 256), (1, 1, 256, 512), (1, 14, 14, 512)),
    ((1, 14, 14, 512), (1, 1, 512, 512), (1, 14, 14, 512)),
    ((1, 7, 7, 512), (1, 1, 512, 1024), (1, 7, 7, 1024)),
    ((1, 7, 7, 1024), (1, 1, 1024, 1024), (1, 7, 7, 1024)),
    ((1, 224, 224, 3), (3, 3, 3, 32), (1, 112, 112, 32)),
]
DEPTHWISE = [
    ((1, 112, 112, 32), (3, 3, 32, 1), (1, 112, 112, 32)),
    ((1, 112, 112, 64), (3, 3, 64, 1), (1, 56, 56, 64)),
    ((1, 56, 56, 128), (3, 3, 128, 1), (1, 56, 56, 128)),
    ((1, 56, 56, 128), (3, 3, 128, 1), (1, 28, 28, 128)),
    ((1, 28, 28, 256), (3, 3, 256, 1), (1, 28, 28, 256)),
    ((1, 28, 28, 256), (3, 3, 256, 1), (1, 14, 14, 256)),
    ((1, 14, 14, 512), (3, 3, 512, 1), (1, 14, 14, 512)),
    ((1, 14, 14, 512), (3, 3, 512, 1), (1, 7, 7, 512)),
    ((1, 7, 7, 1024), (3, 3, 1024, 1), (1, 7, 7, 1024)),
]


def shapes_of(task: lw.SearchTask) -> tuple[str, tuple[tuple[int, ...], ...]]:
    name, shapes, _ = json.loads(task.workload_key)
    return name, tuple(tuple(shape) for shape in (*shapes[:2], shapes[-1]))


def test_mobilenet_has_the_published_tasks() -> None:
    tasks, weights = lw.extract_tasks(lw.testing.mobilenet(batch=1, layout="NHWC"), "llvm cores=2")
    want = {
        *(("conv2d_add_relu", shapes) for shapes in POINTWISE),
        *(("depthwise_conv2d_add_relu", shapes) for shapes in DEPTHWISE),
        ("global_avg_pool", ((1, 7, 7, 1024), (1, 1, 1, 1024), (1, 1, 1, 1024))),
        ("dense_add", ((1, 1024), (1000, 1024), (1, 1000))),
        ("softmax", ((1, 1000), (1, 1000), (1, 1000))),
    }
    assert len(tasks) == len(want) == 22
    assert set(map(shapes_of, tasks)) == want
    assert sum(weights) == 30
    assert Counter(weights) == {1: 20, 5: 2}  # five blocks of 14 x 14 x 512


@pytest.mark.parametrize(("layers", "most"), [(18, 20), (50, 29)])
def test_resnet_has_few_tasks(layers: int, most: int) -> None:
    tasks, weights = lw.extract_tasks(lw.testing.resnet(layers, layout="NHWC", width=0.25), "llvm")
    assert len(tasks) <= most
    convolutions = layers - 1 + 4 - (layers < 50)  # those of the shortcuts are counted in no network's name
    assert sum(w for t, w in zip(tasks, weights, strict=True) if "conv2d" in t.workload_key) == convolutions


def test_task_prints_what_it_computes() -> None:
    net = lw.Network("net")
    x = net.input("data", (1, 4))
    y = net.bias_add(net.dense(x, net.constant(np.ones((8, 4), "float32"))), net.constant(np.ones(8, "float32")))
    net.output(net.softmax(net.relu(y) * 0.5))
    (first, second), weights = lw.extract_tasks(net, "llvm cores=1")
    assert weights == [1, 1]
    assert first.workload_key.startswith('["dense_add_relu_multiply", [[1, 4], [8, 4], [1, 8], [1, 8]], "')
    assert str(first.compute_dag).splitlines() == [
        "p0 = PLACEHOLDER [1, 4]",
        "p1 = PLACEHOLDER [8, 4] constant",
        "T_dense(i, j) += p0[i, k] * p1[j, k]",
        "p2 = PLACEHOLDER [1, 8] constant",
        "T_add(ax0, ax1) = T_dense[ax0, ax1] + p2[ax0, ax1]",
        "T_relu(i0, i1) = max(T_add[i0, i1], 0.0)",
        "T_multiply(ax0, ax1) = T_relu[ax0, ax1] * 0.5",
    ]
    assert second.name == "softmax"
    assert (first.flops, str(first.target.kind), first.target.cores) == (2 * 32 + 3 * 8, "llvm", 1)


@pytest.mark.slow(1.2)
def test_keys_are_the_same_in_every_process() -> None:
    program = """
import loopwright as lw
tasks, weights = lw.extract_tasks(lw.testing.mlp(), "cuda model=h200", include_simple_tasks=True)
print([task.workload_key for task in tasks], weights)
"""
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    tasks, weights = lw.extract_tasks(lw.testing.mlp(), "cuda model=h200", include_simple_tasks=True)
    assert runs == {f"{[task.workload_key for task in tasks]} {weights}\n"}


def test_simple_tasks_are_extracted_where_asked_for() -> None:
    net = lw.Network("net")
    x = net.input("data", (4, 8))
    net.output(net.relu(net.transpose(x)), net.sum(x, axis=1))
    assert [t.name for t in lw.extract_tasks(net)[0]] == ["sum"]
    assert [t.name for t in lw.extract_tasks(net, include_simple_tasks=True)[0]] == ["transpose_relu", "sum"]


def test_equal_computations_are_one_task() -> None:
    """Different weights, but one computation; another layout or number in it is another."""
    net = lw.Network("net")
    x = net.input("data", (2, 8))
    for scale in (1.0, 2.0, 2.0):
        x = net.dense(x, net.constant(np.full((8, 8), scale, "float32"))) + scale
    net.output(x)
    _, weights = lw.extract_tasks(net)
    assert sorted(weights) == [1, 2]
