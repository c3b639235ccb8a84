"""Attention as one kernel on matrix units: candidates beside NumPy, their features, and what is left to other rules."""

import re
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from gpu_programs import compile_cuda, scheduled_kernel
from ml_dtypes import bfloat16
from sketch_rows import anywhere
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.cuda.nvrtc import compile_cubin
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.kernel import (
    AllocOp,
    BulkCopyOp,
    FragmentPackOp,
    LaunchOp,
    ProxyFenceOp,
    WarpGroupProductOp,
)
from loopwright.dialects.loop import blocks_in
from loopwright.search.cost_model.shipped import shipped_model
from loopwright.search.features.catalogue import names
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.rules.gpu_attention import plan_attention
from loopwright.search.sketch.draft import Draft
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.likely import compared
from loopwright.search.sketch.sketch import Sketch

TARGET = lw.resolve_target("cuda model=h200")
Sizes = tuple[int, int, int, int]
TYPES = {"float16": np.float16, "bfloat16": bfloat16}


def attention(kind: str, sizes: Sizes, dtype: str = "float16") -> list[te.Tensor]:
    """softmax(q k^T, scaled and masked) v of heads, queries, keys and elements of each.

    Of kind `rounded` scores and weights are of the narrow type in between; `cast` weights are rounded by an operator of
    their own; `joined` heads are parts of rows.
    """
    heads, queries, keys, size = sizes
    joined = kind == "joined"
    shapes = [(rows, heads * size) if joined else (heads, rows, size) for rows in (queries, keys, keys)]
    q, k, v = (te.placeholder(shape, dtype, name) for shape, name in zip(shapes, "qkv", strict=True))
    inputs = [q, k, v]
    if joined:
        d, wide = te.reduce_axis((0, size), "d"), "float32"
        scores = te.compute(
            (heads, queries, keys),
            lambda b, i, j: te.sum(q[i, b * size + d].astype(wide) * k[j, b * size + d].astype(wide), d),
            name="scores",
        )
    else:
        scores = topi.nn.batch_matmul(q, k, transpose_b=True, out_dtype="float32")
    if kind == "rounded":
        scores = topi.multiply(topi.cast(scores, dtype), 0.25)
    elif kind == "causal":
        late = keys - queries
        scaled = topi.multiply(scores, 0.25)
        scores = te.compute(
            scores.shape, lambda b, i, j: te.if_then_else(j <= i + late, scaled[b, i, j], float("-inf")), name="causal"
        )
    elif kind == "masked":
        mask = te.placeholder((queries, keys), "bool", "mask")
        inputs.append(mask)
        scores = topi.where(mask, topi.multiply(scores, 0.25), -30000.0)
    weights = topi.nn.softmax(scores) if kind in ("rounded", "cast") else _rounded(scores, dtype)
    if kind == "cast":
        weights = topi.cast(weights, dtype)
    if joined:
        x = te.reduce_axis((0, keys), "x")
        sums = te.compute(
            (heads, queries, size),
            lambda b, i, c: te.sum(weights[b, i, x].astype("float32") * v[x, b * size + c].astype("float32"), x),
            name="sums",
        )
        out = te.compute((queries, heads * size), lambda i, e: sums[e // size, i, e % size].astype(dtype), name="out")
        return [*inputs, out]
    return [*inputs, topi.cast(topi.nn.batch_matmul(weights, v, out_dtype="float32"), dtype)]


def _rounded(scores: te.Tensor, dtype: str) -> te.Tensor:
    """Softmax in single precision, its quotients rounded once."""
    heads, queries, keys = scores.shape
    k = te.reduce_axis((0, keys), "k")
    largest = te.compute((heads, queries), lambda b, i: te.max(scores[b, i, k], axis=k), name="largest")
    powers = te.compute(scores.shape, lambda b, i, j: te.exp(scores[b, i, j] - largest[b, i]), name="powers")
    n = te.reduce_axis((0, keys), "n")
    total = te.compute((heads, queries), lambda b, i: te.sum(powers[b, i, n], axis=n), name="total")
    return te.compute(scores.shape, lambda b, i, j: (powers[b, i, j] / total[b, i]).astype(dtype), name="weights")


def expected(kind: str, sizes: Sizes, inputs: list[np.ndarray]) -> np.ndarray:
    """The same in NumPy, in double precision."""
    heads, queries, keys, size = sizes
    q, k, v = (a.astype(np.float64) for a in inputs[:3])
    if kind == "joined":
        q, k, v = (a.reshape(len(a), heads, size).transpose(1, 0, 2) for a in (q, k, v))
    scores = np.einsum("bid,bjd->bij", q, k) * (1.0 if kind in ("plain", "cast", "joined") else 0.25)
    if kind == "causal":
        scores[:, ~np.tri(queries, keys, keys - queries, dtype=bool)] = -np.inf
    elif kind == "masked":
        scores = np.where(inputs[3], scores, -30000.0)
    with np.errstate(invalid="ignore"):  # queries before all keys
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    out: np.ndarray = np.einsum("bij,bjc->bic", weights / weights.sum(-1, keepdims=True), v)
    return out.transpose(1, 0, 2).reshape(queries, heads * size) if kind == "joined" else out


def drawn(tensors: list[te.Tensor], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for tensor in tensors[:-1]:
        values: np.ndarray = rng.standard_normal(tensor.shape)
        found.append(values < 0.5 if tensor.dtype == "bool" else values.astype(TYPES[tensor.dtype]))
    return found


def sketches(tensors: list[te.Tensor], target: lw.Target = TARGET) -> list[Sketch]:
    return generate_sketches(te.create_module(tensors, target), target)


def by_warps(tensors: list[te.Tensor]) -> Sketch:
    (found,) = [s for s in sketches(tensors) if s.name.startswith("attention_mma") and "split" not in s.name]
    return found


def in_parts(tensors: list[te.Tensor]) -> Sketch:
    (found,) = [s for s in sketches(tensors) if s.name.startswith("attention_mma") and s.name.endswith("split")]
    return found


def by_groups(tensors: list[te.Tensor]) -> Sketch:
    (found,) = [s for s in sketches(tensors) if s.name.startswith("attention_wgmma")]
    return found


def chosen(sketch: Sketch, **choice: int) -> np.ndarray:
    return np.array([h.choices.index(choice[h.name.rpartition("_")[2]]) for h in sketch.holes])


KINDS = ("plain", "rounded", "cast", "causal", "masked", "joined")
SIZES: tuple[Sizes, ...] = ((2, 32, 64, 32), (3, 16, 48, 16), (2, 48, 96, 48), (2, 32, 32, 64))
RAGGED: tuple[Sizes, ...] = ((2, 40, 56, 32), (3, 17, 80, 16), (2, 32, 41, 32))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", (*SIZES, *RAGGED), ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(2)
def test_candidates_are_right(kind: str, sizes: Sizes, dtype: str) -> None:
    """Interpreted, with the threads of a block side by side: no races, and all in one launch."""
    sketch = by_warps(attention(kind, sizes, dtype))
    check(kind, sizes, dtype, sketch, [sketch.default, *anywhere(sketch, np.random.default_rng(len(kind)), 2)])


GROUP_SIZES: tuple[Sizes, ...] = ((2, 128, 128, 64), (2, 64, 192, 128), (2, 64, 128, 128), (3, 192, 128, 64))


RAGGED_QUERIES: tuple[Sizes, ...] = ((2, 100, 128, 64), (2, 197, 192, 128))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", (*GROUP_SIZES, *RAGGED_QUERIES), ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.few(1)
def test_candidates_by_warp_groups_are_right(kind: str, sizes: Sizes, dtype: str) -> None:
    """The same, and no product reads what is not there yet, nor anyone a sum before its products were waited for."""
    sketch = by_groups(attention(kind, sizes, dtype))
    check(kind, sizes, dtype, sketch, anywhere(sketch, np.random.default_rng(len(kind)), 1))


CAUSAL_GROUPS: tuple[tuple[Sizes, tuple[int, int, int]], ...] = (
    ((2, 192, 192, 64), (4, 64, 2)),
    ((2, 192, 192, 64), (4, 64, 3)),
    ((2, 192, 192, 64), (12, 64, 2)),
    ((2, 128, 256, 128), (4, 128, 2)),
    ((2, 128, 256, 128), (8, 64, 3)),
    ((2, 256, 128, 64), (8, 64, 2)),
    ((2, 150, 256, 64), (4, 64, 3)),
)


@pytest.mark.parametrize(("sizes", "choice"), CAUSAL_GROUPS, ids=str)
@pytest.mark.few(1)
def test_products_of_warp_groups_go_on_where_blocks_of_keys_are_skipped(
    sizes: Sizes, choice: tuple[int, int, int]
) -> None:
    """With fewer, as many and more queries than keys: of some tiles all blocks are skipped, and they have no result."""
    sketch = by_groups(attention("causal", sizes))
    warps, terms, stages = choice
    row = chosen(sketch, warps=warps, tiles=1, terms=terms, stages=stages, resident=1)
    assert sketch.legal(row[None]).all()
    check("causal", sizes, "float16", sketch, [row])


@pytest.mark.parametrize("sizes", [(2, 128, 197, 64), (2, 100, 96, 64), (2, 64, 72, 64)], ids=str)
@pytest.mark.few(1)
def test_keys_that_blocks_of_warp_groups_do_not_divide_are_left_to_warps(sizes: Sizes) -> None:
    tensors = attention("causal", sizes)
    (sketch,) = sketches(tensors)
    assert sketch.name.startswith("attention_mma")
    check("causal", sizes, "float16", sketch, [sketch.default])


FEW: tuple[Sizes, ...] = ((2, 4, 256, 32), (3, 1, 128, 16), (2, 1, 96, 48), (2, 3, 205, 32), (2, 16, 128, 48))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", FEW, ids=str)
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "causal"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_few_queries_are_a_matrix_and_keys_are_divided(kind: str, sizes: Sizes, dtype: str) -> None:
    """In one kernel, or in two: parts of the keys, and what joins them; or by blocks of a cluster, in one again."""
    tensors = attention(kind, sizes, dtype)
    drawing = np.random.default_rng(sizes[1])
    for sketch, launches in ((by_warps(tensors), 1), (in_parts(tensors), 2), *((x, 1) for x in in_clusters(tensors))):
        check(kind, sizes, dtype, sketch, [sketch.default, *anywhere(sketch, drawing, 1)], launches)


def in_clusters(tensors: list[te.Tensor]) -> list[Sketch]:
    """The sketch whose parts blocks of a cluster join; none where no number of parts divides the results of a head."""
    return [s for s in sketches(tensors) if s.name.endswith("split_clustered")]


@pytest.mark.slow(1.2)
def test_parts_carry_sums_in_registers() -> None:
    """Each adds to its running sums, which are scaled as those of all keys are; a second kernel joins them."""
    tensors = attention("rounded", (2, 4, 256, 64))
    row = chosen(sketch := in_parts(tensors), warps=1, tiles=1, terms=32, stages=2, resident=1, parts=4)
    kernel = scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(row))
    kept = {op.label.data: op.buffer.type.get_shape() for op in kernel.walk() if isinstance(op, AllocOp)}
    assert "T_softmax_maxelem_factor" in kept and "T_batch_matmul1_part" not in kept
    assert kept["T_batch_matmul1_sum_rf_out"] == kept["T_batch_matmul1_max_rf_out"] == (2,)


@pytest.mark.slow(1.2)
def test_parts_are_for_one_matrix_of_queries_that_see_all_keys() -> None:
    def names(kind: str, sizes: Sizes) -> list[str]:
        return [s.name.rpartition("_")[2] for s in sketches(attention(kind, sizes))]

    assert names("plain", (2, 16, 128, 64)) == ["f16", "clustered", "split"]
    assert names("plain", (8, 4, 4096, 128)) == ["split", "clustered", "f16"], (
        "one block of threads for each head is slower"
    )
    assert names("plain", (2, 17, 128, 64)) == names("causal", (2, 4, 128, 64)) == ["f16"]


def check(kind: str, sizes: Sizes, dtype: str, sketch: Sketch, rows: Iterable[np.ndarray], launches: int = 1) -> None:
    """Interpret candidates beside NumPy."""
    tensors = attention(kind, sizes, dtype)
    inputs = drawn(tensors, len(kind))
    wanted = expected(kind, sizes, inputs)
    text = str(te.create_module(tensors, TARGET))
    digits = 2**-11 if dtype == "float16" else 2**-8
    for row in rows:
        kernel = scheduled_kernel(text, sketch.schedule(row))
        assert sum(isinstance(op, LaunchOp) for op in kernel.walk()) == launches
        (got,) = run_kernel(kernel, inputs)
        np.testing.assert_allclose(got.astype(np.float64), wanted, atol=8 * digits * np.nanmax(np.abs(wanted)))


def test_a_thread_keeps_one_maximum_of_a_row_and_its_own_weights() -> None:
    """16 queries of a warp and 64 keys: 32 weights, which are factors of the second product where they are."""
    tensors = attention("plain", (2, 64, 128, 64))
    sketch = by_warps(tensors)
    row = chosen(sketch, warps=4, tiles=1, terms=64, stages=2, resident=1)
    kernel = scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(row))
    kept = {op.label.data: op.buffer.type.get_shape() for op in kernel.walk() if isinstance(op, AllocOp)}
    assert kept["weights"] == (32,) and kept["T_batch_matmul1_max"] == kept["T_batch_matmul1_sum"] == (2,)
    assert kept["largest"] == (2,) and kept["T_batch_matmul1_run"] == (32,)
    assert sum(isinstance(op, FragmentPackOp) for op in kernel.walk()) == 4
    source = print_cuda(kernel).source
    assert not re.search(r"\bexp2?f\(", source)
    assert re.findall(r"\w+_near\(", source.partition("__global__")[2]) == ["exp_near(", "exp2_near("]
    assert source.count("fmaf(") == 1, "a power of 2 of a multiply-add for each weight"


def test_warp_groups_hold_weights_and_copy_boxes() -> None:
    """Two groups, 64 keys: both products read shared memory, the second one has its first factor in registers."""
    tensors = attention("causal", (2, 256, 128, 128))
    sketch = by_groups(tensors)
    row = chosen(sketch, warps=8, tiles=1, terms=64, stages=2, resident=1)
    kernel = scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(row))
    ops = list(kernel.walk())
    products = [op for op in ops if isinstance(op, WarpGroupProductOp)]
    assert [(op.meaning().n, op.held is not None) for op in products] == [(64, False)] * 8 + [(128, True)] * 4
    assert all(matrix.turned == (op.held is not None) for op in products for *_, matrix in op.factors()[-1:])
    assert {op.box_extents for op in ops if isinstance(op, BulkCopyOp)} == {(1, 64, 64)}
    assert sum(isinstance(op, ProxyFenceOp) for op in ops) == 2, "of barriers, and of queries before the loop"
    source = print_cuda(kernel).source
    assert source.rindex("commit_group") < source.index("total[1] = v") < source.rindex("wait_group"), "beside products"
    kept = {op.label.data: op.buffer.type.get_shape() for op in ops if isinstance(op, AllocOp)}
    assert kept["weights"] == kept["causal"] == (32,) and kept["T_batch_matmul1_run"] == (64,)


