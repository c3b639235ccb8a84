"""Traces: what one call of a template tells of a population is what calls with single configs give."""

import importlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import template_workloads  # noqa: F401 (registers its template)
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.population import Rows
from loopwright.search.template.config import Config
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.search.template.limits import excess, usage
from loopwright.search.template.symbolic import KnobExpr, Number, Tracer, expr_of

CONV = ("conv2d_no_batching", (1, 7, 7, 32, 16, 3, 3, (1, 1), (1, 1)), "cuda model=h200")
GPU_TASKS = [
    CONV,
    ("conv2d_nchw", (2, 8, 8, 16, 8, 3, 3, (2, 2), (1, 1)), "opencl model=pocl"),
    ("depthwise_conv2d_nhwc", (1, 8, 10, 10, 3, 3, (1, 1), (1, 1)), "cuda model=h200"),
    ("dense", (16, 32, 24), "opencl model=mali-t860"),
    ("batch_matmul", (3, 16, 8, 12), "cuda model=h200 max_shared_bytes=1024 max_threads_per_block=32"),
]
CPU_TASKS = [
    ("conv2d_nchw", (1, 28, 28, 128, 96, 3, 3, (1, 1), (1, 1)), "llvm vector_bytes=64"),
    ("depthwise_conv2d_nhwc", (1, 24, 10, 10, 3, 3, (2, 2), (1, 1)), "llvm cores=2 vector_bytes=32"),
    ("dense", (8, 100, 512), "llvm cores=1 vector_bytes=16"),
    ("tests_matmul", (64, 48, 64), "llvm vector_bytes=64"),
]


def sampled(task: lw.TemplateTask, count: int, seed: int = 0) -> Rows:
    return task.config_space.sample(np.random.default_rng(seed), count)


