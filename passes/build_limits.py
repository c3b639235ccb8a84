"""Limits of what a schedule may ask for: somebody's schedule is refused with a sentence, not written out for hours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from math import prod

from xdsl.dialects.builtin import ModuleOp

from ..dialects.counts import require_count
from ..dialects.loop import BlockOp, blocks_in
from ..dialects.target import target_of
from .analysis.code_size import copies, copying_loops, lanes, vectors
from .analysis.nest import functions, ranges_of
from .primitive import ScheduleError

MOST_STATEMENTS_CPU = 4096
"""LLVM 20 takes 30 s on a core of a Zen 4 for 16384 copies of a multiply-add that go into one sum. Where lanes are no
power of two, time grows with the square: 27 s for 2048 (see `search.template.limits`), about two minutes for these."""
MOST_STATEMENTS_GPU = 1 << 14
"""Twice the most that random candidates of all named workloads' sketches have there."""

_FEW_ITERATIONS = 1 << 32
"""Iterations that take some seconds, whatever is in them. A choice: one a nanosecond are four seconds."""


@dataclass(frozen=True)
class BuildLimits:
    """The most that a schedule, and the program it makes, may have; ValueError for a limit below 1.

    `statements` are those of straight-line code, with a vector of the machine as one: copies by unrolling and virtual
    threads, times vectors; None: 4096 for a CPU, 16384 for a GPU. `lanes` are elements computed at once, `depth` loops
    around a block, `steps` those of a schedule, `bytes` a kernel's arguments and buffers together; None: what the
    machine has. `overshoot` are the iterations that factors of splits reach for each one that there is, where loops
    have more than 2**32 together.

    Random candidates of all named workloads' sketches have up to 7219 statements on a GPU and 352 on a CPU, 128 lanes,
    20 loops and 102 steps.
    """

    statements: int | None = None
    lanes: int = 4096
    depth: int = 128
    steps: int = 2048
    overshoot: int = 1 << 16
    bytes: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                require_count(field.name, value)

    def require_steps(self, steps: int) -> None:
        """ScheduleError where a schedule is longer than this allows."""
        if steps > self.steps:
            raise self._refusal("steps", f"a schedule of {steps:,} steps")

    def require_depth(self, step: object, module: ModuleOp) -> None:
        """ScheduleError where the block that a step has rewritten is in more loops than this allows."""
        name = getattr(step, "block", None)
        block = next((block for block in _blocks(module) if block.block_name == name), None)
        if block is not None and (depth := len(block.enclosing_loops)) > self.depth:
            raise self._refusal("depth", f"block '{name}' in {depth:,} loops", step)

    def require_code(self, module: ModuleOp) -> None:
        """ScheduleError where loops ask for more code than this allows; counted, so it takes no longer than reading."""
        target = target_of(module)
        most = self.statements or (MOST_STATEMENTS_GPU if target.is_gpu else MOST_STATEMENTS_CPU)
        total = 0
        for block in _blocks(module):
            if (depth := len(block.enclosing_loops)) > self.depth:
                raise self._refusal("depth", f"block '{block.block_name}' in {depth:,} loops")
            self._require_little_overshoot(block)
            if (width := lanes(block)) > self.lanes:
                loops = (x.loop_name for x in block.enclosing_loops if x.loop_kind == "vectorized")
                raise self._refusal("lanes", f"block '{block.block_name}' {_over(loops)} {width:,} elements at once")
            written = copies(block) * vectors(block, target.vector_bytes)
            total += written
            if total > most:
                loops = (x.loop_name for x in copying_loops(block) if x.size > 1)
                what = f"block '{block.block_name}' {_over(loops)} {written:,} statements of straight-line code"
                what = what if written == total else f"{what}, {total:,} with those before,"
                raise self._refusal("statements", what, most=most)

    def _require_little_overshoot(self, block: BlockOp) -> None:
        loops = block.enclosing_loops
        ranges = ranges_of(loops)
        reached = [block.bound[a.name].bounds(ranges)[1] + 1 for a in block.axes]
        shares = [most // axis.extent for most, axis in zip(reached, block.axes, strict=True)]
        overshoot = prod(max(1, share) for share in shares)
        if prod(loop.size for loop in loops) > _FEW_ITERATIONS and overshoot > self.overshoot:
            raise self._refusal(
                "overshoot", f"block '{block.block_name}' in {overshoot:,} iterations for each that it has"
            )

    def _refusal(self, field: str, what: str, step: object = "build", most: int | None = None) -> ScheduleError:
        limit = getattr(self, field) if most is None else most
        return ScheduleError(step, f"{what} would be more than the limit of {limit:,} (BuildLimits.{field})")


USUAL_LIMITS = BuildLimits()
"""The limits where a caller sets none."""


def _blocks(module: ModuleOp) -> Iterator[BlockOp]:
    return (block for func in functions(module) for block in blocks_in(func))


def _over(loops: Iterable[str]) -> str:
    names = [f"'{name}'" for name in loops]
    return f"over {', '.join(names)} as" if names else "as"
