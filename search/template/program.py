"""A scheduled program as arrays over a population: loops, what they touch, and what that takes of a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...dialects.interpret.loop import owning_loops
from ...dialects.loop import AllocOp, BlockOp, ForOp, blocks_in, buffer_shape, scope_of
from ...dialects.target import target_of
from ...passes.analysis.access import is_argument
from ...passes.analysis.code_size import buffer_element_bytes
from ...passes.analysis.nest import buffer_name, functions
from ...passes.parametric.usage import Usage
from .replay import BlockState, Replay, Strides
from .symbolic import Columns, Expr, const

Ints = npt.NDArray[np.int64]

MOST = "shared_most"
ARITHMETIC = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.addi", "arith.subi", "arith.muli")


@dataclass(frozen=True)
class Loop:
    """A loop around a block: how it runs, and how long it is."""

    name: str
    kind: str
    extent: Expr
    notes: Mapping[str, Expr]


@dataclass(frozen=True)
class Access:
    """A load or a store of a block: for each dimension how the index moves along the loops."""

    buffer: str
    scope: str
    is_write: bool
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[Strides, ...]


@dataclass(frozen=True)
class Nest:
    """A block with the loops around it, outermost first."""

    block: str
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    operations: int

    def copies(self, columns: Columns, count: int, known: dict[int, Any]) -> Ints:
        """How often the block is written out `(count,)`: by virtual threads, unrolled loops, and what a pragma asks."""
        limit: Any = 0
        limits: list[Any] = []
        for loop in self.loops:
            if "auto_unroll_max_step" in loop.notes:
                limit = loop.notes["auto_unroll_max_step"].evaluate(columns, known)
            if "unroll_explicit" in loop.notes:
                limit = np.where(loop.notes["unroll_explicit"].evaluate(columns, known) == 0, 0, limit)
            limits.append(limit)
        inside: Any = np.ones(count, dtype=np.int64)
        total: Any = np.ones(count, dtype=np.int64)
        for loop, most in zip(reversed(self.loops), reversed(limits), strict=True):
            extent = loop.extent.evaluate(columns, known)
            inside = inside if loop.kind == "vectorized" else inside * extent
            if loop.kind in ("unrolled", "vthread"):
                total = total * extent
            elif loop.kind == "serial":
                total = total * np.where(inside <= most, extent, 1)
        return np.asarray(total, dtype=np.int64)

    def vectors(self, columns: Columns, known: dict[int, Any], vector_bytes: int) -> Any:
        """How many vectors of the machine the block fills at once."""
        lanes = [x.extent.evaluate(columns, known) for x in self.loops if x.kind == "vectorized"]
        size = reduce(np.multiply, lanes, self.accesses[0].element_bytes)
        return (size + vector_bytes - 1) // vector_bytes


@dataclass(frozen=True)
class Size:
    """The elements of a buffer, how many more its fill may reserve by threads that are no divisor of it, and bytes."""

    elements: Expr
    more: Expr
    element_bytes: int


@dataclass(frozen=True)
class Launch:
    """What one outermost nest takes of a GPU: extents by thread axis, virtual threads, buffers. None: not known."""

    threads: Mapping[str, tuple[Expr, ...]]
    vthreads: tuple[Expr, ...]
    shared: tuple[Size | None, ...]
    local: tuple[Size | None, ...]


@dataclass(frozen=True)
class Program:
    """All nests of a schedule, for every config that its trace covers."""

    nests: tuple[Nest, ...]
    launches: tuple[Launch, ...]
    vector_bytes: int
    """Of a CPU, as its statements are counted in vectors; 0 on a GPU."""

    @classmethod
    def of(cls, module: ModuleOp, steps: Sequence[ModulePass]) -> Program:
        """Apply steps to `module` and describe what comes out. ScheduleError where one is not legal."""
        replay = Replay(module)
        replay.run(steps)
        nests: list[Nest] = []
        launches: list[Launch] = []
        for func in functions(module):
            nests += [_nest(block, replay.states[block.block_name]) for block in blocks_in(func)]
            sizes = _buffer_sizes(owning_loops(func), list(blocks_in(func)), replay.states)
            for op in func.body.block.ops:
                if isinstance(op, ForOp):
                    launches.append(_launch(list(blocks_in(op)), replay.states, sizes))
        target = target_of(module)
        return cls(tuple(nests), tuple(launches), 0 if target.is_gpu else target.vector_bytes)

    @property
    def main(self) -> Nest:
        """The nest that computes most."""
        return max(self.nests, key=lambda n: n.operations * float(np.prod([float(x.extent.value) for x in n.loops])))

    def usage(self, columns: Columns, count: int, known: dict[int, Any] | None = None) -> dict[str, Ints]:
        """The numbers of `Usage`, each `(count,)`, bytes -1 where not known; and `shared_most`, the most it may be.

        `known` keeps what was computed from the columns, this too.
        """
        known = {} if known is None else known
        if id(self) not in known:
            known[id(self)] = self._usage(columns, count, known)
        found: dict[str, Ints] = known[id(self)]
        return found

    def _usage(self, columns: Columns, count: int, known: dict[int, Any]) -> dict[str, Ints]:

        def column(expr: Expr) -> Any:
            return expr.evaluate(columns, known)

        found = {name: np.zeros(count, dtype=np.int64) for name in (*Usage.__dataclass_fields__, MOST)}
        found["threads_z"] += 1
        for launch in self.launches:
            threads: Any = np.ones(count, dtype=np.int64)
            for kind, extents in launch.threads.items():
                along = reduce(np.maximum, [column(e) for e in extents])
                threads = threads * along
                if kind == "threadIdx.z":
                    found["threads_z"] = np.maximum(found["threads_z"], along)
            found["threads"] = np.maximum(found["threads"], threads)
            for expr in launch.vthreads:
                found["vthreads"] = np.maximum(found["vthreads"], column(expr))
            for name, buffers in (
                ("shared_bytes", launch.shared),
                ("local_bytes", launch.local),
                (MOST, launch.shared),
            ):
                total: Any = np.zeros(count, dtype=np.int64)
                for buffer in buffers:
                    if buffer is None or (np.asarray(total) < 0).any():
                        total = np.full(count, -1)
                        continue
                    elements = column(buffer.elements) + (column(buffer.more) if name == MOST else 0)
                    total = total + elements * buffer.element_bytes
                found[name] = np.maximum(found[name], total) if (np.asarray(total) >= 0).all() else total
        for nest in self.nests:
            vectors = nest.vectors(columns, known, self.vector_bytes) if self.vector_bytes else 1
            found["steps"] = found["steps"] + nest.copies(columns, count, known) * vectors
        return found


def _nest(block: BlockOp, state: BlockState) -> Nest:
    loops = tuple(
        Loop(x.loop_name, x.loop_kind, state.extents[x.loop_name], _notes(x, state)) for x in block.enclosing_loops
    )
    accesses = [
        _access(output, True, indices, state)
        for output, indices in zip(block.outputs, block.write_indices, strict=True)
    ]
    accesses += [_access(load.buffer, False, load.indices.data, state) for load in block.loads]
    arithmetic = sum(op.name in ARITHMETIC or op.name.startswith("math.") for op in block.body.block.ops)
    return Nest(block.block_name, loops, tuple(accesses), arithmetic + int(block.is_reduction))


def _notes(loop: ForOp, state: BlockState) -> dict[str, Expr]:
    """The annotations of a loop that are numbers."""
    found = {key: const(v.value.data) for key, v in loop.notes.items() if isinstance(v, IntegerAttr)}
    return {key: state.notes.get((loop.loop_name, key), value) for key, value in found.items()}


def _access(buffer: SSAValue, is_write: bool, indices: Sequence[Any], state: BlockState) -> Access:
    strides = tuple(state.strides(index) for index in indices)
    shape = buffer_shape(buffer)
    return Access(buffer_name(buffer), scope_of(buffer), is_write, buffer_element_bytes(buffer), shape, strides)


Sizes = dict[SSAValue, Size | None]


def _buffer_sizes(
    owners: Mapping[SSAValue, ForOp | None], blocks: Sequence[BlockOp], states: Mapping[str, BlockState]
) -> Sizes:
    """How many elements of each buffer in shared memory or registers are kept."""
    sizes: Sizes = {}
    for buffer, owner in owners.items():
        if scope_of(buffer) in ("shared", "local"):
            sizes[buffer] = _buffer_size(buffer, owner, blocks, states)
    return sizes


def _buffer_size(
    buffer: SSAValue, owner: ForOp | None, blocks: Sequence[BlockOp], states: Mapping[str, BlockState]
) -> Size | None:
    shape = buffer_shape(buffer)
    shared = scope_of(buffer) == "shared"
    extents: list[Expr | None] = [None] * len(shape)
    moved: set[str] = set()
    virtual: dict[str, Expr] = {}
    for block in blocks:
        state = states[block.block_name]
        loops = block.enclosing_loops
        depth = loops.index(owner) + 1 if owner in loops else 0
        inner = [x.loop_name for x in loops[depth:] if shared or not x.loop_kind.startswith("threadIdx")]
        if shared:
            inner += [x.loop_name for x in loops[:depth] if x.loop_kind.startswith(("threadIdx", "vthread"))]
        for indices in _uses(block, buffer):
            for dimension, index in enumerate(indices):
                strides = state.strides(index)
                span, known = state.span(strides, inner), extents[dimension]
                if span is None:
                    continue
                moved |= strides.keys()
                extents[dimension] = span if known is None else known.at_least(span)
            virtual |= {x.loop_name: state.extents[x.loop_name] for x in loops[:depth] if x.loop_kind == "vthread"}
    if any(e is None for e in extents):
        return None
    known_extents = [e for e in extents if e is not None]
    size, more, outside = const(1), const(0), const(1)
    for extent, stride in zip(known_extents, _strides(known_extents, buffer), strict=True):
        size = size + (extent - const(1)) * stride
        more = more + stride * outside * const(1).below(extent)
        outside = outside * extent.equals(const(1))
    for name, extent in virtual.items():
        if not shared and name in moved:
            size = size * extent
    return Size(size, more, buffer_element_bytes(buffer))


def _uses(block: BlockOp, buffer: SSAValue) -> list[Sequence[Any]]:
    writes = [i for output, i in zip(block.outputs, block.write_indices, strict=True) if output is buffer]
    return [*writes, *(load.indices.data for load in block.loads if load.buffer is buffer)]


def _strides(extents: list[Expr], buffer: SSAValue) -> list[Expr]:
    """How far apart neighbours along each dimension are, in a buffer whose rows may be padded."""
    alloc = buffer.owner
    assert isinstance(alloc, AllocOp)
    align = alloc.alignment
    strides = [const(1)] * len(extents)
    for d in range(len(extents) - 2, -1, -1):
        strides[d] = strides[d + 1] * extents[d + 1]
        if align is not None and d == align[0]:
            missing = const(align[2]) - strides[d]
            strides[d] = strides[d] + (missing - missing // const(align[1]) * const(align[1]))
    return strides


def _launch(blocks: Sequence[BlockOp], states: Mapping[str, BlockState], sizes: Sizes) -> Launch:
    threads: dict[str, dict[int, Expr]] = {}
    vthreads: list[Expr] = []
    written: dict[SSAValue, None] = {}
    for block in blocks:
        state = states[block.block_name]
        virtual = const(1)
        for loop in block.enclosing_loops:
            extent = state.extents[loop.loop_name]
            if loop.loop_kind.startswith("threadIdx"):
                threads.setdefault(loop.loop_kind, {})[id(extent)] = extent
            elif loop.loop_kind == "vthread":
                virtual = virtual * extent
        vthreads.append(virtual)
        written |= {b: None for b in block.outputs if not is_argument(b)}

    def buffers(scope: str) -> tuple[Size | None, ...]:
        return tuple(sizes.get(b) for b in written if scope_of(b) == scope)

    by_axis = {kind: tuple(found.values()) for kind, found in threads.items()}
    return Launch(by_axis, tuple(vthreads), buffers("shared"), buffers("local"))
