"""A launch that is being written: its threads, the buffers at its start, and what its threads do together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, Block, Region, SSAValue

from ...dialects import kernel
from ...dialects.buffers import buffer_type
from ...dialects.index import IndexExpr, axis
from ..analysis.nest import made_up
from ._addresses import Addresses, Scope
from ._loop_values import Known

_PLACE = made_up("place", 0)
"""A thread's place on an axis, where no loop is bound to it."""


class Launch:
    """A grid of thread blocks with `sizes` on its axes; what is written goes to it until it is closed."""

    def __init__(self, at: Addresses, sizes: Mapping[str, int], blocks_per_sm: int = 0) -> None:
        self.at, self.sizes, self.blocks_per_sm = at, sizes, blocks_per_sm
        self.block = Block()
        at.scopes.append(Scope(self.block))
        self.clustered: tuple[str, ...] = ()
        """The axes of blocks that are a cluster."""
        self.threads: dict[str, SSAValue] = {}
        """The place of a thread on each axis that has more than one."""
        for kind in sorted(k for k, n in sizes.items() if n > 1):
            thread = kernel.ThreadOp(kind)
            thread.result.name_hint = kind.replace("Idx.", "_")
            self.threads[kind] = at.here.add(thread)

    def close(self) -> None:
        """End the launch."""
        self.at.scopes.pop()
        grid = [self.sizes.get(f"blockIdx.{d}", 1) for d in "xyz"]
        threads = [self.sizes.get(f"threadIdx.{d}", 1) for d in "xyz"]
        cluster = [self.sizes[f"blockIdx.{d}"] if f"blockIdx.{d}" in self.clustered else 1 for d in "xyz"]
        cluster = cluster if self.clustered else []
        self.at.here.block.add_op(kernel.LaunchOp(grid, threads, Region(self.block), self.blocks_per_sm, cluster))

    def allocate(self, name: str, element: Attribute, size: int, scope: str, align: int = 0) -> SSAValue:
        """A flat buffer in registers or shared memory."""
        return allocate_first(self.block, name, element, size, scope, align)

    def barrier(self) -> None:
        """Let all threads of the block wait for each other."""
        self.at.here.block.add_op(kernel.BarrierOp())
        self.at.here.loads.clear()

    def arrive(self, arriving: Sequence[str], parts: int) -> SSAValue:
        """Let the block arrive at the counter of its place on the other axes of blocks; returns that it is the last."""
        kinds = [k for k in self.threads if k.startswith("blockIdx") and k not in arriving]
        number, tiles = IndexExpr((), 0), 1
        self.at.scopes.append(Scope(self.at.here.block))
        names = [made_up("place", n) for n in range(len(kinds))]
        for name, kind in zip(names, kinds, strict=True):
            self.at.env[name] = Known(self.threads[kind], len(self.at.scopes) - 1)
            self.at.ranges[name] = (0, self.sizes[kind] - 1)
            number = number + axis(name) * tiles
            tiles *= self.sizes[kind]
        index = self.at.scalar(number)
        for name in names:
            del self.at.env[name], self.at.ranges[name]
        self.at.scopes.pop()
        alloc = kernel.AllocOp("arrived", kernel.counters_type(tiles))
        first = self.block.first_op
        assert first is not None
        self.block.insert_op_before(alloc, first)
        last = self.at.here.add(kernel.ArriveOp(alloc.buffer, index, parts))
        self.at.here.loads.clear()
        return last

    def meet_in_clusters(self) -> None:
        """Let the blocks of a cluster wait for each other, and see nothing new."""
        self.at.here.block.add_op(kernel.ClusterMeetOp())

    def wait_in_clusters(self, kinds: Sequence[str]) -> None:
        """Let the blocks along axes, which are a cluster, wait for each other."""
        self.clustered = tuple(dict.fromkeys((*self.clustered, *kinds)))
        self.at.here.block.add_op(kernel.ClusterBarrierOp())
        self.at.here.loads.clear()

    def is_below(self, value: SSAValue, size: int, limit: int) -> SSAValue:
        """Return the test that a thread's place `value`, of `size` places, is one of the first `limit`."""
        self._enter(value, size)
        test = self.at.condition(IndexExpr(((_PLACE, -1),), limit - 1))
        self._leave()
        assert not isinstance(test, bool)
        return test

    def quotient(self, value: SSAValue, divisor: int, size: int) -> tuple[SSAValue, SSAValue]:
        """A thread's place `value`, of `size` places, divided: the quotient and the remainder."""
        place = IndexExpr(((_PLACE, 1),), 0)
        self._enter(value, size)
        parts = self.at.scalar(place // divisor), self.at.scalar(place % divisor)
        self._leave()
        return parts

    def _enter(self, value: SSAValue, size: int) -> None:
        self.at.scopes.append(Scope(self.at.here.block))
        self.at.env[_PLACE] = Known(value, len(self.at.scopes) - 1)
        self.at.ranges[_PLACE] = (0, size - 1)

    def _leave(self) -> None:
        del self.at.env[_PLACE], self.at.ranges[_PLACE]
        self.at.scopes.pop()


def allocate_first(block: Block, name: str, element: Attribute, size: int, scope: str, align: int = 0) -> SSAValue:
    """A flat buffer, allocated before all that is in `block`."""
    alloc = kernel.AllocOp(name, buffer_type(element, [size], scope), align)
    if block.first_op is None:
        block.add_op(alloc)
    else:
        block.insert_op_before(alloc, block.first_op)
    return alloc.buffer
