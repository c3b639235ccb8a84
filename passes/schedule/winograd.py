"""Compute a convolution of square windows by Winograd's transforms: fewer multiplications, more additions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp, blocks_in, buffer_type, element_of_buffer
from ...dialects.minimal_filtering import KERNEL, OUTPUTS, Matrices, filtering_of
from ..analysis.nest import block_names, buffer_names, find_block, function_of, functions, only_child
from ..parametric.nest import Nest
from ..parametric.read import read_nests
from ..parametric.sizes import Size, Sizes
from ..primitive import Primitive
from ._staging import insert_alloc, legal_steps, top_level
from ._window import Access, Transforms, Window, find_window

_ELEMENTS = {4: f32, 8: f64}
"""Types that the transforms are exact enough in, by their bytes."""


@dataclass(frozen=True)
class Plan:
    """The convolution, the outermost of its loops, its window, and what this is filtered by."""

    block: BlockOp
    nest: Operation
    window: Window
    matrices: Matrices
    data: SSAValue
    kernel: SSAValue

    @property
    def element(self) -> Attribute:
        """The type of the data, and of all that is made of it."""
        return element_of_buffer(self.data)


@dataclass(frozen=True)
class Winograd(Primitive[Plan]):
    """`for n, co, y, x, ci, ry, rx { block c[n, co, y, x] += data[n, ci, y + ry, x + rx] * kernel[co, ci, ry, rx] }` ->

    `kernel_pack = G g G'`, `data_pack = B' d B` of each tile of data, `bgemm += kernel_pack * data_pack` over `ci` for
    each position in a tile, `inverse = A' m A`, and `c[n, co, y, x] = inverse[y mod m, x mod m, co, tile]`

    For tiles of `tile_size` x `tile_size` results: 2 or 4 for windows of 3x3, 3 or 4 for larger ones. These are cut
    into parts of as many taps, whose products are added up before `A' m A`; the part at `py, px` reads the tile that is
    so many rows and columns further on. Terms are added up in another order, and after they were weighed: with tiles of
    2 about as exactly as before, with others less so (docs/winograd.md has the errors). Tiles that reach beyond the
    data read zeros there.

    Requires: a sum of products of two loads, in fp32 or fp64, without a predicate, in loops of its own that are its
    iterators; square windows of 3x3 and more that move by 1, over one axis of channels, of one group; a kernel with a
    dimension for each of its filters, channels and places in the window.
    """

    name = "lw-winograd"
    block: str
    tile_size: int = 2

    def check(self, module: ModuleOp) -> Plan:
        block = find_block(self, module, self.block)
        kinds = [op.name for op in block.body.block.ops]
        if not block.has_init or kinds != ["lw_loop.load", "lw_loop.load", "arith.mulf", "lw_te.yield"]:
            raise self.error(f"block '{self.block}' must be a sum of products of two loads", at=block)
        if element_of_buffer(block.outputs[0]) not in _ELEMENTS.values() or block.combiner.data != "add":
            raise self.error(f"block '{self.block}' must be a sum of fp32 or fp64", at=block)
        nest = top_level(block)
        loops = [loop.loop_name for loop in block.enclosing_loops]
        if sorted(loops) != sorted(str(e.as_axis()) for e in block.bindings.data) or _holds_others(block):
            raise self.error(
                f"block '{self.block}' must be in loops of its own, one for each iterator: this step comes first",
                at=block,
            )
        if block.conditions or any(load.conditions or load.positions for load in block.loads):
            raise self.error(f"block '{self.block}' must have no predicate", at=block)
        loads = [Access.of(load.indices.data) for load in block.loads]
        found = find_window(block.axes, Access.of(block.write_indices[0]), loads)
        if found is None or found[0].extent < KERNEL:
            raise self.error(
                f"block '{self.block}' must be a convolution of square windows of {KERNEL}x{KERNEL} or more that move "
                f"by 1",
                at=block,
            )
        window, (data, kernel) = found
        matrices = filtering_of(window.extent, self.tile_size)
        if matrices is None:
            known = [str(n) for n in OUTPUTS if filtering_of(window.extent, n) is not None]
            shape = f"{window.extent}x{window.extent}"
            raise self.error(
                f"tile_size must be one of {', '.join(known)} for windows of {shape}, got {self.tile_size}", at=block
            )
        return Plan(block, nest, window, matrices, block.loads[data].buffer, block.loads[kernel].buffer)

    def rewrite(self, plan: Plan) -> None:
        func, block = function_of(plan.block), plan.block
        taken = buffer_names(func) | block_names(func)
        made = Transforms(plan.window, plan.matrices, plan.data, plan.kernel, taken)
        nests = made.write(block.block_name, block.outputs[0])
        for alloc in made.allocs:
            insert_alloc(func, alloc)
        place = plan.nest.parent_block()
        assert place is not None
        for nest in nests:
            place.insert_op_before(nest, plan.nest)
        place.erase_op(plan.nest)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)
        axes = [Axis(a.name, _number(a.extent), a.is_reduce) for a in stage.iterators]
        found = find_window(axes, Access.of(stage.writes[0].indices), [Access.of(load.indices) for load in stage.loads])
        assert found is not None
        window, places = found
        matrices = filtering_of(window.extent, self.tile_size)
        assert matrices is not None
        buffers = [*(stage.loads[place].buffer for place in places), stage.writes[0].buffer]
        types = [buffer_type(_ELEMENTS[b.element_bytes], [_number(n) for n in b.shape], b.scope) for b in buffers]
        data, kernel, out = arguments = Block(arg_types=types).args
        made = Transforms(window, matrices, data, kernel, set(nest.buffers) | nest.stage_names)
        nests = made.write(self.block, out)
        position = nest.root.body.index(nest.top_level(stage))
        stage.take_out()
        read_nests(nest, position, nests, made.allocs, dict(zip(arguments, buffers, strict=True)))

    def describe(self) -> str:
        return f"Compute {self.block} by Winograd's transforms of tiles of {self.tile_size}x{self.tile_size} results."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Winograd, ...]:
        steps = [cls(b.block_name, n) for func in functions(module_op) for b in blocks_in(func) for n in OUTPUTS]
        return legal_steps(steps, module_op)


def _holds_others(block: BlockOp) -> bool:
    """True where a loop around a block holds more than the next one, or is marked."""
    return any(only_child(loop) is None or loop.loop_kind != "serial" or loop.notes for loop in block.enclosing_loops)


def _number(size: Size) -> int:
    """An extent that is known, as that of a nest without steps is."""
    assert isinstance(size, int)
    return size
