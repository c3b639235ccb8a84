"""Workloads drawn at random, for the cost models that ship: kinds of operators, shapes and types as networks may have.

None is taken from a network or from the cases of the tables of operators: extents are drawn from wide distributions,
some round, some odd. A workload is its kind and its arguments, so that a set of samples says what it is of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from conv_families import COUNT, families
from later_cases import LATER
from operator_cases import (
    CASES,
    attention,
    conv,
    conv1d,
    conv3d,
    dense,
    layer_norm,
    matmul,
    rms_norm,
    scores,
    transposed,
    weighted,
)

import loopwright as lw
from loopwright import te, topi
from loopwright.search.calibrate import workloads as draw
from loopwright.search.calibrate.workloads import extent, one_of
from loopwright.search.workload import ComputeDAG
from loopwright.te import Tensor
from loopwright.te.tensor import Placeholder

Args = tuple[int | str, ...]
_ACTIVATIONS = ("", "", "relu", "gelu", "tanh", "silu", "sigmoid")


@dataclass(frozen=True)
class Workload:
    """An operator `kind` of `KINDS` with its arguments."""

    kind: str
    args: Args
    constant: bool = False
    """All inputs but the first are constants, as the weights of a network are."""

    def tensors(self) -> list[Tensor]:
        """Return inputs and outputs."""
        first, *others = KINDS[self.kind].make(*self.args)
        for tensor in others if self.constant else []:
            if isinstance(tensor.op, Placeholder):
                tensor.op = Placeholder(tensor.op.name, constant=True)
        return [first, *others]

    def task(self, target: str) -> lw.SearchTask:
        """Return the search task of it."""
        return lw.SearchTask(self.tensors, target=target)


@dataclass(frozen=True)
class Kind:
    """A family of workloads: what draws arguments, and the tensors of arguments."""

    draw: Callable[[np.random.Generator], Args]
    make: Callable[..., list[Tensor]]


@dataclass(frozen=True)
class Mix:
    """A distribution of workloads for a kind of target: shares of kinds, the largest ones, and roofs.

    `most_flops` is of a workload, `most_elements` of its largest tensor; `constants` is the part of those with weights
    in which these are constants.
    """

    shares: Mapping[str, float]
    most_flops: float
    most_elements: float
    flops_per_s: float
    bytes_per_s: float
    constants: float = 0.0
    float32_alone: bool = False

    def seconds(self, flops: float, elements: float) -> float:
        """The roofline of a workload in fp32."""
        return max(flops / self.flops_per_s, 4 * elements / self.bytes_per_s)


def mix_of(target: str) -> Mix:
    """Return the distribution for a target, by its text."""
    return CPU if target.startswith("llvm") else GPU


def sampled(
    seed: int, count: int, least_s: float = 0.0, kinds: Sequence[str] | None = None, mix: Mix | None = None
) -> list[Workload]:
    """Return different workloads in random order, of all kinds of a mix or of these, none of `operator_cases.py`.

    By the roofline of the mix, none takes less than `least_s`: on a large GPU half of what is drawn takes microseconds.
    """
    mix = mix or GPU
    rng, coin = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    held = {ComputeDAG.from_tensors(case.operator.tensors()).hash for case in (*CASES, *LATER)}
    names = list(kinds or mix.shares)
    shares = np.array([mix.shares[name] for name in names])
    found: dict[Workload, None] = {}
    while len(found) < count:
        kind = names[int(rng.choice(len(names), p=shares / shares.sum()))]
        constant = kind in WEIGHTED and bool(coin.random() < mix.constants)
        workload = Workload(kind, KINDS[kind].draw(rng), constant)
        if (dag := _asked(workload, mix, least_s)) is not None and dag.hash not in held:
            found[workload] = None
    return list(found)


def _asked(workload: Workload, mix: Mix, least_s: float) -> ComputeDAG | None:
    """The workload's graph; None where the mix has none of its size or types."""
    tensors = workload.tensors()
    if mix.float32_alone and any(tensor.dtype != "float32" for tensor in tensors):
        return None
    dag = ComputeDAG.from_tensors(tensors)
    elements = [math.prod(map(int, tensor.shape)) for tensor in tensors]
    if dag.flops > mix.most_flops or max(elements) > mix.most_elements:
        return None
    return dag if mix.seconds(dag.flops, sum(elements)) >= least_s else None


FAMILY_SEEDS = (1000, 9000)
"""Of lists of families of convolutions that workloads are drawn from: no table has one of them."""