FEATURED = [(k, sizes) for sizes in ((2, 64, 96, 32), (2, 40, 56, 32)) for k in KINDS] + [("causal", (2, 128, 128, 64))]


@pytest.mark.parametrize(("kind", "sizes"), FEATURED)
@pytest.mark.few(2)
def test_features_of_candidates_are_those_of_their_schedules(kind: str, sizes: Sizes) -> None:
    """But for registers, whose digits of other threads sizes that are open leave in."""
    module = te.create_module(attention(kind, sizes), TARGET)
    sketch = (by_groups if sizes[1] == 128 else by_warps)(attention(kind, sizes))
    rows = anywhere(sketch, np.random.default_rng(1), 3)
    check_features(module, sketch, rows)


@pytest.mark.parametrize("sizes", [(2, 4, 256, 32), (2, 1, 205, 32)], ids=str)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_features_of_parts_are_those_of_their_schedules(sizes: Sizes) -> None:
    tensors = attention("rounded", sizes)
    sketch = in_parts(tensors)
    check_features(te.create_module(tensors, TARGET), sketch, anywhere(sketch, np.random.default_rng(1), 3))


def check_features(module: ModuleOp, sketch: Sketch, rows: np.ndarray) -> None:
    compared = [n for n, name in enumerate(names()) if name not in ("main.registers", "main.spilled")]
    for row, have in zip(rows, sketch.features(rows), strict=True):
        want = features_of_schedule(module, TARGET, sketch.schedule(row))
        np.testing.assert_allclose(have[compared], want[compared], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.few(2)
def test_blocks_of_keys_behind_all_queries_of_a_tile_are_not_read(stages: int) -> None:
    """They are no numbers here, which a weight of 0 would not hide; nor are they copied ahead."""
    tensors = attention("causal", (2, 64, 64, 32))
    sketch = by_warps(tensors)
    row = chosen(sketch, warps=2, tiles=1, terms=16, stages=stages, resident=1)
    check_that_keys_behind_are_not_read((2, 64, 64, 32), sketch, row, 32)


def test_nor_are_they_by_warp_groups_and_the_copy_engine() -> None:
    sketch = by_groups(attention("causal", (2, 128, 192, 64)))
    row = chosen(sketch, warps=4, tiles=1, terms=64, stages=2, resident=1)
    check_that_keys_behind_are_not_read((2, 128, 192, 64), sketch, row, 64)


def check_that_keys_behind_are_not_read(sizes: Sizes, sketch: Sketch, row: np.ndarray, first: int) -> None:
    """Nor keys and values that the `first` queries, which are a tile, do not see."""
    tensors = attention("causal", sizes)
    kernel = scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(row))
    inputs = drawn(tensors, first)
    wanted = expected("causal", sizes, inputs)
    inputs[2][:, first + sizes[2] - sizes[1] :] = np.nan
    (got,) = run_kernel(kernel, inputs)
    np.testing.assert_allclose(got[:, :first], wanted[:, :first], atol=8 * 2**-11 * np.abs(wanted).max())
    assert np.isnan(got[:, first:]).all()


