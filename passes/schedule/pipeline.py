"""Let the copies in a loop run some iterations ahead of what uses them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...dialects.loop import ForOp
from ..analysis.access import loops_around
from ..analysis.copies import copies_of
from ..analysis.joined import MOST_IN_CLUSTER
from ..analysis.nest import find_block, find_loop
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..parametric.stages import add_places, copies_ahead
from ..primitive import Primitive
from ._marks import serial_loops
from ._stages import StagesPlan, add_stages, require_pipelinable


@dataclass(frozen=True)
class Pipeline(Primitive[StagesPlan]):
    """`for k in n { block a_shared { a_shared[x] = a[k, x] } block c { a_shared[x] } }` -> with `stages=3`

    `for k in n annotated {pipeline_stages = 3} { block a_shared { a_shared[k mod 3, x] = a[k, x] } block c { ... } }`

    The loop and its copies carry the annotation, and the buffers have a place for each stage: enough for the copies to
    run `stages - 1` iterations ahead on a GPU. A device that copies to shared memory by itself (sm_80 and later) does
    so, unless `registers` is 1; on others, and then, a thread loads before the work of an iteration, and stores behind
    it. With `bulk` of 1 the copy engine of sm_90 and later copies boxes, which one thread begins (TMA); others copy as
    ever. With `cluster=blockIdx.y` besides, the blocks along that axis (or two, as `blockIdx.y blockIdx.z`) are a
    cluster: of a box that all of them want, each asks for its share, and what comes goes to all (multicast); each
    iteration they wait for each other, as others write what they have read. One stage leaves all as it is.

    Requires: a serial loop, not pipelined yet, of at least `stages` iterations, `stages` at least 1; copies in it, each
    filling alone a buffer that is used in one iteration only, from one that nothing in the loop writes. For clusters
    `bulk`, and loops around that are bound to these axes, of 8 blocks together at most.
    """

    name = "lw-pipeline"
    block: str
    loop: str
    stages: int
    registers: int = 0
    bulk: int = 0
    cluster: str = ""

    def check(self, module: ModuleOp) -> StagesPlan:
        loop = find_loop(self, find_block(self, module, self.block), self.loop)
        require_pipelinable(self, loop, self.stages)
        if self.registers not in (0, 1):
            raise self.error(f"registers must be 0 or 1, got {self.registers}", at=loop)
        if self.bulk not in (0, 1 - self.registers):
            raise self.error(f"bulk must be 0, or 1 where registers is 0, got {self.bulk}", at=loop)
        copies = copies_of(loop)
        if not copies:
            rule = f"loop '{self.loop}' must hold a copy into a buffer that one iteration of it fills and uses"
            raise self.error(f"{rule}; cache_read and compute_at make one", at=loop)
        axes = tuple(self.cluster.split())
        self._require_cluster(loop, axes)
        return StagesPlan(loop, tuple(copies), self.stages, bool(self.registers), bool(self.bulk), axes)

    def _require_cluster(self, loop: ForOp, axes: tuple[str, ...]) -> None:
        if not axes:
            return
        sizes = {each.loop_kind: each.size for each in loops_around(loop) if each.loop_kind.startswith("blockIdx")}
        if not self.bulk or not set(axes) <= set(sizes):
            found = ", ".join(sizes) or "no axis of blocks"
            rule = f"a cluster takes bulk=1, and loops around bound to its axes, got '{self.cluster}'"
            raise self.error(f"{rule}; loops around are bound to {found}", at=loop)
        if (count := prod(sizes[axis] for axis in axes)) > MOST_IN_CLUSTER:
            raise self.error(f"a cluster has at most {MOST_IN_CLUSTER} blocks, got {count}", at=loop)

    def rewrite(self, plan: StagesPlan) -> None:
        add_stages(plan)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        loop = nest.loop(self.block, self.loop)
        add_places(nest, loop, copies_ahead(nest, loop), sizes.of(self.stages))

    def describe(self) -> str:
        return f"Load what {self.block} needs some iterations of loop {self.loop} ahead."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Pipeline, ...]:
        return tuple(
            cls(block, loop.loop_name, stages)
            for block, loop in serial_loops(module_op)
            if not loop.notes and copies_of(loop)
            for stages in (2, 3, 4)
            if stages <= loop.size
        )
