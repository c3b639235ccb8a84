"""Attention in float32 as one kernel on lanes: candidates beside NumPy, their features, and what is left to others."""

import numpy as np
import pytest
from gpu_programs import scheduled_kernel
from sketch_rows import anywhere

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.kernel import LaunchOp
from loopwright.search.features.catalogue import names
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch

TARGET = lw.resolve_target("cuda model=h200")
Sizes = tuple[int, int, int, int]


def attention(kind: str, sizes: Sizes) -> list[te.Tensor]:
    """softmax(q k^T, masked) v of heads, queries, keys and elements of each, whose heads are parts of rows.

    Of kind `apart` each head is a matrix of its own; `kept` results are those above zero.
    """
    heads, queries, keys, size = sizes
    joined = kind != "apart"
    shapes = [(rows, heads, size) if joined else (heads, rows, size) for rows in (queries, keys, keys)]
    q, k, v = (te.placeholder(shape, "float32", name) for shape, name in zip(shapes, "qkv", strict=True))
    d, x = te.reduce_axis((0, size), "d"), te.reduce_axis((0, keys), "x")
    if not joined:
        scores = topi.nn.batch_matmul(q, k, transpose_b=True)
        return [q, k, v, topi.nn.batch_matmul(topi.nn.softmax(scores), v)]
    scores = te.compute((heads, queries, keys), lambda b, i, j: te.sum(q[i, b, d] * k[j, b, d], d), name="scores")
    mask = te.placeholder((queries, keys), "float32", "mask")
    given = [q, k, v, mask] if kind in ("masked", "kept") else [q, k, v]
    if len(given) > 3:
        scores = topi.add(topi.multiply(scores, 0.25), mask)
    weights = topi.nn.softmax(scores)
    sums = te.compute((queries, heads, size), lambda i, b, c: te.sum(weights[b, i, x] * v[x, b, c], x), name="sums")
    return [*given, topi.nn.relu(sums) if kind == "kept" else sums]


def expected(kind: str, inputs: list[np.ndarray]) -> np.ndarray:
    """The same in NumPy, in double precision."""
    q, k, v = (a.astype(np.float64) for a in inputs[:3])
    if kind == "apart":
        q, k, v = (a.transpose(1, 0, 2) for a in (q, k, v))
    scores = np.einsum("ibd,jbd->bij", q, k)
    if len(inputs) > 3:
        scores = 0.25 * scores + inputs[3]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    out: np.ndarray = np.einsum("bij,jbc->ibc", weights / weights.sum(-1, keepdims=True), v)
    return out.transpose(1, 0, 2) if kind == "apart" else np.maximum(out, 0.0) if kind == "kept" else out


def sketches(tensors: list[te.Tensor], target: lw.Target = TARGET) -> list[Sketch]:
    return generate_sketches(te.create_module(tensors, target), target)


CASES: tuple[tuple[str, Sizes], ...] = (
    ("plain", (2, 32, 64, 64)),
    ("masked", (3, 37, 50, 32)),
    ("kept", (2, 16, 128, 64)),
    ("apart", (2, 20, 41, 128)),
    ("plain", (1, 24, 197, 64)),
)


@pytest.mark.parametrize(("kind", "sizes"), CASES, ids=str)
@pytest.mark.few(2)
def test_candidates_are_right(kind: str, sizes: Sizes) -> None:
    """Interpreted, with the threads of a block side by side: no races, and all in one launch."""
    tensors = attention(kind, sizes)
    (sketch,) = sketches(tensors)
    assert sketch.name.endswith("lanes")
    rng = np.random.default_rng(len(kind))
    inputs = [rng.standard_normal(t.shape).astype(np.float32) for t in tensors[:-1]]
    text = str(te.create_module(tensors, TARGET))
    for row in (sketch.default, *anywhere(sketch, rng, 2)):
        kernel = scheduled_kernel(text, sketch.schedule(row))
        assert sum(isinstance(op, LaunchOp) for op in kernel.walk()) == 1
        (got,) = run_kernel(kernel, inputs)
        np.testing.assert_allclose(got, expected(kind, inputs), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("kind", "sizes"), CASES[:3], ids=str)
@pytest.mark.few(1)
def test_features_of_candidates_are_those_of_their_schedules(kind: str, sizes: Sizes) -> None:
    """But for registers, whose digits of other threads sizes that are open leave in."""
    tensors = attention(kind, sizes)
    module, (sketch,) = te.create_module(tensors, TARGET), sketches(tensors)
    compared = [n for n, name in enumerate(names()) if name not in ("main.registers", "main.spilled")]
    rows = anywhere(sketch, np.random.default_rng(1), 3)
    for row, have in zip(rows, sketch.features(rows), strict=True):
        want = features_of_schedule(module, TARGET, sketch.schedule(row))
        np.testing.assert_allclose(have[compared], want[compared], rtol=1e-4, atol=1e-4)


def test_what_lanes_do_not_share_is_left_to_others() -> None:
    """Elements of a result that 32 lanes do not divide, and rows that begin anywhere."""
    for sizes in ((2, 32, 64, 48), (2, 32, 64, 33)):
        assert not any(s.name.endswith("lanes") for s in sketches(attention("plain", sizes)))


def test_candidates_of_one_query_keep_the_shared_memory_that_there_is() -> None:
    """Keys of 16 elements a fill take rows of 36 in shared memory, as rows begin in other banks."""
    tensors = attention("apart", (2, 1, 512, 64))
    (sketch,) = (s for s in sketches(tensors) if s.name.endswith("lanes"))
    text = str(te.create_module(tensors, TARGET))
    rows = anywhere(sketch, np.random.default_rng(0), 4096)
    staged = [n for n, hole in enumerate(sketch.holes) if hole.name.endswith("stages")]
    for row in rows[np.argsort(-rows[:, staged].sum(axis=1), kind="stable")[:12]]:
        scheduled_kernel(text, sketch.schedule(row))  # which refuses what takes more
