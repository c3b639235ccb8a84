"""Join launches: a nest that was marked so becomes part of the launch before, for the blocks that arrive last."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.loop import ForOp, JoinOp
from ...dialects.loop_notes import CLUSTER, JOIN
from ...dialects.target import Target, target_of
from ..analysis.joined import arriving_axes, join_problem, launch_sizes
from ..analysis.nest import functions_on_loops
from ._steps import note_step, require_after
from .drop_edges import DropEdges


@dataclass(frozen=True)
class JoinLaunches(ModulePass):
    """`for blockIdx.y in 8 { S } for .. annotated {join} { T }` ->

    `for blockIdx.y in 8 { S } join blockIdx.y of 8 for .. annotated {join} { T }`: one launch, in which each block of
    threads arrives behind S, and the last of 8 that differ on blockIdx.y alone runs T, or all of them do, which are a
    cluster and wait for each other.

    On other devices than CUDA's, T stays a launch of its own: they promise no block what another one wrote.

    Requires: placed buffers (`lw-place-buffers`); loops as `lw-join` asks for.
    """

    name = "lw-join-launches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_on_loops(op):
            require_after(func, self.name, DropEdges.name)
            join_launches(func, target_of(op))


def join_launches(func: FuncOp, target: Target) -> None:
    """Join the launches of a function, in place; PassFailedException for nests that cannot be."""
    before: ForOp | None = None
    for nest in [op for op in func.body.block.ops if isinstance(op, ForOp)] if target.kind == "cuda" else []:
        joins = JOIN in nest.notes
        if joins:
            _join(before, nest)
        before = None if joins else nest
    note_step(func, JoinLaunches.name)


def _join(before: ForOp | None, nest: ForOp) -> None:
    if before is None or nest.prev_op is not before:
        raise _refusal(nest, "there is no launch right before it, or one that another nest joins")
    sizes, own, note = launch_sizes([before]), launch_sizes([nest]), nest.notes.get(CLUSTER)
    cluster = note.data if isinstance(note, StringAttr) else ""
    if rule := join_problem(sizes, own, cluster):
        raise _refusal(nest, rule)
    axes = arriving_axes(sizes, own, cluster)
    block = nest.parent_block()
    assert block is not None
    block.insert_op_before(JoinOp(axes, prod(sizes[axis] for axis in axes), bool(cluster)), nest)


def _refusal(nest: ForOp, rule: str) -> PassFailedException:
    return PassFailedException(f"lw-lower-loop-to-kernel: nest '{nest.loop_name}' joins the launch before: {rule}")
