"""Anchors, which are reductions with data reuse: their axes, operands, and what surrounds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, SSAValue

from ...dialects.attributes import Axis
from ...dialects.buffers import buffer_shape
from ...dialects.index import Atom, Div, IndexExpr, atom_axes
from ...dialects.loop import BlockOp, LoadOp, blocks_in
from ...passes.analysis.access import consumers, is_argument, writers
from ...passes.analysis.nest import buffer_name, find_block
from ...passes.analysis.slides import Slide, slides_of
from ...passes.analysis.views import is_view


@dataclass(frozen=True)
class Operand:
    """One load of the block: its buffer, the iterators (of extent above 1) its indices use, and its indices.

    `slides` are its dimensions that windows move along.
    """

    load: LoadOp
    buffer: SSAValue
    axes: tuple[str, ...]
    indices: tuple[IndexExpr, ...]
    slides: tuple[Slide, ...] = ()

    @property
    def name(self) -> str:
        return buffer_name(self.buffer)

    @property
    def reads_plain(self) -> bool:
        """True where each index is an axis or a number: no strides, windows or groups."""
        return all(e.is_constant or e.as_axis() is not None for e in self.indices)

    def steps_along(self, axis: str) -> bool:
        """True where moving by one along `axis` moves by one element, and along nothing else."""
        return _steps_last(self.indices, axis)

    def is_next_along(self, axis: str) -> bool:
        """The same where dimensions of one element, as those of an image of one pixel, may come behind."""
        sized = [e for e, n in zip(self.indices, buffer_shape(self.buffer), strict=True) if n > 1]
        return bool(sized) and _steps_last(sized, axis)


@dataclass(frozen=True)
class Anchor:
    """A reduction block, with its iterators of extent above 1."""

    block: str
    spatial: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    operands: tuple[Operand, ...]
    output: str
    element: Attribute
    epilogue: str | None
    pads: tuple[str, ...]

    @property
    def has_windows(self) -> bool:
        """True where windows of several taps slide over an operand."""
        return any(slide.tap.extent > 1 for operand in self.operands for slide in operand.slides)

    def wide_operand(self, steps: Callable[[Operand, str], bool] = Operand.steps_along) -> Operand | None:
        """The one of two operands that moves along more results, where both are contiguous along the one reduce axis.

        None for other reductions, and where it moves along no result alone: there are no dot products of its rows.
        `steps` says of what is contiguous.
        """
        if len(self.operands) != 2 or len(self.reduce) != 1 or self.pads:
            return None
        if not all(steps(o, self.reduce[0].name) for o in self.operands):
            return None
        wide = max(self.operands, key=lambda o: prod(a.extent for a in self.spatial if a.name in o.axes))
        return wide if self.moved_alone(wide) else None

    def kept_results(self, operand: Operand) -> int:
        """Results that each element of an operand is used for: those that it does not move along."""
        return prod(a.extent for a in self.spatial if a.name not in operand.axes)

    def moved_alone(self, operand: Operand) -> list[Axis]:
        """The axes of the results that one of two operands moves along, and the other does not."""
        (other,) = (o for o in self.operands if o is not operand)
        return [a for a in self.spatial if a.name in operand.axes and a.name not in other.axes]

    def shared_by_all(self, axis: str) -> bool:
        """True where every operand moves along `axis`: no operand is reused over it."""
        return all(axis in operand.axes for operand in self.operands)

    def run_of(self, axis: str) -> int:
        """Neighbours along an axis for which an operand stays where it is, as those of a group; 1 without any.

        A convolution in groups reads its data at `ff floordiv 16 * 8 + rc`: 16 filters read the same 8 channels.
        """
        runs = [_run(operand, axis) for operand in self.operands if axis in operand.axes]
        return max(runs, default=1)

    def axis_of_runs(self, shortest: int) -> str:
        """The axis of filters in groups of at least `shortest`; an empty name where there is none."""
        found = [a.name for a in self.spatial if self.shared_by_all(a.name) and self.run_of(a.name) >= shortest]
        return found[0] if found else ""

    def within_runs(self, axis: str) -> Anchor:
        """The anchor as tiles see it that do not leave a run along an axis: what stays there does not move along it."""
        operands = tuple(
            replace(o, axes=tuple(n for n in o.axes if n != axis)) if _run(o, axis) > 1 else o for o in self.operands
        )
        return replace(self, operands=operands)


def _steps_last(indices: Sequence[IndexExpr], axis: str) -> bool:
    *outer, last = indices
    return last.coefficient(axis) == 1 and last.is_linear_in(axis) and all(axis not in e.axes() for e in outer)


def find_anchor(module: ModuleOp, name: str, unit: str = "") -> Anchor | None:
    """The block as an anchor; None where it is no sum-like reduction at plain iterators with data reuse.

    The iterator named `unit` is one of the anchor's even where its extent is 1, as it is to be padded.
    None also where it reads where data say, of which no tile is known, and for a stage of several over rows, such as
    those of softmax: others read each element of the row, too.
    """
    block = find_block(None, module, name)
    if block.combiner.data in ("none", "custom") or len(block.outputs) != 1:
        return None
    write = [e.as_axis() for e in block.write_indices[0]]
    sizes = {a.name: a for a in block.axes if a.extent > 1 or a.name == unit}
    if any(n is None for n in write):
        return None
    spatial = tuple(sizes[n] for n in write if n in sizes)
    reduce = tuple(a for a in sizes.values() if a.reduce)
    operands = tuple(_operand(load, sizes, block.axes) for load in block.loads)
    if not spatial or not reduce or not operands or reads_by_data(block):
        return None
    if all(a.name in operand.axes for a in spatial for operand in operands):
        return None
    if any(len(o.axes) == len(spatial) + len(reduce) and _read_elsewhere(module, name, o.buffer) for o in operands):
        return None
    output = block.outputs[0]
    assert isinstance(output.type, MemRefType)
    return Anchor(
        name,
        spatial,
        reduce,
        operands,
        buffer_name(output),
        output.type.element_type,
        epilogue_of(block),
        tuple(pads_of(block)),
    )


def anchor_of(module: ModuleOp, name: str) -> Anchor:
    """The block, which is known to be an anchor, as the steps so far have left it."""
    found = find_anchor(module, name)
    assert found is not None
    return found


def _read_elsewhere(module: ModuleOp, name: str, buffer: SSAValue) -> bool:
    """True where another block than the one named reads a buffer."""
    others = (block for block in blocks_in(module) if block.block_name != name)
    return any(load.buffer is buffer for block in others for load in block.loads)


def reads_by_data(block: BlockOp) -> bool:
    """True for a block that reads a buffer where data say."""
    return any(load.positions for load in block.loads)


def anchors_in(module: ModuleOp) -> list[Anchor]:
    """Return the anchors in program order."""
    found = (find_anchor(module, block.block_name) for block in list(blocks_in(module)))
    return [anchor for anchor in found if anchor is not None]


def _run(operand: Operand, axis: str) -> int:
    """Neighbours along an axis for which the indices of an operand are the same; 1 where any but divides it."""
    divisors = {_divisor(atom, axis) for e in operand.indices for atom, _ in e.terms if axis in atom_axes(atom)}
    return gcd(*divisors)


def _divisor(atom: Atom, axis: str) -> int:
    return atom.divisor if isinstance(atom, Div) and atom.expr.as_axis() == axis else 1


def _operand(load: LoadOp, sizes: dict[str, Axis], axes: Sequence[Axis]) -> Operand:
    indices = load.indices.data
    used = {n for e in indices for n in e.axes()}
    return Operand(load, load.buffer, tuple(n for n in sizes if n in used), indices, slides_of(indices, axes))


def epilogue_of(block: BlockOp) -> str | None:
    """The one block that reads the result, element by element."""
    found = consumers(block)
    if len(found) != 1 or is_argument(block.outputs[0]):
        return None
    reader = found[0]
    loads = [load for load in reader.loads if load.buffer is block.outputs[0]]
    if reader.is_reduction or any(load.conditions for load in loads):
        return None
    first = loads[0].indices.data
    plain = [e.as_axis() for e in first]
    one = [e.is_constant or e.as_axis() is not None for e in first]
    if any(load.indices.data != first for load in loads) or not all(one):
        return None
    named = [n for n in plain if n is not None]
    extents = {a.name: a.extent for a in reader.axes}
    covered = {n for n in named if extents[n] > 1}
    everything = {a.name for a in reader.axes if a.extent > 1}
    return reader.block_name if covered == everything and len(set(named)) == len(named) else None


def pads_of(block: BlockOp) -> list[str]:
    """Blocks that write what is loaded, and that alone, by moving elements under a mask, and are read here only."""
    pads = []
    for load in block.loads:
        for writer in writers(load.buffer):
            if writer is block or writer.is_reduction or is_argument(load.buffer) or len(consumers(writer)) != 1:
                continue
            if is_view(writer):
                continue
            if len(writer.outputs) == 1 and any(x.conditions for x in writer.loads) and not reads_by_data(writer):
                pads.append(writer.block_name)
    return list(dict.fromkeys(pads))
