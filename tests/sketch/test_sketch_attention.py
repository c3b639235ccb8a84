"""Attention in one pass on a CPU: candidates beside NumPy, their features, and what is left to other rules."""

import numpy as np
import pytest
from sketch_rows import anywhere

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.loop import blocks_in
from loopwright.dialects.presets import preset_target
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.rules.attention import plan_attention
from loopwright.search.sketch.draft import Draft
from loopwright.search.sketch.generate import generate_sketches

WIDE = preset_target("llvm cores=2 vector_bytes=32 l2_bytes=524288")


def attention(kind: str, heads: int, queries: int, keys: int, size: int, dtype: str = "float32") -> list[te.Tensor]:
    """softmax(q k^T, masked) v; keys are (size, keys) where the kind is `turned`."""
    q, v = te.placeholder((heads, queries, size), dtype, "q"), te.placeholder((heads, keys, size), dtype, "v")
    turned = kind == "turned"
    k = te.placeholder((heads, size, keys) if turned else (heads, keys, size), dtype, "k")
    inputs = [q, k, v]
    scores = topi.nn.batch_matmul(q, k, transpose_b=not turned)
    if kind == "causal":
        masked = topi.multiply(scores, 0.25)
        scores = te.compute(
            scores.shape, lambda b, i, j: te.if_then_else(j <= i, masked[b, i, j], float("-inf")), name="causal"
        )
    elif kind == "masked":
        mask = te.placeholder((1, queries, keys), dtype, "mask")
        inputs.append(mask)
        scores = topi.add(topi.multiply(scores, 0.25), mask)
    return [*inputs, topi.nn.batch_matmul(topi.nn.softmax(scores), v)]


def expected(kind: str, inputs: list[np.ndarray]) -> np.ndarray:
    """The same in NumPy, in double precision."""
    q, k, v, *mask = (a.astype(np.float64) for a in inputs)
    scores = np.einsum("bid,bdj->bij" if kind == "turned" else "bid,bjd->bij", q, k)
    if kind in ("causal", "masked"):
        scores *= 0.25
    if kind == "causal":
        scores[:, ~np.tri(scores.shape[1], scores.shape[2], dtype=bool)] = -np.inf
    if mask:
        scores = scores + mask[0]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bij,bjc->bic", weights / weights.sum(-1, keepdims=True), v)


KINDS = ("plain", "turned", "causal", "masked")
SIZES = ((2, 40, 150, 24), (3, 33, 67, 10), (2, 21, 70, 5), (2, 35, 70, 50))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(1)
def test_candidates_compute_attention(kind: str, sizes: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(len(kind))
    tensors = attention(kind, *sizes)
    inputs = [rng.standard_normal(t.shape, dtype=np.float32) for t in tensors[:-1]]
    wanted = expected(kind, inputs)
    task = lw.SearchTask(lambda: tensors, target="llvm")
    assert {sketch.name for sketch in task.sketches} == {"attention", "attention_blocks"}
    for sketch in task.sketches:
        for row in (sketch.default, *anywhere(sketch, rng, 2)):
            got = task.build(sketch.schedule(row))(*inputs)
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(1)
def test_features_of_candidates_are_those_of_their_schedules(kind: str) -> None:
    module = te.create_module(attention(kind, 2, 40, 150, 24), WIDE)
    for sketch in generate_sketches(module, WIDE):
        rows = anywhere(sketch, np.random.default_rng(1), 3)
        for row, have in zip(rows, sketch.features(rows), strict=True):
            want = features_of_schedule(module, WIDE, sketch.schedule(row))
            np.testing.assert_allclose(have[: len(want) - 1], want[:-1], rtol=1e-4, atol=1e-4)


def test_weights_that_are_rounded_before_they_are_multiplied_are_those_of_one_nest() -> None:
    q, k, v = (te.placeholder((2, 40, 24), "float16", name) for name in "qkv")
    weights = topi.cast(topi.nn.softmax(topi.nn.batch_matmul(q, k, transpose_b=True, out_dtype="float32")), "float16")
    tensors = [q, k, v, topi.nn.batch_matmul(weights, v, out_dtype="float32")]
    (sketch,) = generate_sketches(te.create_module(tensors, WIDE), WIDE)
    assert sketch.name == "attention"
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(t.shape).astype(np.float16) for t in tensors[:-1]]
    task = lw.SearchTask(lambda: tensors, target="llvm")
    got = task.build(task.sketches[0].schedule(task.sketches[0].default))(*inputs)
    np.testing.assert_allclose(got, expected("plain", inputs), rtol=2e-3, atol=2e-3)


