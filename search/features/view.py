"""Stages as features see them: the loops that run, by what they are, and how the accesses move in them."""

from __future__ import annotations

from ...dialects.cached_property import cached_property
from ...dialects.loop_notes import JOIN, PIPELINE_STAGES
from ...passes.parametric.nest import Buffer, Loop, Nest, Stage
from ...passes.parametric.placement import kept_part
from ...passes.parametric.sizes import Size, product, total
from ...passes.parametric.stages import stage_iterator
from .movement import Footprint, Movement, StageMovement, footprint

ROLES = {"parallel": "parallel", "vectorized": "lane", "unrolled": "unrolled", "vthread": "vthread"}


def role(loop: Loop) -> str:
    """Return a loop's role by its kind: block, thread, vthread, parallel, lane, unrolled or serial."""
    if loop.kind.startswith("blockIdx"):
        return "block"
    if loop.kind.startswith("threadIdx"):
        return "thread"
    return ROLES.get(loop.kind, "serial")


def running_loops(stage: Stage) -> list[Loop]:
    """The loops whose iterations are instances of a stage, outermost first; virtual threads before the unrolled body.

    Where a stage that all threads of a block fill together stands in loops over those threads, and has loops of its
    own over them, only the latter count: the others say who computes afterwards.
    """
    loops = stage.loops
    shared = all(a.buffer.scope == "shared" for a in stage.writes)
    kept: list[Loop] = []
    for position, loop in enumerate(loops):
        again = role(loop) == "thread" and any(x.kind == loop.kind for x in loops[position + 1 :])
        if not again and not (shared and role(loop) == "vthread"):
            kept.append(loop)
    virtual = [x for x in kept if role(x) == "vthread"]
    rest = [x for x in kept if role(x) != "vthread"]
    body = len(rest)
    while body and role(rest[body - 1]) in ("unrolled", "lane"):
        body -= 1
    return [*rest[:body], *virtual, *rest[body:]]


