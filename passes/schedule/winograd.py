"""Compute a convolution of square windows by Winograd's transforms: fewer multiplications, more additions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp, blocks_in, element_of_buffer
from ...dialects.minimal_filtering import KERNEL, OUTPUTS, Matrices, filtering_of
from ..analysis.nest import block_names, buffer_names, function_of, functions
from ..parametric.nest import Nest
from ..parametric.sizes import Sizes
from ..primitive import Primitive
from ._staging import legal_steps
from ._sums_of_products import Made, put_in_place, replay_in_place, require_sum_of_products
from ._window import Access, Transforms, Window, find_window


@dataclass(frozen=True)
class Plan:
    """The convolution, its window, and what this is filtered by."""

    block: BlockOp
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
    so many rows and columns further on. Of volumes each plane is cut into tiles, and the taps along planes, of any
    number, are parts, too. The pixels that a dilated window sees are every so many: each phase of them has tiles of its
    own. Terms are added up in another order, and after they were weighed: with tiles of 2 about as
    exactly as before, with others less so (docs/winograd.md has the errors). Tiles that reach beyond the data read
    zeros there.

    Requires: a sum of products of two loads, in fp32 or fp64, without a predicate, in loops of its own that are its
    iterators; windows that move by 1, dilated or not, square along the last two axes, 3x3 and more, over one axis of
    channels, of one group; a kernel with a dimension for each of its filters, channels and places in the window.
    """

    name = "lw-winograd"
    block: str
    tile_size: int = 2

    def check(self, module: ModuleOp) -> Plan:
        block = require_sum_of_products(self, module, self.block)
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
        return Plan(block, window, matrices, block.loads[data].buffer, block.loads[kernel].buffer)

    def rewrite(self, plan: Plan) -> None:
        block, func = plan.block, function_of(plan.block)
        made = Transforms(plan.window, plan.matrices, plan.data, plan.kernel, buffer_names(func) | block_names(func))
        put_in_place(block, (made.write(block.block_name, block.outputs[0]), made.allocs))

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        stage = nest.stage(self.block)

        def made_of(axes: tuple[Axis, ...], read: Sequence[SSAValue], out: SSAValue) -> Made:
            accesses = [Access.of(load.indices) for load in stage.loads]
            found = find_window(axes, Access.of(stage.writes[0].indices), accesses)
            assert found is not None
            window, (data, kernel) = found
            matrices = filtering_of(window.extent, self.tile_size)
            assert matrices is not None
            made = Transforms(window, matrices, read[data], read[kernel], set(nest.buffers) | nest.stage_names)
            return made.write(self.block, out), made.allocs

        replay_in_place(nest, stage, made_of)

    def describe(self) -> str:
        return f"Compute {self.block} by Winograd's transforms of tiles of {self.tile_size}x{self.tile_size} results."

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[Winograd, ...]:
        steps = [cls(b.block_name, n) for func in functions(module_op) for b in blocks_in(func) for n in OUTPUTS]
        return legal_steps(steps, module_op)
