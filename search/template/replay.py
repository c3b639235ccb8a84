"""A trace applied step by step, beside the IR: how long each loop is, as an expression over the knobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.index import IndexExpr
from ...dialects.loop import BlockOp, ForOp, blocks_in, scope_of
from ...passes.analysis.access import consumers, producers
from ...passes.analysis.nest import find_block
from ...passes.lower.lower_te_to_loop import LowerTeToLoop
from ...passes.pipeline_text import lower_to_loops
from ...passes.primitive import Primitive, plain_step
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.fuse import Fuse
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.reverse_compute_at import ReverseComputeAt
from ...passes.schedule.rfactor import Rfactor
from ...passes.schedule.split import Split
from .limits import blocks_of
from .symbolic import Expr, const, expr_of

Strides = dict[str, Expr | None]
"""Loop -> how far one iteration of it moves an index; None where that is not always the same, as of fused loops."""


@dataclass
class BlockState:
    """What is known of a block: the extents of the loops around it, and of each iterator its strides along them."""

    extents: dict[str, Expr] = field(default_factory=dict)
    iterators: dict[str, Strides] = field(default_factory=dict)
    notes: dict[tuple[str, str], Expr] = field(default_factory=dict)
    """Annotations of loops that follow from the knobs, by loop and key."""

    def strides(self, index: IndexExpr) -> Strides:
        """How an index over the iterators moves along the loops."""
        total: Strides = {}
        for atom, factor in index.terms:
            if isinstance(atom, str):
                for loop, stride in self.iterators[atom].items():
                    before = total.get(loop, const(0))
                    known = stride is not None and before is not None
                    total[loop] = before + stride * const(abs(factor)) if known else None  # type: ignore[operator]
            else:
                total |= {loop: None for name in atom.expr.axes() for loop in self.iterators[name]}
        return total

    def span(self, strides: Strides, loops: Iterable[str]) -> Expr | None:
        """How many elements an index passes over while `loops` run; None where that is not known."""
        total = const(1)
        for loop in loops:
            if loop in strides:
                stride = strides[loop]
                if stride is None:
                    return None
                total = total + stride * (self.extents[loop] - const(1))
        return total


class Replay:
    """Blocks by name, as far as the steps have been applied to `module`."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.states: dict[str, BlockState] = {}

    def run(self, steps: Sequence[ModulePass]) -> None:
        """Apply steps, whose numbers may know where they come from. ScheduleError where one is not legal."""
        for step in steps:
            self._step(step, plain_step(step))

    def _step(self, step: Any, plain: Any) -> None:
        if isinstance(step, LowerTeToLoop):
            lower_to_loops(self.module)
        elif isinstance(step, Split):
            self._split(step, plain)
            return
        elif isinstance(step, Fuse):
            self._fuse(plain)
            return
        elif isinstance(step, ComputeAt):
            self._compute_at(plain)
        elif isinstance(step, ReverseComputeAt):
            self._reverse_compute_at(plain)
        elif isinstance(step, Rfactor):
            self._rfactor(plain)
        elif isinstance(step, Pragma):
            self._pragma(step, plain)
            return
        elif isinstance(step, Primitive):
            plain.run(self.module)
        else:
            plain.apply(Context(), self.module)
        self._refresh()

    def _rfactor(self, plain: Rfactor) -> None:
        """The partial results have the loops of before; what adds them up has the factored one."""
        before = {b.block_name for b in blocks_of(self.module)}
        old = self.states[plain.block]
        plain.run(self.module)
        (partial,) = (b.block_name for b in blocks_of(self.module) if b.block_name not in before)
        self.states[partial] = old
        self.states[plain.block] = BlockState(extents={plain.loop: old.extents[plain.loop]})

    def _refresh(self) -> None:
        """Take over what a step has changed; what is new and not known otherwise is the same for all configs."""
        blocks = blocks_of(self.module)
        for block in blocks:
            old = self.states.get(block.block_name, BlockState())
            new = BlockState(notes=old.notes)
            for loop in block.enclosing_loops:
                known = old.extents.get(loop.loop_name)
                right = known is not None and known.value == loop.size
                new.extents[loop.loop_name] = known if known is not None and right else const(loop.size)
            for axis, bound in zip(block.axes, block.bindings.data, strict=True):
                kept = old.iterators.get(axis.name)
                lost = kept is None or not kept.keys() <= new.extents.keys()
                new.iterators[axis.name] = _constant_strides(bound) if kept is None or lost else kept
            self.states[block.block_name] = new
        for gone in self.states.keys() - {b.block_name for b in blocks}:
            del self.states[gone]

    def _split(self, step: Split, plain: Split) -> None:
        plan = plain.check(self.module)
        factors = [expr_of(f) for f in step.factors]
        names = [name for name, _ in plan.children]
        for state in self._below(plan.loop):
            whole = state.extents[step.loop]
            parts = list(factors)
            if 0 in plain.factors:
                at = plain.factors.index(0)
                rest = const(1)
                for position, factor in enumerate(factors):
                    rest = rest if position == at else rest * factor
                parts[at] = (whole + rest - const(1)) // rest
            inner = const(1)
            strides: dict[str, Expr] = {}
            for name, part in zip(reversed(names), reversed(parts), strict=True):
                strides[name] = inner
                inner = inner * part
            replaced = list(zip(names, parts, strict=True))
            state.extents = _replaced(state.extents, [step.loop], replaced)
            for axis, known in state.iterators.items():
                if step.loop in known:
                    whole_stride = known[step.loop]
                    moved = {name: None if whole_stride is None else whole_stride * s for name, s in strides.items()}
                    rest_of = {k: v for k, v in known.items() if k != step.loop}
                    state.iterators[axis] = {**rest_of, **moved}
        plain.rewrite(plan)

    def _fuse(self, plain: Fuse) -> None:
        plan = plain.check(self.module)
        for state in self._below(plan.loops[-1]):
            total = const(1)
            for loop in plain.loops:
                total = total * state.extents[loop]
            state.extents = _replaced(state.extents, list(plain.loops), [(plan.name, total)])
            for axis, known in state.iterators.items():
                if not known.keys().isdisjoint(plain.loops):
                    rest = {k: v for k, v in known.items() if k not in plain.loops}
                    state.iterators[axis] = {**rest, plan.name: None}
        plain.rewrite(plan)

    def _pragma(self, step: Pragma, plain: Pragma) -> None:
        loop = plain.check(self.module).loop
        for state in self._below(loop):
            for key in ("auto_unroll_max_step", "unroll_explicit"):
                value = getattr(step, key)
                if value is not None:
                    state.notes[loop.loop_name, key] = expr_of(value)
        plain.run(self.module)

    def _below(self, loop: ForOp) -> list[BlockState]:
        return [self.states[b.block_name] for b in blocks_in(loop)]

    def _compute_at(self, plain: ComputeAt) -> None:
        block = find_block(plain, self.module, plain.block)
        readers = consumers(block)
        plan = plain.check(self.module)
        around = next((r for r in readers if plain.loop in self.states[r.block_name].extents), None)
        if around is None:
            plain.rewrite(plan)
            return
        outer = _up_to(list(self.states[around.block_name].extents), plain.loop)
        together: list[str] = []
        if scope_of(block.outputs[0]) == "shared":
            together = [x.loop_name for x in around.enclosing_loops if x.loop_kind.startswith(("threadIdx", "vthread"))]
        own = dict(plan.loops)
        path = self.states[around.block_name].extents
        state = BlockState({name: path[name] for name in outer})
        dimension = _written_at(block)
        for axis, bound in zip(block.axes, plan.bindings, strict=True):
            name = next((n for n in bound.axes() if n in own), None)
            extent: Expr = const(axis.extent)
            low: Strides = {}
            if axis.name in dimension:
                extent, low = self._needed(block, readers, dimension[axis.name], outer, together, axis.extent)
            if name is None:
                state.iterators[axis.name] = low
                continue
            state.extents[name] = extent
            state.iterators[axis.name] = {**low, name: const(1)}
        plain.rewrite(plan)
        self.states[plain.block] = state

    def _needed(
        self, block: BlockOp, readers: list[BlockOp], dimension: int, outer: list[str], together: list[str], size: int
    ) -> tuple[Expr, Strides]:
        """How much of a dimension is read below the `outer` loops, and how that moves along them."""
        most: Expr | None = None
        low: Strides = {}
        for reader in readers:
            state = self.states[reader.block_name]
            inner = [name for name in state.extents if name not in outer or name in together]
            for load in reader.loads:
                if load.buffer not in block.outputs:
                    continue
                strides = state.strides(load.indices.data[dimension])
                span = state.span(strides, inner)
                if span is None:
                    return const(size), dict.fromkeys(outer)
                most = span if most is None else most.at_least(span)
                low = {name: s for name, s in strides.items() if name in outer and name not in together}
        return (const(size) if most is None else most.at_most(const(size))), low

    def _reverse_compute_at(self, plain: ReverseComputeAt) -> None:
        block = find_block(plain, self.module, plain.block)
        known = [p for p in producers(block) if plain.loop in self.states[p.block_name].extents]
        plan = plain.check(self.module)
        if not known:
            plain.rewrite(plan)
            return
        source = self.states[known[-1].block_name]
        outer = _up_to(list(source.extents), plain.loop)
        state = BlockState({name: source.extents[name] for name in outer})
        for name, extent in plan.loops:
            state.extents[name] = source.extents.get(name, const(extent))
        written = {d: axis for axis, d in _written_at(known[-1]).items()}
        for axis, bound in zip(block.axes, plan.bindings, strict=True):
            state.iterators[axis.name] = _constant_strides(bound)
        for load in block.loads:
            if load.buffer in known[-1].outputs:
                for dimension, index in enumerate(load.indices.data):
                    follower, leader = index.as_axis(), written.get(dimension)
                    if follower is not None and leader is not None:
                        strides = source.iterators[leader]
                        state.iterators[follower] = {k: s for k, s in strides.items() if k in state.extents}
        plain.rewrite(plan)
        self.states[plain.block] = state


def _up_to(loops: list[str], last: str) -> list[str]:
    return loops[: loops.index(last) + 1]


def _replaced(extents: dict[str, Expr], old: Sequence[str], new: Sequence[tuple[str, Expr]]) -> dict[str, Expr]:
    """The loops in their order, with neighbours `old` replaced by `new`."""
    items: list[tuple[str, Expr]] = []
    for name, extent in extents.items():
        if name == old[0]:
            items += new
        elif name not in old:
            items.append((name, extent))
    return dict(items)


def _constant_strides(bound: IndexExpr) -> Strides:
    """Strides of an iterator along loops, the same for all configs."""
    found: Strides = {name: None for atom, _ in bound.terms if not isinstance(atom, str) for name in atom.expr.axes()}
    for atom, factor in bound.terms:
        if isinstance(atom, str) and atom not in found:
            found[atom] = const(abs(factor))
    return found


def _written_at(block: BlockOp) -> dict[str, int]:
    """The dimension of the first output that each iterator stands for."""
    found = ((index.as_axis(), d) for d, index in enumerate(block.write_indices[0]))
    return {name: d for name, d in found if name is not None}