@pytest.mark.parametrize("find", [by_warps, by_groups])
@pytest.mark.few(1)
def test_estimates_count_the_blocks_that_are_computed(find: Callable[[list[te.Tensor]], Sketch]) -> None:
    """Half of them, and half a tile and a block more; all where one round of blocks is as long as its longest."""
    for sizes, low, high in (((32, 4096, 4096, 64), 0.5, 0.6), ((2, 1024, 1024, 64), 0.99, 1.01)):
        seconds = []
        for kind in ("causal", "plain"):
            sketch = find(attention(kind, sizes))
            row = chosen(sketch, warps=4, tiles=1, terms=64, stages=2, resident=1)
            assert sketch.prior is not None
            seconds.append(float(sketch.prior(sketch.columns(row[None]))[0]))
        assert low < seconds[0] / seconds[1] < high


SEEN_ONCE: tuple[tuple[str, Sizes], ...] = (
    ("rounded", (8, 4, 512, 128)),
    ("rounded", (128, 4, 8192, 64)),
    ("masked", (32, 1, 1025, 128)),
)


@pytest.mark.parametrize(("kind", "sizes"), SEEN_ONCE, ids=str)
@pytest.mark.few(1)
def test_untuned_choices_of_few_queries_fit_the_device(kind: str, sizes: Sizes) -> None:
    tensors = attention(kind, sizes)
    sketch = in_parts(tensors)
    compile_cuda(scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(sketch.default)), (80, 90))


