"""Sketch rules plan, then write: plans are values, read from a nest that stays as it is."""

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.loop import blocks_in
from loopwright.search.rules._columns import in_columns, plan_columns
from loopwright.search.rules._gpu_division import plan_division
from loopwright.search.rules._gpu_factors import parts_of
from loopwright.search.rules._gpu_joined_rows import plan_joined_rows
from loopwright.search.rules._gpu_results import plan_results
from loopwright.search.rules._gpu_tile_plan import plan_tiles as plan_gpu_tiles
from loopwright.search.rules._gpu_tiled_rows import plan_tiled_rows
from loopwright.search.rules._tile_plan import plan_tiles
from loopwright.search.rules._tile_variants import variants
from loopwright.search.rules._turned import plan_turned, turned_axes
from loopwright.search.rules.gpu_injective import plan_elements
from loopwright.search.rules.gpu_rows import plan_rows
from loopwright.search.rules.gpu_split_reduction import plan_split
from loopwright.search.rules.gpu_tiling import gpu_variants
from loopwright.search.rules.injective import plan_run
from loopwright.search.sketch.draft import Draft
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.structure.anchor import anchors_in
from loopwright.search.structure.chains import along_reduce, chain_to, next_chain, unscheduled
from loopwright.search.structure.gpu_chains import Shape, chains_of

CPU = "llvm cores=4 vector_bytes=32 vector_registers=16"
GPU = "opencl cores=4 max_threads_per_block=256 max_shared_bytes=32768 warp_size=1 max_vthreads=8"
RULES = Path(lw.__file__).resolve().parent / "search"


def draft_of(name: str, target: str) -> tuple[Draft, lw.Target]:
    task = lw.SearchTask(SAMPLES[name], target=target)
    return Draft.of(task.module), task.target


def cpu_plans(draft: Draft, target: lw.Target) -> Iterator[object]:
    for anchor in anchors_in(draft.module):
        yield from (plan_tiles(draft, anchor, variant, target) for variant in variants(anchor, target))
    for block in unscheduled(draft):
        if block.is_reduction and in_columns(block, target):
            yield plan_columns(draft, block.block_name, target)
        if not block.is_reduction and block.enclosing_loops:
            axes = turned_axes(block)
            yield plan_run(block, target) if axes is None else plan_turned(draft, block, axes, target)


def gpu_plans(draft: Draft, target: lw.Target) -> Iterator[object]:
    for anchor in anchors_in(draft.module):
        longest = max(a.extent for a in anchor.reduce)
        yield from (plan_division(anchor, sliced) for sliced in (False, True) if parts_of(longest, sliced))
        yield from (
            plan_gpu_tiles(anchor, v, target, None) for v in gpu_variants(anchor) if not v.split and not v.sliced
        )
    for chain in chains_of(draft):
        shape = Shape.of(draft, chain)
        if shape.along is not None and shape.terms > 1:
            yield from (plan_tiled_rows(shape, target), plan_joined_rows(shape, target))
            yield from (plan_split(draft, name, target) for name in chain.reductions)
    names = next_chain(draft)
    if names is not None:
        yield plan_rows([draft.block(name) for name in names], target)
    for block in unscheduled(draft):
        if block.enclosing_loops:
            yield plan_results(block, target) if block.is_reduction else plan_elements(block, target)


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("target", [CPU, GPU])
@pytest.mark.few(25)
def test_planning_leaves_the_draft_as_it_is(name: str, target: str) -> None:
    draft, device = draft_of(name, target)
    before = str(draft.module), draft.template, draft.population, {*draft.settled}, list(draft.names)
    plans = list((gpu_plans if device.is_gpu else cpu_plans)(draft, device))
    assert plans or any(along_reduce(block) for block in unscheduled(draft))  # whose chains are planned as they move
    assert before == (str(draft.module), draft.template, draft.population, draft.settled, draft.names)
    for plan in plans:
        field = next(iter(vars(plan)))
        with pytest.raises(FrozenInstanceError):
            setattr(plan, field, None)


def born_late(file: Path) -> Iterator[str]:
    """Attributes of classes that are first assigned outside of `__init__`."""
    for kind in ast.walk(ast.parse(file.read_text())):
        if not isinstance(kind, ast.ClassDef):
            continue
        born = {n.target.id for n in kind.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
        methods = [n for n in kind.body if isinstance(n, ast.FunctionDef)]
        for method in sorted(methods, key=lambda m: m.name != "__init__"):
            stored = {
                n.attr
                for n in ast.walk(method)
                if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and ast.unparse(n.value) == "self"
            }
            if method.name != "__init__":
                yield from (f"{file.name}: {kind.name}.{name} in {method.name}" for name in sorted(stored - born))
            born |= stored


def test_what_writes_has_no_state_that_comes_to_be_on_the_way() -> None:
    files = [file for room in ("rules", "structure", "estimates") for file in sorted((RULES / room).glob("*.py"))]
    assert len(files) > 30
    assert not [late for file in files for late in born_late(file)]


def test_state_that_comes_to_be_on_the_way_is_found(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text(
        "class A:\n    def __init__(self):\n        self.a = 1\n    def f(self):\n        self.a = self.b = 2\n"
    )
    assert list(born_late(file)) == ["late.py: A.b in f"]


def layers() -> list[te.Tensor]:
    data = te.placeholder((4, 8), name="data")
    first = te.compute((4, 8), lambda i, j: data[i, j] + 1.0, name="first")
    other = te.compute((4, 8), lambda i, j: first[i, j] * 2.0, name="other")
    second = te.compute((4, 8), lambda i, j: first[i, j] * 3.0, name="second")
    last = te.compute((4, 8), lambda i, j: second[i, j] - data[i, j], name="last")
    return [data, other, last]


def test_a_chain_is_what_nobody_else_reads() -> None:
    draft = Draft.of(lw.SearchTask(layers).module)
    *before, last = list(blocks_in(draft.module))
    assert last.block_name == "last"
    assert [b.block_name for b in chain_to(last, before, lambda block, readers: True)] == ["last", "second"]
    assert [b.block_name for b in chain_to(last, before, lambda block, readers: False)] == ["last"]


def rows_of(length: int) -> list[te.Tensor]:
    data = te.placeholder((64, length), name="data")
    return [data, topi.nn.softmax(data)]


@pytest.mark.parametrize("length", [40, 1000])
def test_rows_are_reduced_where_nobody_says_how_many_threads_a_block_may_have(length: int) -> None:
    """`max()` of no choice at all, before."""
    task = lw.SearchTask(rows_of, args=(length,), target="opencl cores=2 warp_size=1")
    sketch = generate_sketches(task.module, task.target)[0]
    assert [max(h.choices) for h in sketch.holes if h.name.endswith("_threads")] <= [256]


def test_elements_that_lanes_would_gather_come_one_by_one_in_every_candidate() -> None:
    x = te.placeholder((3, 100, 3, 100), name="x")
    put_together = te.compute((300, 300), lambda i, j: x[i % 3, i // 3, j % 3, j // 3] + 1.0, name="put_together")
    sums = te.compute((3, 100, 3, 100), lambda p, i, q, j: x[p, i, q, j] + 1.0, name="sums")
    (apart,), (in_rows,) = (lw.SearchTask([x, made], target=CPU).sketches for made in (put_together, sums))
    assert [hole.name for hole in apart.holes] == ["put_together_vectors"]
    assert {hole.name for hole in in_rows.holes} == {"sums_vectors", "sums_lanes"}
