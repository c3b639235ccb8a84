"""The computation that a template schedules: an operator alone, or one of a network with what is fused around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from .backends.context import create_context
from .dialects.loop import BlockOp, blocks_in
from .dialects.target import Target
from .passes.analysis.access import consumers, is_argument
from .passes.analysis.nest import buffer_name
from .schedule import Schedule
from .search.structure.anchor import epilogue_of, pads_of
from .search.template.config import Config
from .search.template.knobs.knob import ConfigError
from .te import Tensor, create_module

Workload = Sequence[Tensor] | ModuleOp | str
"""Te tensors, inputs and outputs, or a te-level module, or the text of one."""


@dataclass(frozen=True)
class Computation:
    """A schedule just begun: the block to tile, its loops by name, and what is around it.

    `operands` are the buffers that the block reads, in order; `pads` the blocks that pad one of them; `epilogue` is the
    block that takes its results further, element by element, if there is one. `behind` is the block that reads them in
    another order instead, from memory. `written` is the order in which results are written that nothing takes further,
    where it is not that of the loops.
    """

    sch: Schedule
    block: str
    loops: dict[str, Any]
    operands: tuple[str, ...]
    pads: tuple[str, ...]
    epilogue: str | None
    written: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()

    def write_back(self, block: str) -> str:
        """Let `block` add up in registers. Returns the block that writes results to memory, to be put at a loop."""
        if block == self.block and self.epilogue is not None:
            self.sch.set_scope(block, "local")
            return self.epilogue
        out = str(self.sch.cache_write(block, block, "local"))
        if self.written:
            found = {str(loop) for loop in self.sch.get_loops(out)}  # dimensions of one element have none
            self.sch.reorder(out, *(name for name in self.written if name in found))
        return out

    def lay_out_sums(self, loops: Sequence[str]) -> None:
        """Let the sums of the block lie in the order of these loops, of which the last one is contiguous."""
        if [name for name in self.loops if name in loops] != list(loops):
            buffer = buffer_name(_reduction(self.sch).outputs[0])
            self.sch.transform_layout(self.block, buffer, list(loops))

    def inline_pads(self) -> None:
        """Compute padding where it is read."""
        for pad in self.pads:
            self.sch.compute_inline(pad)


def start(cfg: Config, workload: Workload) -> Computation:
    """Begin to schedule a computation with one reduction: all else but padding and the last block is inlined.

    ConfigError where there is another number of reductions, or their results go elsewhere than to one block.
    """
    sch = _begun(workload, cfg.target).copy() if isinstance(workload, str) else _inlined(workload, cfg.target)
    block = _reduction(sch)
    pads = pads_of(block)
    epilogue, behind = None, list[str]()
    if not is_argument(block.outputs[0]):
        epilogue = epilogue_of(block)
        behind = [] if epilogue is not None else [reader.block_name for reader in consumers(block)]
        if len(behind) > 1:
            raise ConfigError(f"the results of '{block.block_name}' are read by several blocks: {', '.join(behind)}")
    name = block.block_name
    operands = dict.fromkeys(buffer_name(load.buffer) for load in block.loads)
    loops = {str(x): x for x in sch.get_loops(name)}
    return Computation(sch, name, loops, tuple(operands), tuple(pads), epilogue, behind=tuple(behind))


def _reduction(sch: Schedule) -> BlockOp:
    found = [block for block in blocks_in(sch.module) if block.is_reduction]
    if len(found) != 1:
        raise ConfigError(f"a shipped template takes computations with one reduction, got {len(found)}")
    return found[0]


def from_shapes(make: Callable[..., Sequence[Tensor]]) -> Callable[..., Workload]:
    """Let a function from shapes to tensors also take what a network made of its operator, as the text of a module."""

    @wraps(make)
    def workload(*args: Any) -> Workload:
        if len(args) == 1 and isinstance(args[0], str):
            return args[0]
        return _text_of(make, tuple(tuple(x) if isinstance(x, list) else x for x in args))

    return workload


@lru_cache(maxsize=64)
def _text_of(make: Callable[..., Sequence[Tensor]], args: tuple[Any, ...]) -> str:
    """Return what a function makes of shapes as the text of a module, which is made once for all configs."""
    return str(create_module(make(*args)))


@lru_cache(maxsize=64)
def _begun(text: str, target: Target | None) -> Schedule:
    """Return the schedule of a text's module with all inlined that a template leaves alone, to be copied."""
    return _inlined(Parser(create_context(), text).parse_module(), target)


def _inlined(workload: Sequence[Tensor] | ModuleOp, target: Target | None) -> Schedule:
    """Begin a schedule, and inline all but the reduction, its padding, and blocks that write results."""
    sch = Schedule(workload, target=target)
    block = _reduction(sch)
    kept = {block.block_name, *pads_of(block)}
    for other in list(blocks_in(sch.module)):
        if other.block_name not in kept and not is_argument(other.outputs[0]):
            sch.compute_inline(other.block_name)
    return sch
