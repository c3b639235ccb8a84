"""Sketch rules: found by file, registered, installed, left out, reordered; and what a rule from outside can do."""

import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright import te
from loopwright.dialects.plugins import SKETCH_RULES
from loopwright.dialects.target import Target, parse_target
from loopwright.passes.schedule.parallel import Parallel
from loopwright.search.sketch import rule as registry
from loopwright.search.sketch.generate import generate_sketches

CPU = "llvm cores=2 vector_bytes=32"
GPU = "opencl cores=2 max_threads_per_block=1024 max_shared_bytes=49152 warp_size=1 max_vthreads=8"


pytestmark = pytest.mark.usefixtures("registries")


class OuterParallel(lw.SketchRule):
    """The outermost loop of the last block to threads, and nothing else; or not."""

    order = 50

    def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
        other = draft.copy()
        other.do(Parallel, block="T_relu", loop="i0")
        other.settled |= {"T_relu", "T_dense", "T_add"}
        other.names.append("outer")
        return [draft, other]


def test_every_file_holds_a_rule_of_its_name() -> None:
    assert registry.rule_stems()
    assert {rule.name for rule in lw.sketch_rules()} >= set(registry.rule_stems())


def test_rules_are_ordered_and_some_are_for_one_kind_of_target() -> None:
    orders = [rule.order for rule in lw.sketch_rules()]
    assert orders == sorted(orders)
    on_cpu = {rule.name for rule in lw.sketch_rules(parse_target(CPU))}
    on_gpu = {rule.name for rule in lw.sketch_rules(parse_target(GPU))}
    assert {"always_inline", "multi_level_tiling", "row_reduction", "injective"} <= on_cpu
    assert {"always_inline", "gpu_tiling", "gpu_rows", "gpu_injective"} <= on_gpu
    assert "multi_level_tiling" not in on_gpu and "gpu_tiling" not in on_cpu
    assert not [
        rule.name for rule in lw.sketch_rules() if rule.name.startswith("gpu_") and rule.when(parse_target(CPU))
    ]


def test_a_registered_rule_adds_sketches_that_are_right() -> None:
    before = {s.name for s in lw.SearchTask(SAMPLES["dense"], target=CPU).sketches}
    assert lw.register_sketch_rule(OuterParallel) is OuterParallel
    task = lw.SearchTask(SAMPLES["dense"], target=CPU)
    assert {s.name for s in task.sketches} == {*before, "outer"}
    (sketch,) = (s for s in task.sketches if s.name == "outer")
    assert 'lw-parallel{block="T_relu" loop="i0"}' in sketch.template
    output = task.build(sketch.schedule(sketch.default))(*task.reference.inputs)
    np.testing.assert_allclose(output, task.reference.expected[0], rtol=1e-4, atol=1e-5)


def test_registering_again_replaces() -> None:
    class Late(OuterParallel):
        order = 90
        name = "outer_parallel"

    lw.register_sketch_rule(OuterParallel())
    lw.register_sketch_rule(Late())
    assert [type(r) for r in lw.sketch_rules() if r.name == "outer_parallel"] == [Late]


def test_rules_of_a_task_drop_and_reorder() -> None:
    dropped = [rule for rule in lw.sketch_rules() if rule.name not in ("few_rows", "multi_level_tiling")]
    task = lw.SearchTask(SAMPLES["dense"], target=CPU, rules=dropped)
    assert [s.name for s in task.sketches] == ["plain"]
    nothing = lw.SearchTask(SAMPLES["dense"], target=CPU, rules=[])
    assert nothing.default_schedule == "lw-lower-te-to-loop"
    reordered = lw.SearchTask(SAMPLES["dense"], target=CPU, rules=[*reversed(lw.sketch_rules())])
    assert reordered.default_schedule.split(",lw-")[-1].startswith("compute-inline")
    for one in (task, nothing, reordered):
        output = one.build()(*one.reference.inputs)
        np.testing.assert_allclose(output, one.reference.expected[0], rtol=1e-4, atol=1e-5)