@pytest.mark.parametrize(("name", "args", "target"), GPU_TASKS, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.few(1)
def test_limits_texts_and_usage_are_those_of_single_configs(name: str, args: tuple[Any, ...], target: str) -> None:
    task = lw.TemplateTask(name, args, target)
    rows = sampled(task, 8)
    legal = task.legal(rows)
    assert legal.tolist() == [task.why_not(row) is None for row in rows]
    assert legal.any()
    assert all(case is None or case.trusted for case, _ in task.cases.groups(rows))
    for text, row in zip(task.schedules([task.config(r) for r in rows[legal]]), rows[legal], strict=True):
        assert text == task.schedule(row)
    for case, at in task.cases.groups(rows[legal]):
        assert case is not None
        taken = task.cases.usage(case, rows[legal][at])
        for i, row in enumerate(rows[legal][at]):
            exact = usage(task.search_task.schedule_module(task.schedule(row)))
            assert {key: int(column[i]) for key, column in taken.items()} == asdict(exact)


@pytest.mark.parametrize(("name", "args", "target"), CPU_TASKS, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.few(1)
def test_vectors_on_a_cpu_are_those_of_single_configs(name: str, args: tuple[Any, ...], target: str) -> None:
    task = lw.TemplateTask(name, args, target)
    rows = sampled(task, 24)
    assert task.legal(rows).tolist() == [task.why_not(row) is None for row in rows]
    for case, at in task.cases.groups(rows):
        assert case is not None and case.trusted
        steps = task.cases.usage(case, rows[at])["steps"]
        single = [usage(task.search_task.schedule_module(task.schedule(row))).steps for row in rows[at]]
        assert steps.tolist() == single


@pytest.mark.parametrize(
    ("args", "target", "values", "vectors"),
    [
        ((28, 128, 96), "llvm vector_bytes=64", {"tile_row": 14, "tile_column": 64, "tile_reduce": 48}, 14 * 48 * 4),
        ((28, 128, 96), "llvm vector_bytes=64", {"tile_row": 7, "tile_column": 32, "tile_reduce": 96}, 7 * 96 * 2),
        ((28, 128, 96), "llvm vector_bytes=16", {"tile_row": 7, "tile_column": 32, "tile_reduce": 12}, 7 * 12 * 8),
        ((28, 128, 96), "llvm vector_bytes=64", {"tile_row": 14, "tile_column": 32, "tile_reduce": 16}, None),
        ((28, 128, 96), "llvm vector_bytes=64", {"tile_row": 1, "tile_column": 1, "tile_reduce": 96}, None),
    ],
)
def test_bodies_that_take_long_to_build_are_not_legal_on_a_cpu(
    args: tuple[int, ...], target: str, values: Mapping[str, int], vectors: int | None
) -> None:
    pixels, filters, channels = args
    task = lw.TemplateTask("conv2d_nchw", (1, pixels, pixels, filters, channels, 3, 3, (1, 1), (1, 1)), target)
    extents = {"tile_row": pixels, "tile_column": filters, "tile_reduce": channels}
    tiles = {name: [extents[name] // n, n] for name, n in values.items()}
    config = task.config({**tiles, "unroll": ["unroll", "unroll"], "rows_first": 0})
    reason = task.why_not(config)
    assert task.legal(np.array([config.row])).tolist() == [vectors is None] == [reason is None]
    if vectors is not None:
        said = (
            r"by estimate, no more than \d+ vectors of statements after unrolling are worth a build, got (\d+) \(.*\)"
        )
        found = re.fullmatch(said, str(reason))
        assert found is not None and vectors <= int(found[1]) <= vectors + 16
        assert task.why_not({**config.values, "unroll": ["none", "unroll"]}) is None


@pytest.mark.slow(1.2)
def test_legal_configs_keep_every_limit_and_others_say_which() -> None:
    task = lw.TemplateTask(*GPU_TASKS[-1])
    rows = sampled(task, examples(480))
    legal = task.legal(rows)
    reasons = [task.why_not(row) for row in rows[~legal]]
    assert any("bytes of shared memory in a block on this target, got" in str(r) for r in reasons)
    assert any("a block has at most 32 threads" in str(r) for r in reasons)
    for row in rows[legal]:
        assert excess(usage(task.search_task.schedule_module(task.schedule(row))), task.target) is None


PUBLISHED_RUNS = [430132, 7171430, 1984850, 5892581, 2135585, 1293822, 4766314]
"""The configs that ran in the classic tutorial's log, on a device of compute capability 6.1."""


@pytest.mark.slow(1.2)
def test_configs_that_ran_in_the_published_log_are_refused_by_estimates_alone() -> None:
    args = (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1))
    strict = lw.TemplateTask("conv2d_no_batching", args, "cuda model=gtx1080ti")
    free = lw.TemplateTask("conv2d_no_batching", args, "cuda model=gtx1080ti", estimates=False)
    rows = strict.config_space.rows(PUBLISHED_RUNS)
    reasons = [reason for row in rows if (reason := strict.why_not(row)) is not None]
    assert len(reasons) == 4
    for reason in reasons:
        assert re.fullmatch(r"by estimate, no more than .* \(no limit of the device: .* estimates=False .*\)", reason)
    assert strict.legal(rows).tolist() == [strict.why_not(row) is None for row in rows]
    assert strict.possible(rows).all() and free.legal(rows).all()
    assert all(free.why_not(row) is None for row in rows)


@pytest.mark.slow(1.2)
def test_limits_of_the_device_hold_without_estimates() -> None:
    task = lw.TemplateTask(*GPU_TASKS[-1], estimates=False)
    rows = sampled(task, 60)
    legal = task.legal(rows)
    assert legal.tolist() == [task.why_not(row) is None for row in rows] and not legal.all()
    assert all("estimate" not in str(task.why_not(row)) for row in rows)


@pytest.mark.parametrize(
    ("name", "args", "target", "said"),
    [
        (
            "dense_gpu",
            (8, 8, 8),
            "llvm",
            "'dense_gpu' is for a GPU, as it has loops of kind blockIdx.x, .* 'llvm' is a CPU",
        ),
        ("dense_mali", (8, 8, 8), "llvm", "'dense_mali' is for a GPU"),
        ("dense_cpu", (8, 8, 8), "cuda model=h200", "'dense_cpu' is for a CPU, as it has loops of kind parallel"),
        ("dense_cpu", (8, 8, 8), "opencl model=mali-t860", "and target 'opencl' is a GPU"),
    ],
)
def test_templates_for_another_kind_of_target_are_refused(
    name: str, args: tuple[int, ...], target: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        lw.TemplateTask(name, args, target)


@pytest.mark.parametrize("name", ["conv2d_nchw", "dense", "batch_matmul"])
@pytest.mark.few(2)
def test_widths_of_packed_tiles_are_one_case(name: str) -> None:
    """Four ways to unroll and two orders; the layout of a packed operand follows from a number."""
    args = {"conv2d_nchw": (1, 14, 14, 64, 32, 3, 3), "dense": (32, 64, 48), "batch_matmul": (2, 32, 64, 48)}[name]
    task = lw.TemplateTask(name, args, "llvm vector_bytes=64")
    cases = [case for case, _ in task.cases.groups(sampled(task, 320))]
    assert len(cases) == 8 and all(case is not None and case.trusted for case in cases)


def test_a_refused_kernel_makes_its_case_doubtful_only_where_single_configs_disagree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = lw.TemplateTask("tests_matmul", (16, 24, 8), "llvm cores=2")
    rows = sampled(task, 40)
    assert all(case is not None and case.trusted for case, _ in task.cases.groups(rows))
    task.cases.doubt(rows[0])
    assert all(case is not None and case.trusted for case, _ in task.cases.groups(rows))
    real = task.instantiate
    monkeypatch.setattr(task, "instantiate", lambda config: real(rows[1]))
    task.cases.doubt(rows[0])
    assert not any(case is None or case.trusted for case, _ in task.cases.groups(rows))


def test_cases_of_a_template_that_decides() -> None:
    task = lw.TemplateTask("tests_matmul", (16, 24, 8), "llvm cores=2")
    rows = sampled(task, 120)
    groups = list(task.cases.groups(rows))
    assert sorted(int(i) for _, at in groups for i in at) == list(range(120))
    assert len(groups) == 2 * 4 * 2  # orders, what is unrolled, parallel or not
    for text, row in zip(task.schedules([task.config(r) for r in rows[:20]]), rows, strict=False):
        assert text == task.schedule(row)


def test_a_template_that_hides_what_it_asks_is_examined_config_by_config() -> None:
    task = lw.TemplateTask("tests_depths", (64,), "llvm cores=1")
    rows = task.config_space.rows(range(4))
    texts = task.schedules([task.config(r) for r in rows])
    assert [t.count("lw-split") for t in texts] == [1, 2, 3, 4]
    assert not any(case is None or case.trusted for case, _ in task.cases.groups(rows))


def test_refused_configs_do_not_become_cases() -> None:
    @lw.template("tests_refusing")
    def refusing(cfg: Config, n: int) -> lw.Schedule:
        x = te.placeholder((n,), name="x")
        y = topi.nn.relu(x)
        sch = lw.Schedule([x, y], target=cfg.target)
        loop = sch.get_loops(y)[0]
        cfg.define_split("tile", loop)
        cfg.define_annotate("mark", ["inner"], "try_vec")
        _, inner = cfg["tile"].apply(sch, y, loop)
        cfg["mark"].apply(sch, y, [inner], vec_size=[4, 8])
        return sch

    task = lw.TemplateTask(refusing, (16,), "llvm cores=1")
    rows = task.config_space.rows(range(len(task.config_space)))
    legal = task.legal(rows)
    values = [task.config_space.values(row) for row in rows]
    assert legal.tolist() == [v["mark"] == ["none"] or v["tile"][1] in (4, 8) for v in values]
    assert "none of the lengths in vec_size=[4, 8]" in str(task.why_not(rows[~legal][0]))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9))
def test_numbers_compute_as_integers_do_and_remember_how(a: int, b: int, c: int) -> None:
    tracer = Tracer()
    x = tracer.number(a, KnobExpr("knob", ("k", 0), a))
    total = (x * c + 7) // 2 - c % (1 + x)
    assert total == (a * c + 7) // 2 - c % (1 + a) and isinstance(total, Number)
    columns = {("k", 0): np.array([a, b])}
    assert expr_of(total).evaluate(columns, {}).tolist() == [(v * c + 7) // 2 - c % (1 + v) for v in (a, b)]
    tracer.conditions.clear()
    assert (x > c) == (a > c)
    (condition, outcome), *rest = tracer.conditions
    assert not rest and (condition.evaluate(columns, {}) == outcome).tolist() == [True, (b > c) == (a > c)]


@pytest.mark.parametrize("use", [str, repr, hash, int, float, lambda v: f"{v}", lambda v: [0] * v, lambda v: v / 2])
def test_uses_that_arithmetic_does_not_cover_fix_the_number(use: Callable[[Number], object]) -> None:
    tracer = Tracer()
    use(tracer.number(3, KnobExpr("knob", ("k", 0), 3)))
    assert tracer.conditions
    condition, outcome = tracer.conditions[0]
    assert (condition.evaluate({("k", 0): np.array([3, 4])}, {}) == outcome).tolist() == [True, False]


@pytest.mark.parametrize("kind", ["knob", "itervar", "curve"])
@pytest.mark.few(1)
def test_features_are_finite_tell_configs_apart_and_need_no_population(kind: str) -> None:
    task = lw.TemplateTask(*CONV)
    rows = sampled(task, 60)
    rows = rows[task.legal(rows)]
    features = task.features(rows, kind)
    assert features.shape[0] == len(rows) and np.isfinite(features).all()
    assert len(np.unique(features, axis=0)) == len(np.unique(rows, axis=0))
    for i in (0, len(rows) - 1):
        assert np.array_equal(task.features(rows[i : i + 1], kind)[0], features[i])


def test_itervar_features_of_a_known_config() -> None:
    task = lw.TemplateTask("dense", (16, 32, 24), "cuda model=h200")
    values = {"tile_i": [2, 1, 4, 2], "tile_j": [1, 1, 8, 4], "tile_k": [6, 4], "auto_unroll_max_step": 0}
    config = task.config({**values, "unroll_explicit": 0, "parts": 1})
    features = task.features(np.array([config.row]), "itervar")[0]
    lengths = 2.0 ** features[:10]  # of the innermost ten loops, from the inside
    assert lengths.round().tolist() == [4, 2, 4, 6, 8, 4, 1, 1, 1, 2]


def test_unknown_feature_type() -> None:
    task = lw.TemplateTask("tests_matmul", (8, 8, 8), "llvm cores=1")
    with pytest.raises(ValueError, match="feature type must be one of knob, itervar, curve, got 'color'"):
        task.features(sampled(task, 2), "color")


def test_a_population_is_checked_with_one_lowering_of_the_workload_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    task = lw.TemplateTask("conv2d_nchw", (1, 64, 56, 56, 64, 3, 3, (1, 1), (1, 1)), "opencl model=mali-t860")
    called: Counter[str] = Counter()

    def counted(module: str, name: str) -> None:
        function = getattr(importlib.import_module(module), name)

        def counting(*args: Any) -> Any:
            called[name] += 1
            return function(*args)

        monkeypatch.setattr(f"{module}.{name}", counting)

    counted("loopwright.passes.pipeline_text", "lower_te_to_loop")
    counted("loopwright.passes.primitive", "render_around")
    counted("loopwright.search.workload", "verify_workload")
    legal = task.legal(sampled(task, 160))
    assert len({id(case) for case, _ in task.cases.groups(sampled(task, 160))}) > 20
    assert called["lower_te_to_loop"] == 1
    assert called["verify_workload"] == 1  # of the task, not of configs
    assert called["render_around"] == 0
    refused = [at[0] for case, at in task.cases.groups(sampled(task, 160)) if case is None]
    assert refused and not legal[refused].any()
    assert "at:" in str(task.why_not(sampled(task, 160)[refused[0]]))
