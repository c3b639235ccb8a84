"""Random layers of networks: convolutions and products in fp32, by name and arguments, as `named_workloads` has them.

Extents are of wide distributions, some round, some odd; none is taken from a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...te import Tensor
from ...te.tensor import Placeholder
from ..named_workloads import arguments, find_workload
from ..workload import ComputeDAG

Options = Mapping[str, int | bool]
"""Arguments of a named workload."""

FLOPS = (4e5, 1e9)
"""Operations of a workload: below, a core takes as long as a call does; above, a second for a schedule that is no good.
A choice."""
MOST_ELEMENTS = 8e6
"""Of the largest tensor. A choice: 32 MB, which takes a tenth of a second to draw and to compare."""

CONSTANTS = 0.5
"""Part of the workloads with constants. A choice."""


def extent(rng: np.random.Generator, low: float, high: float) -> int:
    """Return a number between two: their logarithms are even, half are multiples of 8, a fifth of 64, the rest any."""
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    step = int(rng.choice([1, 8, 16, 64], p=[0.3, 0.3, 0.2, 0.2]))
    return max(1, round(value / step) * step) if value >= 1.5 * step else max(1, round(value))


def one_of(rng: np.random.Generator, *choices: int) -> int:
    """Return one of some numbers."""
    return int(rng.choice(choices))


def conv_args(rng: np.random.Generator) -> tuple[int, ...]:
    """Batch, channels, size, filters, window, stride, groups and dilation of a square convolution."""
    c = one_of(rng, 1, 3, 4) if rng.random() < 0.12 else extent(rng, 8, 640)
    k = one_of(rng, 3, 3, 3, 3, 5, 7, 2, 9, 11)
    stride = one_of(rng, 1, 1, 1, 2, 2, 3)
    dilation = one_of(rng, 2, 3, 4, 6) if k == 3 and stride == 1 and rng.random() < 0.2 else 1
    return one_of(rng, 1, 1, 1, 2, 4, 8), c, extent(rng, 5, 260), extent(rng, 8, 640), k, stride, 1, dilation


def pointwise_args(rng: np.random.Generator) -> tuple[int, ...]:
    """The same of one tap."""
    size = 1 if rng.random() < 0.12 else extent(rng, 5, 120)
    batch = one_of(rng, 1, 1, 1, 2, 8)
    return batch, extent(rng, 8, 1500), size, extent(rng, 8, 1500), 1, one_of(rng, 1, 1, 1, 2), 1, 1


def grouped_args(rng: np.random.Generator) -> tuple[int, ...]:
    """The same in groups."""
    groups, each = one_of(rng, 2, 4, 8, 16, 24, 32), one_of(rng, 4, 8, 12, 16, 32, 40)
    return 1, groups * each, extent(rng, 6, 90), groups * each, one_of(rng, 3, 3, 5), one_of(rng, 1, 1, 2), groups, 1


def depthwise_args(rng: np.random.Generator) -> tuple[int, ...]:
    """The same of channels apart."""
    c = extent(rng, 16, 1200)
    return one_of(rng, 1, 1, 1, 4), c, extent(rng, 6, 130), c, one_of(rng, 3, 3, 3, 5, 7), one_of(rng, 1, 1, 2), c, 1


def transposed_args(rng: np.random.Generator) -> tuple[int, ...]:
    """Channels, size, filters, window, stride and padding of a transposed convolution."""
    k, stride, pad = [(2, 2, 0), (3, 2, 1), (4, 2, 1), (4, 4, 0), (5, 2, 2)][one_of(rng, *range(5))]
    return extent(rng, 16, 300), extent(rng, 4, 70), extent(rng, 8, 200), k, stride, pad


def conv3d_args(rng: np.random.Generator) -> tuple[int, ...]:
    """Channels, depth, size and filters of a 3x3x3 convolution."""
    return extent(rng, 3, 96), extent(rng, 4, 34), extent(rng, 6, 64), extent(rng, 8, 96)


def dense_args(rng: np.random.Generator) -> tuple[int, ...]:
    """Rows, terms and columns of a product with a weight."""
    return extent(rng, 17, 4200), extent(rng, 32, 4500), extent(rng, 32, 6000)


def few_rows_args(rng: np.random.Generator) -> tuple[int, ...]:
    """The same of few rows."""
    return one_of(rng, 1, 1, 1, 2, 3, 4, 6, 8, 12, 16), extent(rng, 64, 9000), extent(rng, 16, 40000)


def matmul_args(rng: np.random.Generator) -> tuple[int, ...]:
    """Rows, columns and terms of a product, some tall or thin."""
    m, n, k = extent(rng, 8, 3000), extent(rng, 8, 3000), extent(rng, 16, 4500)
    if rng.random() < 0.2:
        m, n = (extent(rng, 5000, 60000), extent(rng, 4, 64))[:: one_of(rng, 1, -1)]
    return m, n, k


def batched_args(rng: np.random.Generator) -> tuple[int, ...]:
    """Heads, rows, columns and terms of products in a batch."""
    columns = extent(rng, 2, 260), extent(rng, 1, 700), extent(rng, 16, 700)
    return *columns, one_of(rng, 16, 32, 40, 64, 64, 80, 96, 128)


def _conv2d(n: int, c: int, size: int, out: int, k: int, stride: int, groups: int, dilation: int) -> Options:
    square = {"h": size, "w": size, "kh": k, "kw": k, "pad": dilation * (k // 2)}
    return {**square, "n": n, "ci": c, "co": out, "stride": stride, "groups": groups, "dilation": dilation}


def _depthwise(n: int, c: int, size: int, _: int, k: int, stride: int, *others: int) -> Options:
    return {"n": n, "h": size, "w": size, "c": c, "kh": k, "kw": k, "stride": stride, "pad": k // 2}


def _transposed(c: int, size: int, out: int, k: int, stride: int, pad: int) -> Options:
    return {"h": size, "w": size, "ci": c, "co": out, "kh": k, "kw": k, "stride": stride, "pad": pad}


Draw = Callable[[np.random.Generator], tuple[int, ...]]
_KINDS: tuple[tuple[float, str, Draw, Callable[..., Options]], ...] = (
    (22, "conv2d", conv_args, _conv2d),
    (14, "conv2d_nhwc", conv_args, _conv2d),
    (8, "conv2d", pointwise_args, _conv2d),
    (8, "conv2d_nhwc", pointwise_args, _conv2d),
    (7, "conv2d", grouped_args, _conv2d),
    (9, "depthwise_nchw", depthwise_args, _depthwise),
    (7, "depthwise", depthwise_args, _depthwise),
    (5, "conv2d_transpose", transposed_args, _transposed),
    (4, "conv3d", conv3d_args, lambda c, d, size, out: {"ci": c, "d": d, "h": size, "w": size, "co": out}),
    (10, "dense", dense_args, lambda m, k, n: {"m": m, "k": k, "n": n}),
    (6, "dense", few_rows_args, lambda m, k, n: {"m": m, "k": k, "n": n}),
    (9, "matmul", matmul_args, lambda m, n, k: {"m": m, "n": n, "k": k}),
    (4, "batch_matmul", batched_args, lambda b, m, n, k: {"b": b, "m": m, "n": n, "k": k, "transpose_b": True}),
    (4, "batch_matmul", batched_args, lambda b, m, k, n: {"b": b, "m": m, "n": n, "k": k}),
)
"""Shares of kinds, the workloads' names, what draws their extents, and what these are as arguments."""


def drawn_workloads(seed: int) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield names and tensors of different workloads, in random order and without end, the same for the same seed.

    Half of them have constants for all inputs but the first, as the layers of a network do.
    """
    rng, seen = np.random.default_rng(seed), set()
    shares = np.array([share for share, *_ in _KINDS])
    while True:
        _, name, draw, named = _KINDS[int(rng.choice(len(_KINDS), p=shares / shares.sum()))]
        workload = find_workload(name)
        tensors = list(workload.function(*arguments(workload, named(*draw(rng)))))
        for tensor in tensors[1:] if rng.random() < CONSTANTS else ():
            if isinstance(tensor.op, Placeholder):
                tensor.op = Placeholder(tensor.op.name, constant=True)
        dag = ComputeDAG.from_tensors(tensors)
        elements = max(math.prod(map(int, tensor.shape)) for tensor in tensors)
        if dag.hash not in seen and FLOPS[0] <= dag.flops <= FLOPS[1] and elements <= MOST_ELEMENTS:
            seen.add(dag.hash)
            yield name, tensors
