"""Schedules of Winograd convolutions, shared by their templates: two chains of transforms around a batched product.

The transforms are computed tile by tile, every position of a tile unrolled, so that products with zeros and ones are
gone. The product over channels, one for each position, is tiled as any other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from ..backends.context import create_context
from ..computation import Computation, Workload
from ..dialects.loop import BlockOp, blocks_in
from ..dialects.target import Target
from ..passes.analysis.access import is_argument, writers
from ..passes.analysis.nest import buffer_name, find_block
from ..schedule import Schedule
from ..search.template.config import Config
from ..search.template.knobs.knob import ConfigError
from ..search.template.operator import TemplateOperator
from ..search.template.registry import register_operator
from ..te import ShapeError
from ..topi.arguments import Ints, spread
from . import _cpu, _gpu, _mali
from ._operator import Make, register_templates

KERNEL, ROWS, PACK, PRODUCT, INVERSE_ROWS, INVERSE, OUTPUT = (
    "kernel_pack",
    "data_rows",
    "data_pack",
    "bgemm",
    "inverse_rows",
    "inverse",
    "conv2d_winograd",
)
"""The stages of `topi.nn.conv2d_winograd_nchw` and `conv2d_winograd_nhwc`, in order."""
POSITIONS = ("eps", "nu")
THREADS = (32, 64, 128, 256)
"""Threads of a block that transforms, a tile of a channel each: few, as each holds its tile in registers."""


@dataclass(frozen=True)
class Stages:
    """A Winograd convolution to schedule: `final` writes its results, `pad` the data that tiles are cut from, if any.

    `size` is the extent of the output's tiles; `transforms_kernel` whether the filters come untransformed.
    """

    sch: Schedule
    final: str
    pad: str | None
    size: int
    transforms_kernel: bool


def begin(cfg: Config, workload: Workload) -> Stages:
    """Begin to schedule a Winograd convolution, with what is around its stages inlined.

    ConfigError where the computation is none.
    """
    sch = _begun(str(workload), cfg.target).copy()
    blocks = {block.block_name: block for block in blocks_in(sch.module)}
    return Stages(sch, _final(sch.module), _pad(blocks[ROWS]), blocks[INVERSE].axes[0].extent, KERNEL in blocks)


@lru_cache(maxsize=64)
def _begun(text: str, target: Target | None) -> Schedule:
    sch = Schedule(Parser(create_context(), text).parse_module(), target=target)
    blocks = {block.block_name: block for block in blocks_in(sch.module)}
    missing = [name for name in (ROWS, PACK, PRODUCT, INVERSE_ROWS, INVERSE, OUTPUT) if name not in blocks]
    if missing:
        raise ConfigError(f"a Winograd template takes a Winograd convolution, got a computation without '{missing[0]}'")
    kept = {"kernel_rows", KERNEL, ROWS, PACK, PRODUCT, INVERSE_ROWS, INVERSE, _pad(blocks[ROWS])}
    for block in list(blocks_in(sch.module)):
        if block.block_name not in kept and not is_argument(block.outputs[0]):
            sch.compute_inline(block.block_name)
    return sch


def _pad(rows: BlockOp) -> str | None:
    """The block that writes the data that tiles are cut from; None where that is an argument."""
    return next((block.block_name for load in rows.loads for block in writers(load.buffer)), None)


def _final(module: ModuleOp) -> str:
    """The one block that the inverse transform goes to; ConfigError where there are others that write results."""
    inverse = find_block(None, module, INVERSE)
    found = [b.block_name for b in blocks_in(module) if any(load.buffer is inverse.outputs[0] for load in b.loads)]
    if len(found) != 1:
        raise ConfigError(f"the results of '{OUTPUT}' must go to one block, got {len(found)}")
    return found[0]


# -- CPU ------------------------------------------------------------------------------------------------------------


def for_cpu(cfg: Config, workload: Workload, channels_last: bool) -> Schedule:
    """Vectors of channels in every stage; data in NCHW is padded, or copied, with channels last.

    Knobs: those of `_cpu.tiled` for the product, and the channels that a transform has in a vector.
    """
    made = begin(cfg, workload)
    sch = made.sch
    loops = {str(x): x for x in sch.get_loops(PACK)}
    _, outputs, *_ = order = _output_loops(sch, made.final, channels_last)
    cfg.define_split("tile_data", loops["c"], num_outputs=2, max_factor=_cpu.MOST_COLUMNS)
    cfg.define_split("tile_output", outputs, num_outputs=2, max_factor=_cpu.MOST_COLUMNS)
    if cfg.is_fallback:
        cfg.fallback_split("tile_data", [None, 16])
        cfg.fallback_split("tile_output", [None, 16])
    product = _product(made, row="p", column="co")
    if not channels_last:
        _channels_last(made)
    elif made.pad is not None:
        sch.parallel(made.pad, sch.fuse(made.pad, *sch.get_loops(made.pad)[:2]))
    _cpu.tiled(cfg, product, outer=POSITIONS, row="p", column="co", reduce=("ci",))
    if made.transforms_kernel:
        _kernel_on_cpu(sch)
    _data_on_cpu(cfg, sch, loops)
    _output_on_cpu(cfg, made, order, channels_last)
    return sch


def _product(made: Stages, row: str, column: str) -> Computation:
    """The batched product as a computation to tile, its results written with `column` last."""
    sch = made.sch
    loops = {str(x): x for x in sch.get_loops(PRODUCT)}
    block = find_block(None, sch.module, PRODUCT)
    operands = tuple(dict.fromkeys(buffer_name(load.buffer) for load in block.loads))
    return Computation(sch, PRODUCT, loops, operands, (), None, (*POSITIONS, row, column))


def _channels_last(made: Stages) -> None:
    """Lay out padded data, transformed data and products with channels innermost."""
    sch = made.sch
    data = buffer_name(find_block(None, sch.module, ROWS).loads[0].buffer)
    writer = made.pad if made.pad is not None else str(sch.cache_read(ROWS, data, "global"))
    n, c, y, x = sch.get_loops(writer)
    sch.transform_layout(writer, writer, [str(n), str(y), str(x), str(c)])
    sch.parallel(writer, sch.fuse(writer, n, c))
    for block, channel in ((PACK, "c"), (PRODUCT, "co")):
        if any(axis.name == channel and axis.extent > 1 for axis in find_block(None, sch.module, block).axes):
            sch.transform_layout(block, block, [*POSITIONS, "p", channel])


def _kernel_on_cpu(sch: Schedule) -> None:
    """Transform the filters, a window at a time."""
    loops = {str(x): x for x in sch.get_loops(KERNEL)}
    sch.reorder(KERNEL, loops["ci"], loops["co"], *(loops[name] for name in POSITIONS))
    _tile_by_tile(sch, KERNEL, [loops[name] for name in POSITIONS], ["kernel_rows"], loops["co"])
    sch.parallel(KERNEL, loops["ci"])


def _data_on_cpu(cfg: Config, sch: Schedule, loops: dict[str, Any]) -> None:
    """Transform the data, a tile at a time for a vector of channels."""
    around, lanes = cfg["tile_data"].apply(sch, PACK, loops["c"])
    inside = [loops[name] for name in POSITIONS]
    sch.reorder(PACK, loops["p"], around, *inside, lanes)
    _tile_by_tile(sch, PACK, inside, [ROWS], around, cfg["tile_data"].size[-1])
    sch.vectorize(PACK, lanes)
    sch.parallel(PACK, loops["p"])


def _output_loops(sch: Schedule, final: str, channels_last: bool) -> tuple[Any, Any, Any, Any]:
    """The loops over images, channels, rows and columns of the output."""
    n, *rest = sch.get_loops(final)
    y, x, f = rest if channels_last else (*rest[1:], rest[0])
    return n, f, y, x


def _output_on_cpu(cfg: Config, made: Stages, loops: tuple[Any, Any, Any, Any], channels_last: bool) -> None:
    """Transform back, a tile at a time for a vector of channels, and write with what is fused behind."""
    sch, final = made.sch, made.final
    n, f, y, x = loops
    around, lanes = cfg["tile_output"].apply(sch, final, f)
    (y, y_inner), (x, x_inner) = (sch.split(final, loop, [None, made.size]) for loop in (y, x))
    inside = [y_inner, x_inner]
    sch.reorder(final, n, y, x, around, *((*inside, lanes) if channels_last else (lanes, *inside)))
    width = cfg["tile_output"].size[-1]
    _tile_by_tile(sch, final, inside if channels_last else [y_inner], [INVERSE, INVERSE_ROWS], around, width)
    sch.vectorize(final, lanes if channels_last else x_inner)
    sch.parallel(final, sch.fuse(final, n, y))


def _tile_by_tile(
    sch: Schedule, block: str, inside: Sequence[Any], members: Sequence[str], at: Any, lanes: Any = 1
) -> None:
    """Unroll the positions of a tile, and compute at a loop what the tile needs of earlier stages, unrolled too.

    Of those, the innermost loop is a vector where there is more than one of `lanes`.
    """
    for loop in inside:
        sch.unroll(block, loop)
    for member in members:
        sch.compute_at(member, at)
        sch.set_scope(member, "local")
        loops = sch.get_loops(member)
        own = loops[[str(loop) for loop in loops].index(str(at)) + 1 :]  # loops beside may have the same names
        if lanes != 1:
            sch.vectorize(member, own.pop())
        for loop in own:
            sch.unroll(member, loop)


# -- GPU ------------------------------------------------------------------------------------------------------------


def for_gpu(
    cfg: Config, workload: Workload, channels_last: bool, tiled: Callable[..., Schedule] = _gpu.tiled
) -> Schedule:
    """A thread for each tile of a channel that is transformed; the product as `tiled` does it.

    Knobs: those of `tiled`, and the threads of a block that transforms.
    """
    made = begin(cfg, workload)
    sch = made.sch
    cfg.define_knob("transform_threads", [n for n in THREADS if n <= _most_threads(cfg.target)])
    if cfg.is_fallback:
        cfg["transform_threads"] = min(128, _most_threads(cfg.target))
    spatial = ("p", "co") if channels_last else ("co", "p")
    product = _product(made, *spatial)
    if made.pad is not None:
        sch.compute_inline(made.pad)
    tiled(cfg, product, spatial=spatial, reduce=("ci",), outer=POSITIONS)
    chains = {PACK: [ROWS], KERNEL: ["kernel_rows"]} if made.transforms_kernel else {PACK: [ROWS]}
    for block, members in chains.items():
        *inside, first, second = sch.get_loops(block)
        _a_thread_each(cfg, sch, block, [first, second], inside, members)
    n, f, y, x = _output_loops(sch, made.final, channels_last)
    (y, y_inner), (x, x_inner) = (sch.split(made.final, loop, [None, made.size]) for loop in (y, x))
    tiles = [n, y, x, f] if channels_last else [n, f, y, x]
    _a_thread_each(cfg, sch, made.final, tiles, [y_inner, x_inner], [INVERSE, INVERSE_ROWS])
    return sch


def _most_threads(target: Target | None) -> int:
    return (target.max_threads_per_block if target else 0) or THREADS[-1]


def _a_thread_each(
    cfg: Config, sch: Schedule, block: str, tiles: Sequence[Any], inside: Sequence[Any], members: Sequence[str]
) -> None:
    """Transform with a thread for each tile."""
    sch.reorder(block, *tiles, *inside)
    around, thread = sch.split(block, sch.fuse(block, *tiles), [None, cfg["transform_threads"].val])
    sch.bind(block, around, "blockIdx.x")
    sch.bind(block, thread, "threadIdx.x")
    _tile_by_tile(sch, block, inside, members, thread)


# -- the templates of an operator -----------------------------------------------------------------------------------


def winograd(channels_last: bool) -> Callable[[Make], Callable[..., Workload]]:
    """Register a Winograd convolution, and its templates under its name with `_cpu`, `_gpu` and `_mali`.

    The decorated function also takes the text of a module: the same stages, with anything element by element behind.
    """
    columns = "p co" if channels_last else "co p"

    def register(make: Make) -> Callable[..., Workload]:
        register_operator(TemplateOperator(make.__name__, make, f"eps nu {columns} ci"))
        return register_templates(
            make,
            cpu=lambda cfg, workload: for_cpu(cfg, workload, channels_last),
            gpu=lambda cfg, workload: for_gpu(cfg, workload, channels_last),
            mali=lambda cfg, workload: for_gpu(cfg, workload, channels_last, _mali.tiled),
        )

    return register


def require_window(operator: str, kh: int, kw: int, stride: Ints, dilation: Ints) -> None:
    """ShapeError unless a convolution is one of 3x3 windows without strides."""
    ones = (1, 1)
    steps, dilations = (spread(operator, what, n, 2) for what, n in (("stride", stride), ("dilation", dilation)))
    if (kh, kw, steps, dilations) != (3, 3, ones, ones):
        raise ShapeError(
            f"{operator}: the transforms are of 3x3 windows with stride 1 and dilation 1, got {kh}x{kw}, "
            f"stride {steps}, dilation {dilations}; {operator.removesuffix('_winograd')} takes any"
        )
