"""Compute a nest in the launch before, by the blocks of threads that are the last to write what it reads."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation

from ...dialects.kernel import CLUSTERS_SINCE
from ...dialects.loop import AllocOp, ForOp, blocks_in
from ...dialects.loop_notes import CLUSTER, JOIN
from ...dialects.target import target_of
from ..analysis.joined import join_problem, launch_sizes
from ..analysis.nest import find_block, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import legal_steps


@dataclass(frozen=True)
class Join(Primitive[ForOp]):
    """`for p in 8 blockIdx.y { for t in 64 blockIdx.x { S } } for t in 64 blockIdx.x { T }` ->

    `for p in 8 blockIdx.y { for t in 64 blockIdx.x { S } } for t in 64 blockIdx.x annotated {join = 1 : i64} { T }`,
    of which lowering makes one launch: of the 8 blocks of threads with one `t`, each runs S, and the last to have done
    so runs T. Nobody waits: a counter says who is last. T reads what all 8 have written, in the order that it reads
    it, so that results do not depend on who that was.

    With `cluster=blockIdx.y`, T has a loop on that axis, too, annotated `cluster = "blockIdx.y"`: the 8 blocks run at
    once, wait for each other, and each runs its iteration of T.

    Requires: a CUDA target; `block` in a loop of the function's, behind another one which is not marked so; at least
    one axis of blocks of the nest before that the nest of `block` has no loop on; on the other axes of blocks loops of
    the same extents, on those of threads of no larger ones. For clusters compute capability 9.0, and 2 to 8 blocks on
    the axis. Lowering refuses it where `block` reads what blocks of threads at another place on the other axes wrote.
    """

    name = "lw-join"
    makes_loops = False
    block: str
    cluster: str = ""

    def check(self, module: ModuleOp) -> ForOp:
        block = find_block(self, module, self.block)
        if target_of(module).kind != "cuda":
            rule = "blocks of threads must see what others wrote before they came to a counter, which CUDA promises"
            raise self.error(f"{rule}; the target is {target_of(module).kind}", at=block)
        nest = block.enclosing_loops[0] if block.enclosing_loops else None
        before = None if nest is None else _before(nest)
        if nest is None or before is None or JOIN in nest.notes:
            raise self.error(f"'{self.block}' must be in a nest behind another one, and not joined yet", at=block)
        if JOIN in before.notes:
            raise self.error("one nest joins a launch, and that before joins another one", at=before)
        if self.cluster and not self.cluster.startswith("blockIdx"):
            raise self.error(f"a cluster is of blocks along blockIdx.x, .y or .z, got '{self.cluster}'", at=nest)
        capability = target_of(module).compute_capability
        if self.cluster and capability < CLUSTERS_SINCE:
            raise self.error(f"clusters take compute capability {CLUSTERS_SINCE}, the target has {capability}", at=nest)
        if rule := join_problem(launch_sizes([before]), launch_sizes([nest]), self.cluster):
            raise self.error(rule, at=nest)
        return nest

    def rewrite(self, plan: ForOp) -> None:
        plan.annotate(JOIN, IntegerAttr(1, i64))
        if self.cluster:
            plan.annotate(CLUSTER, StringAttr(self.cluster))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        nest.stage(self.block).loops[0].notes[JOIN] = sizes.of(1)

    def describe(self) -> str:
        if self.cluster:
            return f"Compute {self.block} in the kernel before, whose blocks along {self.cluster} wait for each other."
        return f"Compute {self.block} in the kernel before, by the thread blocks that are the last to have written."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Join, ...]:
        nests = (op for func in functions(module_op) for op in func.body.block.ops if isinstance(op, ForOp))
        first = (next(blocks_in(nest), None) for nest in nests)
        names = [block.block_name for block in first if block is not None]
        return legal_steps([cls(name, axis) for name in names for axis in ("", "blockIdx.y")], module_op)


def _before(nest: ForOp) -> ForOp | None:
    """The nest right before one."""
    op: Operation | None = nest.prev_op
    while isinstance(op, AllocOp):
        op = op.prev_op
    return op if isinstance(op, ForOp) else None
