"""Products of normalised rows, divided by the rows' root mean squares afterwards, on CUDA devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.backends.targets import resolve_target
from loopwright.dialects.numpy_types import teach_numpy
from loopwright.graph.tasks import group_tasks, grouping_for
from loopwright.search.measure.check import check_outputs

H200 = resolve_target("cuda model=h200")
teach_numpy("bfloat16")


def normalised(
    rows: int, columns: Sequence[int], *, dtype: str = "float32", gamma: str = "", shown: bool = False, terms: int = 256
) -> lw.Network:
    """Products of rows over their root mean square, scaled by gamma as an input of the norm, or behind it."""
    net: Any = lw.Network("normalised")
    rng = np.random.default_rng(0)
    x = net.input("x", (1, rows, terms), dtype)
    scale = net.constant((1 + rng.random(terms)).astype(dtype), "gamma")
    normal = net.rms_norm(x, scale, epsilon=1e-3) if gamma == "norm" else net.rms_norm(x, epsilon=1e-3)
    if gamma == "behind":
        normal = normal * scale
    flat = net.reshape(normal, shape=(rows, terms))
    weights = [net.constant((rng.standard_normal((n, terms)) / 16).astype(dtype), f"w{n}") for n in columns]
    made = [net.dense(flat, weight) for weight in weights]
    net.output(*(net.silu(value) for value in made), *([normal] if shown else []))
    return net


def groups_of(net: lw.Network) -> list[str]:
    return [pair.task.name for pair in group_tasks(net.transform(grouping_for(H200)), H200)]


@pytest.mark.parametrize("gamma", ["", "norm", "behind"])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float16", 4e-3)])
def test_a_network_computes_the_same(gamma: str, dtype: str, rtol: float) -> None:
    net = normalised(2, (48, 32), dtype=dtype, gamma=gamma)
    assert groups_of(net) == ["rms_dense_silu"] * 2
    x = (3 * np.random.default_rng(1).standard_normal((1, 2, 256))).astype(dtype)
    wanted = net.evaluate(x=x)
    for got, want in zip(net.transform(grouping_for(H200)).evaluate(x=x), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * float(np.abs(want).max()))


def test_only_products_of_few_long_rows_that_alone_read_what_is_normalised() -> None:
    moved, kept = ["rms_dense_silu"], ["rms_norm", "dense_silu"]
    assert groups_of(normalised(4, (48,))) == moved
    assert groups_of(normalised(5, (48,))) == kept
    assert groups_of(normalised(4, (48,), terms=248)) == kept
    assert groups_of(normalised(4, (48,), shown=True)) == kept
    cpu = resolve_target("llvm cores=1")
    assert "rms_dense_silu" not in [
        p.task.name for p in group_tasks(normalised(4, (48,)).transform(grouping_for(cpu)), cpu)
    ]


def gated(columns: int) -> lw.Network:
    """A feed-forward layer's gate, and what it is for, of a normalised row."""
    net: Any = lw.Network("gated")
    rng = np.random.default_rng(0)
    normal = net.rms_norm(net.input("x", (1, 256), "float16"))
    gate, up = (
        net.dense(normal, net.constant((rng.standard_normal((columns, 256)) / 16).astype(np.float16), name))
        for name in ("gate", "up")
    )
    net.output(net.silu(gate) * up)
    return net


def test_a_gate_and_what_it_is_for_are_one_kernel() -> None:
    (pair,) = group_tasks(gated(40).transform(grouping_for(H200)), H200)
    assert pair.task.name == "rms_dense_silu_multiply"
    check_kernels(pair.task)


def check_kernels(task: lw.SearchTask) -> None:
    """Hold some candidates of the first sketch, each one launch, to the interpreter of expressions."""
    sketch = task.sketches[0]
    rows = sketch.sample(np.random.default_rng(2), 3)
    for schedule in {task.default_schedule, *map(sketch.schedule, rows[sketch.legal(rows)])}:
        kernel = scheduled_kernel(str(task.module), schedule)
        assert str(kernel).count("lw_kernel.launch") == 1
        found = np.asarray(lw.interpret(kernel, *task.reference.inputs))
        check_outputs(task.name, ["output"], [found], task.reference, schedule)


@pytest.mark.parametrize(("rows", "dtype", "terms"), [(1, "float16", 512), (3, "float32", 260), (4, "bfloat16", 1027)])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_kernel_computes_both_sums(rows: int, dtype: str, terms: int) -> None:
    """Any candidate, in one launch."""
    (pair,) = group_tasks(
        normalised(rows, (21,), dtype=dtype, gamma="behind", terms=terms).transform(grouping_for(H200)), H200
    )
    assert len(pair.task.sketches) == 1
    check_kernels(pair.task)
