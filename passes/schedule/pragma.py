"""Tell code generation how far it may unroll what is below a loop, or how many thread blocks are to fit."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from ...dialects.loop import ForOp, blocks_in
from ...dialects.loop_notes import BLOCKS_PER_SM
from ..analysis.nest import find_block, find_loop, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive

MOST_BLOCKS_PER_SM = 32
"""Resident thread blocks of a multiprocessor (CUDA C++ Programming Guide, compute capabilities)."""


@dataclass(frozen=True)
class Plan:
    """The loop and its new annotations."""

    loop: ForOp
    notes: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Pragma(Primitive[Plan]):
    """`for i in n { S }` -> `for i in n annotated {auto_unroll_max_step = 64 : i64, unroll_explicit = 1 : i64} { S }`

    `auto_unroll_max_step`: inner loops below are unrolled while the body stays within so many steps. `unroll_explicit`:
    1 to replicate the code here, 0 to leave that to the compiler behind. `blocks_per_sm`, on a loop of thread blocks:
    CUDA's compiler gives a thread so few registers that so many blocks fit a multiprocessor at once.

    Requires: at least one of them; a step count of at least 0; 0 or 1 for `unroll_explicit`; a loop bound to blockIdx
    and 1 to 32 for `blocks_per_sm`.
    """

    name = "lw-pragma"
    block: str
    loop: str
    auto_unroll_max_step: int | None = None
    unroll_explicit: int | None = None
    blocks_per_sm: int | None = None

    def check(self, module: ModuleOp) -> Plan:
        loop = find_loop(self, find_block(self, module, self.block), self.loop)
        given = {key: getattr(self, key) for key in ("auto_unroll_max_step", "unroll_explicit", BLOCKS_PER_SM)}
        if all(value is None for value in given.values()):
            fix = Pragma(self.block, self.loop, auto_unroll_max_step=64)
            raise self.error(
                "auto_unroll_max_step, unroll_explicit or blocks_per_sm must be given, got none", fix, loop
            )
        for key, value in given.items():
            if value is not None and not isinstance(value, int):
                raise self.error(f"{key} must be a whole number, got {value!r}", at=loop)
        if self.auto_unroll_max_step is not None and self.auto_unroll_max_step < 0:
            raise self.error(f"auto_unroll_max_step must be at least 0, got {self.auto_unroll_max_step}", at=loop)
        if self.unroll_explicit not in (None, 0, 1):
            raise self.error(f"unroll_explicit must be 0 or 1, got {self.unroll_explicit}", at=loop)
        self._check_blocks(loop)
        return Plan(loop, tuple((key, value) for key, value in given.items() if value is not None))

    def _check_blocks(self, loop: ForOp) -> None:
        if self.blocks_per_sm is None:
            return
        if not 1 <= self.blocks_per_sm <= MOST_BLOCKS_PER_SM:
            raise self.error(f"blocks_per_sm must be 1 to {MOST_BLOCKS_PER_SM}, got {self.blocks_per_sm}", at=loop)
        if not loop.loop_kind.startswith("blockIdx"):
            rule = f"blocks_per_sm is for a loop bound to blockIdx, '{self.loop}' is {loop.loop_kind}"
            raise self.error(rule, at=loop)

    def rewrite(self, plan: Plan) -> None:
        for key, value in plan.notes:
            plan.loop.annotate(key, IntegerAttr(value, i64))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        notes = nest.loop(self.block, self.loop).notes
        if self.auto_unroll_max_step is not None:
            notes["auto_unroll_max_step"] = sizes.of(self.auto_unroll_max_step)
        if self.unroll_explicit is not None:
            notes["unroll_explicit"] = sizes.of(self.unroll_explicit)
        if self.blocks_per_sm is not None:
            notes[BLOCKS_PER_SM] = sizes.of(self.blocks_per_sm)

    def describe(self) -> str:
        if self.blocks_per_sm is not None:
            return f"Let {self.blocks_per_sm} thread blocks of {self.block} fit a multiprocessor."
        steps = self.auto_unroll_max_step
        if not steps:
            return f"Leave the loops of {self.block} below {self.loop} to the compiler to unroll."
        return f"Unroll loops of {self.block} below {self.loop} up to {steps} steps."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Pragma, ...]:
        nests = (op for func in functions(module_op) for op in func.body.block.ops if isinstance(op, ForOp))
        return tuple(
            cls(block.block_name, loop.loop_name, limit, 1)
            for loop in nests
            if (block := next(blocks_in(loop), None)) is not None
            for limit in (16, 64, 512)
        )
