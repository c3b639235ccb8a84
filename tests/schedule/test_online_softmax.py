"""Sums weighted by a softmax in one pass over blocks of terms, beside the nest without the step and NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.loop import AllocOp, blocks_in
from loopwright.dialects.presets import preset_target
from loopwright.passes.schedule.online_softmax import OnlineSoftmax
from loopwright.search.features.catalogue import names
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.features.of_sketch import SketchFeatures

HEADS, QUERIES, KEYS, SIZE = 2, 5, 11, 3


def attention(kind: str = "plain", keys: int = KEYS, queries: int = QUERIES, dtype: str = "float32") -> list[te.Tensor]:
    """softmax(q k^T, masked) v of HEADS heads."""
    q = te.placeholder((HEADS, queries, SIZE), dtype, "q")
    k, v = (te.placeholder((HEADS, keys, SIZE), dtype, name) for name in "kv")
    scores = topi.nn.batch_matmul(q, k, transpose_b=True)
    inputs = [q, k, v]
    if kind == "causal":
        late = keys - queries
        scores = te.compute(
            scores.shape,
            lambda b, i, j: te.if_then_else(j <= i + late, scores[b, i, j], float("-inf")),
            name="masked",
        )
    elif kind == "added":
        mask = te.placeholder((HEADS, queries, keys), dtype, "mask")
        inputs.append(mask)
        scores = topi.add(topi.multiply(scores, 0.5), mask)
    elif kind == "chosen":
        mask = te.placeholder((HEADS, queries, keys), "bool", "mask")
        inputs.append(mask)
        scores = topi.where(mask, scores, float("-inf"))
    weights = topi.nn.softmax(scores)
    product = te.reduce_axis((0, keys), "k")
    out = te.compute(
        (HEADS, queries, SIZE),
        lambda b, i, c: te.sum(weights[b, i, product].astype("float32") * v[b, product, c].astype("float32"), product),
        name="out",
    )
    return [*inputs, out]


def drawn(tensors: list[te.Tensor], seed: int) -> list[np.ndarray]:
    """Random inputs; additive masks are -inf for half of the elements, and so is the whole of one row of any mask."""
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for tensor in tensors[:-1]:
        values: np.ndarray = rng.standard_normal(tensor.shape).astype(tensor.dtype)
        if tensor.name == "mask":
            hidden = rng.random(tensor.shape) < 0.5
            hidden[..., 0] = False
            hidden[0, 1] = True
            values = ~hidden if tensor.dtype == "bool" else np.where(hidden, -np.inf, values).astype(tensor.dtype)
        found.append(values)
    return found


def expected(kind: str, inputs: list[np.ndarray]) -> np.ndarray:
    """The same in NumPy, in double precision."""
    q, k, v, *masks = (a.astype(np.float64) if a.dtype != bool else a for a in inputs)
    scores = np.einsum("bid,bjd->bij", q, k)
    if kind == "causal":
        late = k.shape[1] - q.shape[1]
        scores[:, ~np.tri(q.shape[1], k.shape[1], late, dtype=bool)] = -np.inf
    elif kind == "added":
        scores = scores * 0.5 + masks[0]
    elif kind == "chosen":
        scores = np.where(masks[0], scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bij,bjc->bic", weights / weights.sum(-1, keepdims=True), v)


KINDS = ("plain", "causal", "added", "chosen")


@pytest.mark.parametrize("padded", [0, 1])
@pytest.mark.parametrize("terms", [0, 1, 3, 4, 11, 16])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(12)
def test_blocks_of_terms_give_what_the_whole_softmax_gives(kind: str, terms: int, padded: int) -> None:
    tensors = attention(kind)
    sch = lw.Schedule(tensors)
    sch.online_softmax("out", terms, padded=padded if terms else 0)
    sch.module.verify()
    inputs = drawn(tensors, terms)
    with np.errstate(invalid="ignore"):
        (got,), (wanted,) = run_loops(sch.module, inputs), run_te(sch.workload, inputs)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got, expected(kind, inputs), rtol=1e-5, atol=1e-6)
    assert np.isnan(got).any() == (kind in ("added", "chosen"))


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_queries_are_extended_to_whole_blocks(kind: str) -> None:
    """Without a predicate but for what is read beyond the ends of arguments, and for the results."""
    tensors = attention(kind)
    sch = lw.Schedule(tensors)
    scored = sch.blocks[: sch.blocks.index("T_softmax_maxelem")]
    for block in scored:
        rows, columns = sch.get_loops(block)[1:3]
        sch.pad(block, columns, 4)
        sch.pad(block, rows, 8)
    sch.online_softmax("out", 4, padded=1)
    for block in sch.blocks[len(scored) : -1]:
        sch.pad(block, sch.get_loops(block)[1], 8)
    sch.module.verify()
    assert not any(block.conditions for block in blocks_in(sch.module))
    shapes = {op.label.data: op.buffer.type.get_shape() for op in sch.module.walk() if isinstance(op, AllocOp)}
    assert shapes[scored[0]] == (HEADS, 8, 12) and shapes["out_run"] == (HEADS, 8, SIZE)
    inputs = drawn(tensors, 5)
    with np.errstate(invalid="ignore"):
        (got,) = run_loops(sch.module, inputs)
    np.testing.assert_allclose(got, expected(kind, inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("queries", [1, 4, QUERIES])
@pytest.mark.parametrize("terms", [0, 3, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(8)
def test_all_may_be_computed_at_the_loop_over_blocks(kind: str, terms: int, queries: int) -> None:
    """A kernel that keeps the scores of a block of keys only, on the CPU."""
    tensors = attention(kind, 21, max(queries, 2) if kind in ("added", "chosen") else queries)
    sch = lw.Schedule(tensors, target="llvm")
    sch.online_softmax("out", terms)
    blocks = sch.blocks
    place = str(sch.split("out", sch.get_loops("out")[1], [None, 2])[0])
    if terms:
        sch.compute_at("out_run", place)
        loops = sch.get_loops("out_run")
        sch.reorder("out_run", loops[-1], *loops[2:-1])
        place = str(loops[-1])
    for block in reversed(blocks[: blocks.index("out_part") + 1]):
        sch.compute_at(block, place)
    sch.parallel("out", str(sch.get_loops("out")[0]))
    inputs = drawn(tensors, 7)
    got = lw.build(sch)(*inputs)
    np.testing.assert_allclose(got, expected(kind, inputs), rtol=2e-5, atol=2e-6)


def test_halves_are_summed_in_single_precision() -> None:
    tensors = attention("added", dtype="float16")
    sch = lw.Schedule(tensors)
    sch.online_softmax("out", 4)
    inputs = drawn(tensors, 2)
    with np.errstate(invalid="ignore"):
        (got,), (wanted,) = run_loops(sch.module, inputs), run_te(sch.workload, inputs)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3)


def test_values_that_are_not_numbers_stay_so() -> None:
    tensors = attention()
    inputs = drawn(tensors, 3)
    inputs[0][0, 0, 0], inputs[0][1, 2, 1] = np.nan, np.inf
    for terms in (0, 4):
        sch = lw.Schedule(tensors)
        sch.online_softmax("out", terms)
        with np.errstate(invalid="ignore", over="ignore"):
            (got,), (wanted,) = run_loops(sch.module, inputs), run_te(sch.workload, inputs)
        assert (np.isnan(got) == np.isnan(wanted)).all()
        assert np.isnan(got[0, 0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.few(1)
def test_features_of_all_candidates_are_those_of_each(kind: str, dtype: str, blocks: bool) -> None:
    module, target = te.create_module(attention(kind, 24, dtype=dtype)), preset_target("llvm cores=2 vector_bytes=64")
    option = " terms=<t>" if blocks else ""
    at = "k0" if blocks else "i0"
    steps = [
        "lw-lower-te-to-loop",
        f'lw-online-softmax{{block="out"{option}}}',
        'lw-split{block="out" loop="i" factors=0,<s>}',
        *(
            [
                'lw-compute-at{block="out_run" loop="i0" unit_loops=true}',
                'lw-reorder{block="out_run" loops="k0","i","c"}',
            ]
            if blocks
            else []
        ),
        f'lw-compute-at{{block="out_part" loop="{at}" unit_loops=true}}',
        f'lw-compute-at{{block="T_softmax_expsum" loop="{at}" unit_loops=true}}',
        f'lw-compute-at{{block="T_softmax_exp" loop="{at}" unit_loops=true}}',
        f'lw-compute-at{{block="T_softmax_maxelem" loop="{at}" unit_loops=true}}',
    ]
    template = ",".join(steps)
    values = np.array([(t, s) for t in (1, 4, 5, 8, 16) for s in (2, 3)])
    columns = dict(zip("ts", values.T, strict=True))
    features = SketchFeatures(module, target, "online", template, None)(columns, len(values))
    for (t, s), have in zip(values, features, strict=True):
        want = features_of_schedule(module, target, template.replace("<t>", str(t)).replace("<s>", str(s)))
        columns_of = zip([*names(), "prior"], have, want, strict=True)
        differing = {n: (a, b) for n, a, b in columns_of if not np.isclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)}
        assert not differing, (t, s)


LOWEST = float("-inf")
KEPT_BY: dict[str, tuple[Callable[[Any, te.IterVar, te.IterVar], Any], str]] = {
    "those before": (lambda x, i, j: te.if_then_else(j <= i, x, LOWEST), "out_i - k0 * 4"),
    "turned": (lambda x, i, j: te.if_then_else(j > i + 1, LOWEST, x), "out_i - k0 * 4 + 1"),
    "added": (lambda x, i, j: x * 0.5 + te.if_then_else(j <= 2 * i, 0.0, LOWEST), "out_i * 2 - k0 * 4"),
    "window": (
        lambda x, i, j: te.if_then_else(te.all(j <= i, j + 3 >= i), x, LOWEST),
        "out_i - k0 * 4, k0 * 4 - out_i + 6",
    ),
    "finite": (lambda x, i, j: te.if_then_else(j <= i, x, -30000.0), ""),
    "negated": (lambda x, i, j: 0.0 - te.if_then_else(j <= i, x, LOWEST), ""),
}


@pytest.mark.parametrize("name", KEPT_BY)
def test_blocks_that_masks_leave_nothing_of_are_known(name: str) -> None:
    mask, wanted = KEPT_BY[name]
    x, v = te.placeholder((9, 11), name="x"), te.placeholder((11, 3), name="v")
    masked = te.compute((9, 11), lambda i, j: mask(x[i, j], i, j), name="masked")
    weights, k = topi.nn.softmax(masked), te.reduce_axis((0, 11), "k")
    out = te.compute((9, 3), lambda out_i, c: te.sum(weights[out_i, k] * v[k, c], axis=k), name="out")
    sch = lw.Schedule([x, v, out])
    sch.online_softmax("out", 4)
    notes = next(b for b in blocks_in(sch.module) if b.block_name == "out_run").notes
    assert str(notes.get("kept", "#lw.indices<>")) == f"#lw.indices<{wanted}>"
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape, dtype=np.float32) for shape in ((9, 11), (11, 3))]
    with np.errstate(invalid="ignore"):
        (got,), (plain,) = run_loops(sch.module, inputs), run_te(sch.workload, inputs)
    np.testing.assert_allclose(got, plain, rtol=1e-5, atol=1e-6)


def refused(tensors: list[te.Tensor]) -> str:
    sch = lw.Schedule(tensors)
    before = str(sch)
    with pytest.raises(lw.ScheduleError) as found:
        sch.online_softmax("out", 4)
    assert str(sch) == before
    assert not OnlineSoftmax.schedule_space(Context(), sch.module)
    return str(found.value).splitlines()[0]


def weighted(sum_of: Callable[[te.Tensor, te.Tensor, te.IterVar], Any], axis: int = -1) -> list[te.Tensor]:
    x, v = te.placeholder((4, 6), name="x"), te.placeholder((6, 4), name="v")
    weights = topi.nn.softmax(x, axis)
    k = te.reduce_axis((0, 6), "k")
    return [x, v, te.compute((4,), lambda i: te.sum(sum_of(weights, v, k)(i), axis=k), name="out")]


def test_what_is_no_softmax_is_left_alone() -> None:
    columns = refused(weighted(lambda w, v, k: lambda i: w[i, k] * v[k, i], axis=0))
    assert columns.endswith("'T_softmax_norm' divides by more than one number for each row")
    assert "is no sum of products" in refused(weighted(lambda w, v, k: lambda i: w[i, k] + v[k, i]))
    squared = weighted(lambda w, v, k: lambda i: w[i, k] * (w[i, k] + v[k, i]))
    assert "no factor of 'out' is a quotient that it alone reads" in refused(squared)


def test_searches_are_offered_what_is_legal() -> None:
    module = lw.Schedule(weighted(lambda w, v, k: lambda i: w[i, k] * v[k, i])).module
    assert OnlineSoftmax.schedule_space(Context(), module) == (OnlineSoftmax("out", 0), OnlineSoftmax("out", 16))
    OnlineSoftmax("out", 16).run(module)
    assert not OnlineSoftmax.schedule_space(Context(), module)


def test_weights_that_others_read_stay() -> None:
    x, v = te.placeholder((4, 6), name="x"), te.placeholder((6, 4), name="v")
    weights = topi.nn.softmax(x)
    k = te.reduce_axis((0, 6), "k")
    out = te.compute((4,), lambda i: te.sum(weights[i, k] * v[k, i], axis=k), name="out")
    assert "no factor of 'out' is a quotient that it alone reads" in refused([x, v, out, weights])
    assert "no factor" in refused([x, v, out, te.compute((4, 6), lambda i, j: weights[i, j] + 1, name="more")])


def test_sums_of_halves_are_refused() -> None:
    x, v = te.placeholder((4, 6), "float16", "x"), te.placeholder((6, 4), "float16", "v")
    weights = topi.nn.softmax(x)
    k = te.reduce_axis((0, 6), "k")
    out = te.compute((4,), lambda i: te.sum(weights[i, k] * v[k, i], axis=k), name="out")
    assert "exponentials and sums must be of one type of floats, they are f16, f32" in refused([x, v, out])


@pytest.mark.parametrize("wrong", ["maximum", "sum"])
def test_another_maximum_or_sum_is_no_softmax(wrong: str) -> None:
    x, y, v = te.placeholder((4, 6), name="x"), te.placeholder((4, 6), name="y"), te.placeholder((6, 3), name="v")
    k, k1, k2 = (te.reduce_axis((0, 6), "k") for _ in range(3))
    most = te.compute((4,), lambda i: te.max((y if wrong == "maximum" else x)[i, k], axis=k), name="most")
    e = te.compute((4, 6), lambda i, j: te.exp(x[i, j] - most[i]), name="e")
    total = te.compute((4,), lambda i: te.sum(e[i, k1] * (2.0 if wrong == "sum" else 1.0), axis=k1), name="total")
    w = te.compute((4, 6), lambda i, j: e[i, j] / total[i], name="w")
    out = te.compute((4, 3), lambda i, c: te.sum(w[i, k2] * v[k2, c], axis=k2), name="out")
    reason = {"maximum": "'most' is the maximum of something else", "sum": "'total' does not add up the exponentials"}
    assert reason[wrong] in refused([x, *([y] if wrong == "maximum" else []), v, out])


def rounded_attention(keys: int) -> list[te.Tensor]:
    """Of half precision, its weights rounded before they are multiplied."""
    tensors = attention(keys=keys, dtype="float16")
    assert tensors[0].dtype == "float16"
    return tensors


@pytest.mark.parametrize("terms", [0, 1, 4, 16])
def test_exponentials_are_rounded_for_the_product_alone(terms: int) -> None:
    """In the place of quotients, by a block of that name; their sum is of what was not rounded."""
    tensors = rounded_attention(11)
    sch = lw.Schedule(tensors)
    sch.online_softmax("out", terms, rounded=1)
    sch.module.verify()
    assert "T_softmax_norm" in sch.blocks
    inputs = drawn(tensors, terms)
    (got,), (wanted,) = run_loops(sch.module, inputs), run_te(sch.workload, inputs)
    np.testing.assert_allclose(got, wanted, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(got, expected("plain", inputs), rtol=2e-3, atol=2e-3)


def test_quotients_that_are_not_rounded_leave_nothing_to_round() -> None:
    sch = lw.Schedule(attention())
    with pytest.raises(lw.ScheduleError, match="'T_softmax_norm' does not round its quotients"):
        sch.online_softmax("out", 4, rounded=1)
    with pytest.raises(lw.ScheduleError, match="rounded must be 0 or 1, got 2"):
        sch.online_softmax("out", 4, rounded=2)


@pytest.mark.parametrize("blocks", [True, False])
def test_features_of_rounded_exponentials_are_those_of_each(blocks: bool) -> None:
    module, target = te.create_module(rounded_attention(24)), preset_target("llvm cores=2 vector_bytes=64")
    option = " terms=<t>" if blocks else ""
    template = f'lw-lower-te-to-loop,lw-online-softmax{{block="out"{option} rounded=1}}'
    values = np.array([1, 4, 5, 24])
    features = SketchFeatures(module, target, "online", template, None)({"t": values}, len(values))
    for t, have in zip(values, features, strict=True):
        want = features_of_schedule(module, target, template.replace("<t>", str(t)))
        np.testing.assert_allclose(have[:-1], want[:-1], rtol=1e-4, atol=1e-4)