def _word(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return str(rng.choice(choices))


# -- convolutions -----------------------------------------------------------------------------------------------------


def _conv(*args: int) -> list[Tensor]:
    return conv(*args).tensors()


def _conv_nhwc(n: int, c: int, size: int, out: int, k: int, stride: int, groups: int, dilation: int) -> list[Tensor]:
    """As `conv`, with channels last."""
    data, bias = te.placeholder((n, size, size, c), name="data"), te.placeholder((out,), name="bias")
    pad = dilation * (k // 2)
    if groups == c == out:
        kernel = te.placeholder((k, k, c, 1), name="kernel")
        found = topi.nn.depthwise_conv2d_nhwc(data, kernel, stride, pad, dilation)
    else:
        kernel = te.placeholder((k, k, c // groups, out), name="kernel")
        found = topi.nn.conv2d_nhwc(data, kernel, stride, pad, dilation, groups)
    return [data, kernel, bias, topi.nn.relu(topi.add(found, bias))]


def _conv1d_args(rng: np.random.Generator) -> Args:
    c = 1 if rng.random() < 0.15 else extent(rng, 8, 520)
    return c, extent(rng, 64, 8000), extent(rng, 16, 520), one_of(rng, 1, 3, 3, 5, 7, 10, 31), one_of(rng, 1, 1, 2, 4)


def _family_args(rng: np.random.Generator) -> Args:
    return int(rng.integers(*FAMILY_SEEDS)), int(rng.integers(COUNT)), "atrous" if rng.random() < 0.15 else ""


# -- products ---------------------------------------------------------------------------------------------------------


def _dense_args(rng: np.random.Generator) -> Args:
    return *draw.dense_args(rng), _word(rng, _ACTIVATIONS)


def _dense(rows: int, k: int, out: int, activation: str) -> list[Tensor]:
    *inputs, found = dense(rows, k, out).tensors()
    return [*inputs, _elementwise(activation)(found) if activation else found]


def _elementwise(name: str) -> Callable[[Tensor], Tensor]:
    found: Callable[[Tensor], Tensor] = getattr(topi.nn, name, None) or getattr(topi, name)
    return found


def _few_rows_args(rng: np.random.Generator) -> Args:
    return *draw.few_rows_args(rng), ""


def _matmul_args(rng: np.random.Generator) -> Args:
    return *draw.matmul_args(rng), _word(rng, ["float32", "float32", "float32", "float32", "float16"])


def _matmul(m: int, n: int, k: int, dtype: str) -> list[Tensor]:
    if dtype == "float32":
        return matmul(m, n, k).tensors()
    a, b = te.placeholder((m, k), dtype=dtype, name="a"), te.placeholder((k, n), dtype=dtype, name="b")
    return [a, b, topi.matmul(a, b, out_dtype="float32")]


def _half_args(rng: np.random.Generator) -> Args:
    m, n, k = (8 * extent(rng, least, 512) for least in (1, 1, 8))
    return m, n, k, _word(rng, ["float16", "float16", "bfloat16", "int8"]), one_of(rng, 0, 1)


def _half(m: int, n: int, k: int, dtype: str, transposed: int) -> list[Tensor]:
    """A product of types that matrix units multiply; the result is in the type of the factors, but sums of bytes."""
    a, b = te.placeholder((m, k), dtype, name="a"), te.placeholder((n, k) if transposed else (k, n), dtype, name="b")
    product = topi.matmul(a, b, transpose_b=bool(transposed), out_dtype="int32" if dtype == "int8" else "float32")
    return [a, b, product if dtype == "int8" else topi.cast(product, dtype)]


def _half_conv_args(rng: np.random.Generator) -> Args:
    return (
        one_of(rng, 1, 1, 2, 4, 16, 32, 64, 128),
        extent(rng, 5, 60),
        8 * extent(rng, 2, 80),
        8 * extent(rng, 2, 80),
        one_of(rng, 1, 3, 3, 5),
        one_of(rng, 1, 1, 2),
    )


def _half_conv(n: int, size: int, c: int, filters: int, k: int, stride: int) -> list[Tensor]:
    """NHWC in fp16, with bias and ReLU."""
    data, kernel = (
        te.placeholder((n, size, size, c), "float16", name="data"),
        te.placeholder((k, k, c, filters), "float16", name="kernel"),
    )
    bias = te.placeholder((filters,), "float16", name="bias")
    found = topi.nn.conv2d_nhwc(data, kernel, stride, k // 2, out_dtype="float32") + topi.cast(bias, "float32")
    return [data, kernel, bias, topi.cast(topi.nn.relu(found), "float16")]


# -- rows, pools, elements, moves -------------------------------------------------------------------------------------


def _data(*shape: int, dtype: str = "float32") -> Tensor:
    return te.placeholder(shape, dtype=dtype, name="data")


def _rows_args(rng: np.random.Generator) -> Args:
    kind = _word(rng, ["softmax", "log_softmax", "layer_norm", "rms_norm"])
    few = rng.random() < 0.2
    return kind, extent(rng, 1, 16) if few else extent(rng, 16, 9000), extent(rng, 16, 50000 if few else 4500)


def _rows(kind: str, rows: int, width: int) -> list[Tensor]:
    if kind in ("layer_norm", "rms_norm"):
        return (layer_norm if kind == "layer_norm" else rms_norm)(rows, width).tensors()
    data = _data(rows, width)
    return [data, getattr(topi.nn, kind)(data)]


def _reduction_args(rng: np.random.Generator) -> Args:
    return _word(rng, ["sum", "max", "mean"]), extent(rng, 4, 9000), extent(rng, 4, 9000), one_of(rng, 0, 1)


def _reduction(kind: str, rows: int, columns: int, axis: int) -> list[Tensor]:
    data = _data(rows, columns)
    return [data, getattr(topi, kind)(data, axis)]


def _middle_args(rng: np.random.Generator) -> Args:
    kind = _word(rng, ["sum", "max", "mean", "argmax", "argmax"])
    before, along = extent(rng, 1, 300), extent(rng, 4, 20000)
    return kind, before, along, 1 if rng.random() < 0.4 else extent(rng, 4, 5000)


def _middle(kind: str, before: int, along: int, after: int) -> list[Tensor]:
    """A reduction along the middle one of three axes, or along the last of two."""
    data = _data(before, along, after) if after > 1 else _data(before, along)
    return [data, getattr(topi, kind)(data, 1)]


def _pool_args(rng: np.random.Generator) -> Args:
    kind = _word(rng, ["max", "avg", "global"])
    sizes = one_of(rng, 1, 1, 4), extent(rng, 16, 1500), extent(rng, 6, 120)
    return kind, *sizes, one_of(rng, 2, 3, 5), one_of(rng, 1, 2)


def _pool(kind: str, n: int, c: int, size: int, k: int, stride: int) -> list[Tensor]:
    data = _data(n, c, size, size)
    if kind == "global":
        return [data, topi.nn.global_avg_pool(data)]
    return [data, (topi.nn.max_pool if kind == "max" else topi.nn.avg_pool)(data, k, stride, k // 2)]


def _elements_args(rng: np.random.Generator) -> Args:
    kind = _word(rng, ["relu", "gelu", "silu", "tanh", "sigmoid", "add", "multiply", "scaled"])
    return kind, extent(rng, 4, 4000), extent(rng, 16, 8000), _word(rng, ["float32", "float32", "float16"])


def _elements(kind: str, rows: int, columns: int, dtype: str) -> list[Tensor]:
    data = _data(rows, columns, dtype=dtype)
    if kind in ("add", "multiply"):
        other = te.placeholder((rows, columns), dtype=dtype, name="other")
        return [data, other, topi.nn.relu(getattr(topi, kind)(data, other))]
    if kind == "scaled":
        scale = te.placeholder((columns,), dtype=dtype, name="scale")
        return [data, scale, topi.nn.relu(topi.multiply(data, scale))]
    return [data, _elementwise(kind)(data)]


def _moves_args(rng: np.random.Generator) -> Args:
    rank = one_of(rng, 2, 3, 4)
    order = ",".join(map(str, rng.permutation(rank)))
    high = {2: 5000.0, 3: 500.0, 4: 100.0}[rank]
    return order, *(extent(rng, 2 if rank > 2 else 16, high) for _ in range(rank))


def _moves(order: str, *shape: int) -> list[Tensor]:
    data = _data(*shape)
    return [data, topi.transpose(data, tuple(map(int, order.split(","))))]


def _resize_args(rng: np.random.Generator) -> Args:
    size = extent(rng, 5, 160)
    to = size * one_of(rng, 2, 2, 3, 4, 8) if rng.random() < 0.7 else extent(rng, 5, 400)
    mode = _word(rng, ["asymmetric", "half_pixel", "align_corners"])
    return one_of(rng, 1, 1, 4), extent(rng, 1, 400), size, to, _word(rng, ["bilinear", "nearest"]), mode


def _resize(n: int, c: int, size: int, to: int, method: str, mode: str) -> list[Tensor]:
    data = _data(n, c, size, size)
    return [data, topi.resize2d(data, (to, to), method=method, coordinate_mode=mode)]


KINDS: dict[str, Kind] = {
    "conv": Kind(draw.conv_args, _conv),
    "pointwise": Kind(draw.pointwise_args, _conv),
    "grouped": Kind(draw.grouped_args, _conv),
    "depthwise": Kind(draw.depthwise_args, _conv),
    "transposed": Kind(draw.transposed_args, lambda *args: transposed(*args).tensors()),
    "conv1d": Kind(_conv1d_args, lambda *args: conv1d(*args).tensors()),
    "conv3d": Kind(draw.conv3d_args, lambda *args: conv3d(*args).tensors()),
    "dense": Kind(_dense_args, _dense),
    "few rows": Kind(_few_rows_args, _dense),
    "matmul": Kind(_matmul_args, _matmul),
    "scores": Kind(draw.batched_args, lambda *args: scores(*args).tensors()),
    "weighted": Kind(draw.batched_args, lambda *args: weighted(*args).tensors()),
    "attention": Kind(draw.batched_args, lambda *args: attention(*args).tensors()),
    "half": Kind(_half_args, _half),
    "half conv": Kind(_half_conv_args, _half_conv),
    "rows": Kind(_rows_args, _rows),
    "reduction": Kind(_reduction_args, _reduction),
    "pool": Kind(_pool_args, _pool),
    "elements": Kind(_elements_args, _elements),
    "moves": Kind(_moves_args, _moves),
    "middle": Kind(_middle_args, _middle),
    "resize": Kind(_resize_args, _resize),
    "conv family": Kind(_family_args, lambda seed, at, kind: families(seed, kind)[at].operator.tensors()),
    "conv nhwc": Kind(draw.conv_args, _conv_nhwc),
    "pointwise nhwc": Kind(draw.pointwise_args, _conv_nhwc),
    "depthwise nhwc": Kind(draw.depthwise_args, _conv_nhwc),
}
"""A workload's kind is what its arguments are of; "conv family" has a seed of `conv_families.py`, a case's number and a
family, "" where all are drawn."""
WEIGHTED = frozenset(name for name in KINDS if "conv" in name or "wise" in name) | {"grouped", "dense", "few rows"}
"""Kinds whose inputs but the first are weights."""
GPU = Mix(
    shares={
        "conv": 18,
        "pointwise": 10,
        "grouped": 5,
        "depthwise": 7,
        "transposed": 4,
        "conv1d": 4,
        "conv3d": 2,
        "conv family": 12,
        "dense": 11,
        "few rows": 8,
        "matmul": 9,
        "scores": 4,
        "weighted": 4,
        "attention": 2,
        "half": 4,
        "half conv": 4,
        "rows": 5,
        "reduction": 3,
        "pool": 4,
        "elements": 3,
        "moves": 5,
        "middle": 3,
        "resize": 2,
    },
    most_flops=2e10,
    most_elements=2.5e7,
    flops_per_s=6e13,
    bytes_per_s=4.8e12,
)
"""Shares are of workloads; those with many sketches and holes, in which there is most to gain, have most. The largest
take about a millisecond of an H200 in fp32, and 0.1 s with a schedule that is no good; its roofs are NVIDIA's."""
CPU = Mix(
    shares={
        "conv": 14,
        "conv nhwc": 12,
        "pointwise": 6,
        "pointwise nhwc": 6,
        "grouped": 5,
        "depthwise": 7,
        "depthwise nhwc": 6,
        "transposed": 4,
        "conv1d": 4,
        "conv3d": 3,
        "conv family": 24,
        "dense": 14,
        "few rows": 6,
        "matmul": 9,
        "scores": 4,
        "weighted": 4,
        "attention": 2,
        "rows": 4,
        "reduction": 3,
        "pool": 4,
        "elements": 2,
        "moves": 4,
    },
    most_flops=4e9,
    most_elements=8e6,
    flops_per_s=1e11,
    bytes_per_s=1e10,
    constants=0.4,
    float32_alone=True,
)
"""The roofs are about those of one core with vectors of 32 bytes."""