class StageView:
    """One stage: its running loops and what follows from them."""

    def __init__(self, stage: Stage, kernel: Loop | Stage, number: int) -> None:
        self.stage = stage
        self.kernel = kernel
        self.number = number
        self.loops = running_loops(stage)
        self.by_role: dict[str, list[Loop]] = {}
        self._roles = [role(loop) for loop in self.loops]
        for loop, own in zip(self.loops, self._roles, strict=True):
            self.by_role.setdefault(own, []).append(loop)
        self._loops_of: dict[tuple[str, ...], list[Loop]] = {}
        self._extent_of: dict[tuple[str, ...], Size] = {}
        self._footprints: dict[tuple[int, tuple[str, ...]], Footprint] = {}
        self._movement = StageMovement(stage, self.loops)
        self.movements = [Movement(self._movement, a) for a in stage.accesses]
        self.writes = self.movements[: len(stage.writes)]
        self.loads = self.movements[len(stage.writes) :]

    def loops_of(self, *roles: str) -> list[Loop]:
        """The loops with one of the roles, outermost first; nobody may change the list."""
        found = self._loops_of.get(roles)
        if found is None:
            pairs = zip(self.loops, self._roles, strict=True)
            found = self._loops_of[roles] = [loop for loop, own in pairs if own in roles]
        return found

    def extent_of(self, *roles: str) -> Size:
        """The product of the extents of the loops with one of the roles."""
        found = self._extent_of.get(roles)
        if found is None:
            found = self._extent_of[roles] = product([x.extent for x in self.loops_of(*roles)])
        return found

    @cached_property
    def iterations(self) -> Size:
        """Instances, with those that tails and recomputation add."""
        return product([x.extent for x in self.loops])

    @cached_property
    def points(self) -> Size:
        """Instances of the statement as it was written: the product of its iterators' extents."""
        places = {stage_iterator(x) for x in self.stage.loops if PIPELINE_STAGES in x.notes}
        return product([a.extent for a in self.stage.iterators if a.name not in places])

    @cached_property
    def body(self) -> list[Loop]:
        """The loops that become straight-line code: unrolled, lanes, virtual threads."""
        return self.loops_of("unrolled", "lane", "vthread")

    @cached_property
    def body_iterations(self) -> Size:
        return product([x.extent for x in self.body])

    @cached_property
    def trips(self) -> Size:
        """Runs of the straight-line code, over all threads."""
        return self.iterations / self.body_iterations

    @cached_property
    def per_thread(self) -> Size:
        """Runs of the straight-line code in one thread (or one task)."""
        return self.extent_of("serial")

    @cached_property
    def tasks(self) -> Size:
        """Blocks of threads on a GPU, iterations of parallel loops on a CPU."""
        return self.extent_of("block", "parallel")

    @cached_property
    def threads(self) -> Size:
        """Threads of a block."""
        return self.extent_of("thread")

    @cached_property
    def lanes(self) -> Size:
        """Elements of a vector."""
        return self.extent_of("lane")

    def footprint(self, movement: Movement, *roles: str) -> Footprint:
        """Return the footprint of an access while the loops of these roles run, which nobody may grow."""
        key = id(movement), roles
        found = self._footprints.get(key)
        if found is None:
            found = self._footprints[key] = footprint(movement, self.loops_of(*roles))
        return found

    @cached_property
    def body_footprints(self) -> list[Footprint]:
        """Footprint of each access in one run of the straight-line code."""
        return [footprint(m, self.body) for m in self.movements]

    @cached_property
    def suffixes(self) -> list[tuple[Loop, list[Size]]]:
        """From the innermost loop outwards: the loop, and the bytes each access touches in it and all below."""
        growing = [Footprint(m) for m in self.movements]
        found: list[tuple[Loop, list[Size]]] = []
        for loop in reversed(self.loops):
            for part in growing:
                part.grow(loop)
            found.append((loop, [part.size_bytes for part in growing]))
        return found

    @cached_property
    def touched(self) -> list[tuple[Loop, Size]]:
        """From the innermost loop outwards: the loop, and the bytes all accesses touch in it and all below."""
        return [(loop, total(parts)) for loop, parts in self.suffixes]

    @cached_property
    def operations(self) -> float:
        """Arithmetic of one instance in the time of an addition, about."""
        return sum(WEIGHTS[kind] * count for kind, count in self.stage.arithmetic.items())


WEIGHTS = {
    "add": 1.0,
    "multiply": 1.0,
    "divide": 8.0,
    "compare": 1.0,
    "special": 16.0,
    "integer": 1.0,
    "convert": 1.0,
}
"""Times of operations relative to an addition: throughputs of x86 and NVIDIA vector units (Fog's instruction tables;
CUDA C++ Programming Guide, arithmetic instructions), rounded to powers of two."""


class NestView:
    """A nest as features see it: stages, the kernels they belong to, and the part of each buffer that is allocated."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.target = nest.target
        self.kernels = list(nest.root.body)
        self.launches = sum(not (isinstance(kernel, Loop) and JOIN in kernel.notes) for kernel in self.kernels)
        """Kernels, but for those that are part of the one before."""
        self.stages: list[StageView] = []
        for kernel in self.kernels:
            for stage in [kernel] if isinstance(kernel, Stage) else kernel.stages():
                self.stages.append(StageView(stage, kernel, len(self.stages)))
        self.owners = {b: nest.owner_of(b) for b in nest.buffers.values() if not b.is_argument}
        self.kept = {b: kept_part(nest, b, owner) for b, owner in self.owners.items()}
        for view in self.stages:
            for movement in view.movements:
                kept = self.kept.get(movement.access.buffer)
                if kept is not None:
                    movement.strides = kept.strides

    def in_kernel(self, kernel: Loop | Stage) -> list[StageView]:
        """The stages of one kernel."""
        return [v for v in self.stages if v.kernel is kernel]

    def bytes_kept(self, buffer: Buffer) -> Size:
        """Bytes of a buffer for one iteration of the loop that owns it."""
        return self.kept[buffer].elements * buffer.element_bytes