def test_everything_is_in_one_nest() -> None:
    module = te.create_module(attention("causal", 2, 40, 150, 24), WIDE)
    for sketch in generate_sketches(module, WIDE):
        apply_schedule(scheduled := module.clone(), sketch.schedule(sketch.default))
        assert len({block.enclosing_loops[0] for block in blocks_in(scheduled)}) == 1


def test_blocks_of_keys_behind_all_queries_of_a_task_are_not_read() -> None:
    """They are no numbers here, which a weight of 0 would not hide."""
    rng = np.random.default_rng(0)
    tensors = attention("causal", 2, 128, 128, 8)
    inputs = [rng.standard_normal(t.shape, dtype=np.float32) for t in tensors[:-1]]
    wanted = expected("causal", inputs)
    inputs[2][:, 64:] = np.nan
    task = lw.SearchTask(lambda: tensors, target="llvm")
    sketch = next(s for s in task.sketches if s.name == "attention_blocks")
    small = [h.choices.index(64) if h.name.endswith("terms") else 0 for h in sketch.holes]
    got = task.build(sketch.schedule(np.array(small)))(*inputs)
    np.testing.assert_allclose(got[:, :64], wanted[:, :64], rtol=2e-5, atol=2e-5)


def test_rows_that_a_cache_does_not_hold_are_tried_in_blocks_first() -> None:
    def names(keys: int) -> list[str]:
        return [s.name for s in generate_sketches(te.create_module(attention("plain", 2, 64, keys, 16), WIDE), WIDE)]

    assert names(60) == ["attention"]
    assert names(100) == ["attention", "attention_blocks"]
    assert names(8192) == ["attention_blocks", "attention"]
    module = te.create_module(attention("causal", 2, 64, 512, 16), WIDE)
    assert [s.name for s in generate_sketches(module, WIDE)] == ["attention_blocks", "attention"], "some are skipped"


def left_alone(tensors: list[te.Tensor], target: lw.Target = WIDE) -> bool:
    draft = Draft.of(te.create_module(tensors, target))
    return not any(plan_attention(block, target) for block in blocks_in(draft.module))


def test_other_nests_are_left_to_other_rules() -> None:
    assert not left_alone(attention("plain", 2, 40, 30, 24))
    assert left_alone(attention("plain", 2, 1, 30, 24)), "one query fills no lanes"
    x, y = te.placeholder((16, 20), name="x"), te.placeholder((20, 8), name="y")
    assert left_alone([x, y, topi.nn.matmul(topi.nn.softmax(x), y)]), "scores are given"
    *inputs, out = attention("plain", 2, 40, 30, 24)
    assert not left_alone([*inputs, topi.nn.relu(out)])
    assert left_alone([x, y, topi.nn.softmax(topi.nn.matmul(x, y))])


def test_scores_that_others_read_are_left_to_other_rules() -> None:
    q, k, v = (te.placeholder((2, 40, 24), name=name) for name in "qkv")
    scores = topi.nn.batch_matmul(q, k, transpose_b=True)
    out = topi.nn.batch_matmul(topi.nn.softmax(scores), v)
    assert left_alone([q, k, v, out, scores])
    assert left_alone([q, k, v, out, topi.exp(scores)])
