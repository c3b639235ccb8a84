"""Scheduling by hand through `loopwright.Schedule`, and schedules as text."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.target import target_of
from loopwright.passes.discovery import primitive_stems
from loopwright.passes.pipeline_text import apply_schedule, parse_schedule, schedule_text
from loopwright.passes.schedule.bind import Bind
from loopwright.passes.schedule.cache_read import CacheRead
from loopwright.passes.schedule.fuse import Fuse
from loopwright.passes.schedule.pragma import Pragma
from loopwright.passes.schedule.rfactor import Rfactor
from loopwright.passes.schedule.split import Split
from loopwright.passes.schedule.transform_layout import TransformLayout


def matmul(m: int = 13, n: int = 7, k: int = 17) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return a, b, c, te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0), name="D")


def assert_computes_matmul(sch: lw.Schedule) -> None:
    sch.module.verify()
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((13, 17), dtype=np.float32), rng.standard_normal((17, 7), dtype=np.float32)
    np.testing.assert_allclose(run_loops(sch.module, [a, b])[0], np.maximum(a @ b, 0), rtol=1e-5, atol=1e-5)


def test_every_primitive_is_a_method() -> None:
    sch = lw.Schedule(matmul()[:3])
    for stem in primitive_stems():
        method = "software_pipeline" if stem == "pipeline" else stem
        assert callable(getattr(sch, method)), stem
        assert method in dir(sch)
    assert "Requires:" in str(sch.bind.__doc__)
    with pytest.raises(AttributeError, match="a Schedule has no 'tile'; primitives: bind, "):
        sch.tile  # type: ignore[attr-defined]  # noqa: B018


def test_schedule_a_matmul_by_hand() -> None:
    a, b, c, d = matmul()
    sch = lw.Schedule([a, b, d], "llvm cores=2")
    i, j, k = sch.get_loops(c)
    i0, i1 = sch.split(c, i, [None, 4])
    j0, j1 = sch.split(c, j, factors=[2, 4])
    k0, k1 = sch.split(k, [None, 8])
    assert [i0, i1, j0, j1, k0, k1] == ["i0", "i1", "j0", "j1", "k0", "k1"]
    sch.reorder(c, i0, j0, k0, k1, i1, j1)
    assert sch.get_loops("C") == ["i0", "j0", "k0", "k1", "i1", "j1"]
    packed = sch.cache_read(c, b, "local")
    assert packed == "B_local"
    sch.compute_at(packed, j0, consumer=c)
    init = sch.decompose_reduction(c, k0)
    assert init == "C_init"
    sch.vectorize(j1)
    sch.parallel(sch.fuse(i0, j0))
    assert [str(x) for x in sch.get_loops(c)] == ["i0_j0", "k0", "k1", "i1", "j1"]
    assert_computes_matmul(sch)


def test_loops_know_their_block() -> None:
    a, b, c, d = matmul()
    sch = lw.Schedule([a, b, d])
    fused = sch.fuse(*sch.get_loops(d))
    assert (fused, fused.block) == ("i_j", "D")
    outer, inner = sch.split(fused, [None, 8])
    sch.parallel(outer)
    sch.vectorize(loop=inner)
    sch.unroll(sch.get_loops(c)[2])
    assert sch.pipeline == (
        'lw-lower-te-to-loop,lw-fuse{block="D" loops="i","j"},lw-split{block="D" loop="i_j" factors=0,8},'
        'lw-parallel{block="D" loop="i_j0"},lw-vectorize{block="D" loop="i_j1"},lw-unroll{block="C" loop="k"}'
    )
    assert_computes_matmul(sch)


def test_tensors_of_one_name_are_told_apart() -> None:
    x = te.placeholder((4, 3), name="x")
    first = x + 1.0
    second = first * first + 2.0
    sch = lw.Schedule([x, second])
    assert [sch.get_loops(t)[0].block for t in (first, second)] == ["T_add", "T_add1"]
    sch.compute_inline(first)
    assert "T_add" not in sch.blocks


def test_an_illegal_step_changes_nothing() -> None:
    a, b, c, d = matmul()
    sch = lw.Schedule([a, b, d])
    before, text = str(sch), sch.pipeline
    with pytest.raises(lw.ScheduleError, match="block 'C' reduces over it") as caught:
        sch.parallel(c, "k")
    assert "try: lw-rfactor" in str(caught.value)
    with pytest.raises(lw.ScheduleError, match="no block is called 'E'"):
        sch.get_loops("E")
    with pytest.raises(lw.ScheduleError):
        sch.apply('lw-split{block="C" loop="i" factors=0,4},lw-vectorize{block="C" loop="i0"}')
    with pytest.raises(TypeError):
        sch.unroll(c)  # type: ignore[call-overload]
    assert (str(sch), sch.pipeline) == (before, text)


def test_copies_go_their_own_way() -> None:
    a, b, c, d = matmul()
    sch = lw.Schedule([a, b, d])
    sch.split(c, "k", [None, 4])
    other = sch.copy()
    other.rfactor(c, "k1")
    assert sch.get_loops(c) == ["i", "j", "k0", "k1"]
    assert other.blocks == ["C_rf", "C", "D"]
    assert len(other.steps) == len(sch.steps) + 1 == 3
    assert_computes_matmul(sch)
    assert_computes_matmul(other)


def test_explain_shows_the_program_after_each_step() -> None:
    a, b, c, d = matmul()
    sch = lw.Schedule([a, b, d])
    sch.split(c, "i", [None, 4])
    sch.unroll(c, "i1")
    parts = sch.ir_by_step().split("// ---- ")[1:]
    assert [part.split("\n")[0] for part in parts] == [
        "workload",
        "1: lw-lower-te-to-loop",
        '2: lw-split{block="C" loop="i" factors=0,4}',
        '3: lw-unroll{block="C" loop="i1"}',
    ]
    assert "lw_te.compute" in parts[0] and "for i1 in 4 {" in parts[2] and "for i1 in 4 unrolled {" in parts[3]
    assert parts[3].split("\n", 1)[1].strip() == str(sch).strip()


def test_text_replays_on_the_workload_in_xdsl() -> None:
    a, b, c, d = matmul()
    sch = lw.Schedule([a, b, d], target="cuda max_threads_per_block=256")
    i, j, _ = sch.get_loops(c)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.cache_write(c, layout=["j", "i"], scope="shared")
    passes = Universe.get_multiverse().all_passes
    module = sch.workload
    PassPipeline.parse_spec(passes, sch.pipeline).apply(Context(), module)
    assert str(module) == str(sch)
    again = lw.Schedule(sch.workload)
    again.apply(sch.pipeline)
    assert (str(again), again.pipeline) == (str(sch), sch.pipeline)
    assert lw.Schedule(sch.module).pipeline == ""


STEPS = (
    Split("C", "i", (0, 4, 1)),
    Fuse("C", ("i0", "i1")),
    Bind("C", "i0_i1", "blockIdx.x"),
    CacheRead("C", "B", "shared", ("j/64", "k*i", "j%64"), "panel"),
    TransformLayout("C", "C", ("j", "i/4", "i%4")),
    Pragma("C", "k", unroll_explicit=1),
    Rfactor("C", "k", -1),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_is_its_text(step: object) -> None:
    assert parse_schedule(str(step)) == (step,)
    assert PassPipeline.parse_spec(Universe.get_multiverse().all_passes, str(step)).passes == (step,)


def test_plain_and_unusual_spellings_parse() -> None:
    plain = parse_schedule("lw-split{block=C loop=i factors=0,4},lw-fuse{block=C loops=i0,i1}")
    assert plain == (Split("C", "i", (0, 4)), Fuse("C", ("i0", "i1")))
    unusual = parse_schedule('lw-split{factors=0,4  loop="i" block=C },lw-pragma{block=C loop=i unroll-explicit=1}')
    assert unusual == (Split("C", "i", (0, 4)), Pragma("C", "i", unroll_explicit=1))
    assert parse_schedule("") == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lw-splat{block=C}", "Unrecognized passes: \\['lw-splat'\\]"),
        ("lw-split{block=C}", 'lw-split requires argument "loop"'),
        ("lw-split{block=C loop=i factors=1.5,2}", "Incompatible types"),
        ("lw-unroll{block=C loop=i factor=2}", "not found in expected"),
        ("lw-unroll{block=C loop=i", "Malformed pass arguments"),
        ("lw-unroll{block=C loop=7}", "Incompatible types"),
    ],
)
def test_bad_text_is_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_schedule("lw-lower-te-to-loop," + text)


def test_long_schedules_parse_to_what_they_were() -> None:
    steps = STEPS * 6
    assert parse_schedule(schedule_text(steps)) == steps


def test_apply_schedule_takes_values_and_lowers_first() -> None:
    a, b, _, d = matmul()
    module = te.create_module([a, b, d])
    apply_schedule(module, [Split("C", "k", (0, 4)), Rfactor("C", "k1")])
    assert "C_rf" in str(module) and "lw_te.compute" not in str(module)


@pytest.mark.parametrize("text", ["cuda", "opencl", "cuda cores=3", "llvm", "llvm cores=2", "cuda model=h100"])
@pytest.mark.filterwarnings("ignore::loopwright.backends.targets.TargetWarning")
def test_the_target_of_a_schedule_is_that_of_a_search(text: str) -> None:
    x = te.placeholder((4096,), name="x")
    tensors = [x, topi.nn.relu(x)]
    module = te.create_module(tensors)
    wanted = lw.SearchTask(module, target=text).target
    for workload in (tensors, module):
        assert target_of(lw.Schedule(workload, target=text).module) == wanted


@pytest.mark.filterwarnings("ignore::loopwright.backends.targets.TargetWarning")
def test_a_gpu_without_a_model_has_limits() -> None:
    x = te.placeholder((4096,), name="x")
    sch = lw.Schedule([x, topi.nn.relu(x)], target="cuda")
    (i,) = sch.get_loops("T_relu")
    with pytest.raises(lw.ScheduleError, match="a block has at most 1024 threads on this target, got 4096"):
        sch.bind("T_relu", i, "threadIdx.x")