def test_rules_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("outer", f"{__name__}:OuterParallel", SKETCH_RULES)
    monkeypatch.setattr(EntryPoint, "load", lambda self: OuterParallel)
    monkeypatch.setattr(registry, "plugins", lambda group: {"outer": point} if group == SKETCH_RULES else {})
    assert "outer_parallel" in [rule.name for rule in lw.sketch_rules()]


def test_refusals() -> None:
    with pytest.raises(TypeError, match=r"register_sketch_rule: a sketch rule must be a lw\.SketchRule, got int"):
        lw.register_sketch_rule(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"rules: a sketch rule must be a lw\.SketchRule, got str"):
        lw.SearchTask(SAMPLES["dense"], target=CPU, rules=["injective"])  # type: ignore[list-item]

    class Injective(OuterParallel):
        pass

    with pytest.raises(ValueError, match="sketch rule 'injective' comes with loopwright; give yours another name"):
        lw.register_sketch_rule(Injective)


def test_a_rule_that_gives_up_every_way_leaves_an_error() -> None:
    class Nothing(lw.SketchRule):
        def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
            return []

    x = te.placeholder((4,), name="x")
    task = lw.SearchTask(lambda: [x, te.compute((4,), lambda i: x[i] + 1.0, name="y")], target=CPU, rules=[Nothing()])
    with pytest.raises(ValueError, match="sketch rule 'nothing' left no draft"):
        task.sketches  # noqa: B018


def test_sketches_of_one_name_are_numbered() -> None:
    class Again(lw.SketchRule):
        def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
            others = [draft.copy(), draft.copy()]
            for other, loop in zip(others, ("i0", "i1"), strict=True):
                other.do(Parallel, block="T_relu", loop=loop)
            return [draft, *others]

    task = lw.SearchTask(SAMPLES["dense"], target=CPU, rules=[Again])
    assert sorted(s.name for s in task.sketches) == ["plain", "plain_2", "plain_3"]
    again = lw.SearchTask(SAMPLES["dense"], target=CPU, rules=[Again])
    assert {s.name: s.template for s in task.sketches} == {s.name: s.template for s in again.sketches}


@pytest.mark.parametrize(
    ("returned", "said"), [(None, "returned nothing"), (3, "returned int"), ([3], "got int among")]
)
def test_a_rule_that_returns_no_drafts_is_refused_by_name(returned: object, said: str) -> None:
    class Forgetful(lw.SketchRule):
        def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
            return returned  # type: ignore[return-value]

    with pytest.raises(TypeError, match=f"sketch rule 'forgetful' .*{said}"):
        assert lw.SearchTask(SAMPLES["dense"], target=CPU, rules=[Forgetful]).sketches


def test_the_page_names_every_rule() -> None:
    page = (Path(lw.__file__).parent / "docs" / "sketch_rules.md").read_text()
    assert not [stem for stem in registry.rule_stems() if f"`{stem}`" not in page]


def test_a_strip_of_columns_inside_of_a_reduced_row_is_left_in_lanes() -> None:
    """A reduced axis of extent 1 makes rows that look contiguous, though the strip's columns are innermost."""
    p = te.placeholder((11, 5, 8, 1), "float64", "p")
    i, r, one = te.reduce_axis((0, 1), "i"), te.reduce_axis((0, 11), "r"), te.reduce_axis((0, 1), "one")
    partial = te.compute(p.shape, lambda a, b, c, d: te.sum(p[a, b, c, d * 2 + i], axis=i), name="partial")
    total = te.compute((5, 8), lambda j, k: te.sum(partial[r, j, k, one], axis=[r, one]), name="total")
    module = te.create_module([p, total], parse_target("llvm cores=2 vector_bytes=64"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sketches = generate_sketches(module, parse_target("llvm cores=2 vector_bytes=64"))
    assert any("lw-vectorize" in sketch.schedule(sketch.default) for sketch in sketches)
