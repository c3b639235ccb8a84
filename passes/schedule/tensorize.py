"""Let a matrix instruction do what a nest of loops says."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from ...dialects.intrinsics import find_intrinsic, intrinsics
from ...dialects.loop import ForOp, blocks_in, loops_in
from ...dialects.target import target_of
from ..analysis.matrix_product import TENSORIZE, Mismatch, match_product
from ..analysis.nest import find_block, find_loop, functions
from ..analysis.tile_product import match_tiles
from ..open_number import OpenNumber, OpenText
from ..parametric.nest import Nest
from ..parametric.sizes import Size, Sizes
from ..primitive import Primitive
from ._staging import legal_steps


@dataclass(frozen=True)
class Tensorize(Primitive[ForOp]):
    """`for lane in 32 threadIdx.x { ... for h in 2 { for x in 2 { for k in 16 { block c } } } }` -> the same, with

    `for h in 2 annotated {tensorize = "mma.m16n8k16.f16"} { ... }`

    A note, by which a target that has the intrinsic writes one instruction for the nest in `loop`; others run its
    loops. `lw.intrinsics(target)` names those there are. `Schedule.tensorize` with numbers of warps and of instructions
    makes the nest of plain steps first.

    Requires: on CUDA, the intrinsic's capability; a sum of products of two loads, of the intrinsic's types, from
    shared memory to registers, without a predicate; in `loop` exactly the digits of a thread's sums, then k, all
    serial; around it the lanes of a warp on threadIdx.x; elements of the factors that depend on their rows, columns
    and k alone, in rows of 16 bytes. Lanes may be two loops, of 8 on threadIdx.y and of 4 on threadIdx.x, with the
    warps of warp groups on threadIdx.z; then the first factor of 16-bit types may be in scope local, where each thread
    has the elements that it holds of it. On a CPU, its features; no predicate and no vectorized loop around; in `loop`
    those of `c` as the intrinsic holds it, then k, all serial; each matrix in memory as it is held. A loop is marked
    once.
    """

    name = "lw-tensorize"
    block: str
    loop: str
    intrinsic: str

    def check(self, module: ModuleOp) -> ForOp:
        block = find_block(self, module, self.block)
        loop = find_loop(self, block, self.loop)
        intrinsic, target = find_intrinsic(self.intrinsic), target_of(module)
        if intrinsic is None:
            known = ", ".join(x.name for x in intrinsics(None if target.kind == "opencl" else target)) or "none"
            raise self.error(f"no intrinsic is called '{self.intrinsic}'; there are {known}", at=block)
        why = intrinsic.why_not(target) if target.kind == intrinsic.target else None
        if why is not None:
            raise self.error(f"'{self.intrinsic}' {why}", at=block)
        if loop.notes:
            raise self.error(f"loop '{self.loop}' must carry no annotation, it has {', '.join(loop.notes)}", at=loop)
        try:
            (match_tiles if intrinsic.target == "llvm" else match_product)(block, loop, intrinsic)
        except Mismatch as mismatch:
            raise self.error(f"{mismatch}", at=block) from None
        return loop

    def rewrite(self, plan: ForOp) -> None:
        plan.annotate(TENSORIZE, StringAttr(self.intrinsic))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        """Note the instruction's multiply-adds on the loop: no extent changes."""
        nest.loop(self.block, self.loop).notes[TENSORIZE] = self._multiply_adds(sizes)

    def _multiply_adds(self, sizes: Sizes) -> Size:
        """Multiply-adds of one instruction, whose columns may be an open number in its name."""
        text = OpenText.of(self.intrinsic)
        if not text.names:
            found = find_intrinsic(self.intrinsic)
            assert found is not None
            return found.multiply_adds
        before, behind = text.literals
        (name,) = text.names
        one = next(x for x in intrinsics() if x.name == f"{before}{x.n}{behind}")
        return sizes.of(OpenNumber(name, one.n)) * (one.m * one.k)

    def describe(self) -> str:
        return f"Compute loop {self.loop} of {self.block} by the matrix instruction {self.intrinsic}."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Tensorize, ...]:
        target = target_of(module_op)
        return legal_steps(
            [
                cls(block.block_name, loop.loop_name, intrinsic.name)
                for func in functions(module_op)
                for loop in loops_in(func)
                if loop.loop_kind == "serial" and not loop.notes
                for block in blocks_in(loop)
                for intrinsic in intrinsics(target)
            ],
            module_op,
        )