LARGE: tuple[tuple[str, Sizes], ...] = (
    ("masked", (12, 128, 128, 64)),
    ("rounded", (12, 512, 512, 64)),
    ("causal", (192, 1024, 1024, 128)),
    ("rounded", (32, 4096, 4096, 64)),
    ("rounded", (32, 4096, 4096, 128)),
    ("joined", (12, 197, 192, 64)),
)


@pytest.mark.parametrize(("kind", "sizes"), [*LARGE, ("joined", (12, 197, 197, 64))], ids=str)
@pytest.mark.few(1)
def test_untuned_choices_fit_the_device(kind: str, sizes: Sizes) -> None:
    """Within the registers of a thread and the shared memory of a block, without a spill."""
    tensors = attention(kind, sizes)
    sketch = by_warps(tensors)
    compile_cuda(scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(sketch.default)), (80, 90))


@pytest.mark.parametrize(("kind", "sizes"), LARGE, ids=str)
@pytest.mark.few(1)
def test_untuned_choices_of_warp_groups_fit_the_device(kind: str, sizes: Sizes) -> None:
    """The same, and ptxas need not wait between products (it says so as C7510 and others)."""
    tensors = attention(kind, sizes)
    sketch = by_groups(tensors)
    kernel = scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(sketch.default))
    compile_cuda(kernel, (90,))
    assert "C75" not in compile_cubin(print_cuda(kernel).source, 90, exact=True).log


def test_large_ones_are_by_warp_groups() -> None:
    """Where there are queries enough; other generations have none."""
    large = attention("rounded", (32, 4096, 4096, 128))
    assert [s.name[:15] for s in sketches(large)] == ["attention_wgmma", "attention_mma_m"]
    assert [s.name[:13] for s in sketches(large, lw.resolve_target("cuda model=a100"))] == ["attention_mma"]
    assert [s.name[:13] for s in sketches(attention("plain", (2, 32, 128, 64)))] == ["attention_mma"]
    assert sketches(attention("plain", (12, 128, 128, 64)))[0].name.startswith("attention_mma"), "too few"


def test_an_untuned_choice_that_no_model_knows_has_the_least_estimate() -> None:
    """Of a token: by what a model is told, relative to a candidate's own arithmetic, it would be 32 parts, not 16."""
    task = lw.SearchTask(lambda: attention("plain", (8, 4, 1024, 128)), target=TARGET)
    model = shipped_model("cuda")
    assert model is not None and not model.knows(task.sketches[0].features(task.sketches[0].default[None]))
    best = max(compared(task.sketches, model), key=lambda each: float(each.scores.max()))
    (row,) = best.rows[[int(np.argmax(best.scores))]]
    assert best.sketch.schedule(row) == task.default_schedule
    found = np.concatenate(
        [e for s in task.sketches if (e := s.estimate(s.sample(np.random.default_rng(1), 512))) is not None]
    )
    assert best.sketch.columns(row[None])["T_batch_matmul1_parts"][0] == 16
    estimate = best.sketch.estimate(row[None])
    assert estimate is not None and estimate[0] <= found.min() * 1.001


def left_alone(tensors: list[te.Tensor], target: lw.Target = TARGET) -> bool:
    draft = Draft.of(te.create_module(tensors, target))
    blocks = [block.block_name for block in blocks_in(draft.module)]
    return not any(plan_attention(draft, draft.block(name), target) for name in blocks)


def test_others_are_left_to_the_rules_of_their_parts() -> None:
    assert not left_alone(attention("plain", (2, 32, 64, 32)))
    assert left_alone(attention("plain", (2, 32, 64, 40))), "steps of k do not divide it"
    assert left_alone(attention("plain", (2, 32, 64, 32)), lw.resolve_target("cuda model=v100"))
    assert [s.name for s in sketches(attention("plain", (2, 197, 197, 64)))]
