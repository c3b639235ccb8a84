"""Plan of a product on matrix units: the numbers of its tiles, and what is copied how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.buffers import SWIZZLES, buffer_shape, element_of_buffer
from ...dialects.element import element_bytes
from ...dialects.intrinsics import Family
from ...dialects.target import Target
from ...passes.analysis.matrix_product import TURNED_BYTES
from ..estimates.group_model import GroupModel
from ..estimates.tensor_model import TensorModel
from ..sketch import arrays as np
from ..sketch.hole import Columns, Derived, Hole
from ..structure.products import Factor, Product
from ._choices import dividing
from ._gpu_division import Division


@dataclass(frozen=True)
class TileChoices:
    """Choices of a search, and the usual numbers without one.

    `warps`, or warp groups, are those of a block along an axis, `tiles` the matrices that each of them computes along
    it, `fills` the steps of the intrinsic between two fills of shared memory, 32 bytes of k each, and `stages` the
    fills that are there or under way, 1 for no pipeline.
    """

    warps: tuple[int, ...]
    tiles: tuple[int, ...]
    fills: tuple[int, ...]
    stages: tuple[int, ...]
    usual_warps: tuple[int, int]
    usual_tiles: int
    usual_stages: int
    usual_group: int


WARPS = TileChoices(
    warps=(1, 2, 4, 8),
    tiles=(1, 2, 3, 4, 5, 6, 7, 8),
    fills=(1, 2, 4, 8),
    stages=(1, 2, 3, 4, 5, 6),
    usual_warps=(2, 2),
    usual_tiles=4,
    usual_stages=3,
    usual_group=1,
)
"""Images of networks are often multiples of 7. Without a search: 128 x 128 x 128 bytes, the best of six tiles for
products of 4096 on an H200."""
WARP_GROUPS = TileChoices(
    warps=(1, 2, 3, 4),
    tiles=(1, 2, 3, 4),
    fills=(1, 2, 4),
    stages=(1, 2, 3, 4, 5, 6, 7, 8),
    usual_warps=(2, 1),
    usual_tiles=1,
    usual_stages=4,
    usual_group=8,
)
"""More steps between two fills would not lie within the span of one swizzle."""
USUAL_GROUP_TILES = ((2, 256), (2, 128), (1, 128), (1, 64))
"""Warp groups along the rows and columns of the instruction without a search: the first that give half of the
multiprocessors a tile. On an H200 the first is the best of seven for products of 4096 and 8192 (203 us, in groups of 8)
and of 2048, the third for those of 1024 (7.8 us; the first two 15.8 and 9.3)."""
USUAL_STEPS = 4
"""Steps of the intrinsic between two fills without a search: 128 bytes, the widest swizzle."""
LEAST_COLUMNS = 32
"""Columns of an instruction of warp groups, at least, unless there are fewer. A choice: see `GROUP_COLUMNS`."""
GROUPS = (1, 2, 4, 8)
"""Rows of tiles that neighbouring blocks of threads take together: they read the same columns from the cache."""
PARTS = 4
"""Parts of eight columns that a thread of a warp group writes at once where results are of two bytes: 16 bytes, which
it gets from three neighbours for its own. A store of 4 bytes a thread would leave half of each sector of 32 untouched.
"""
CLUSTER_AXES = ("blockIdx.z", "blockIdx.y")
"""Axes of the blocks of a cluster that are neighbours along rows, or along columns, of tiles."""
IN_CLUSTER = (1, 2)
"""Blocks of a cluster along rows, or along columns, of tiles. Of four, 30 clusters fit an H200 where a block has 200 KB
of shared memory to itself, 120 of 132 multiprocessors: products of 1000 x 1512 x 2056 took two rounds."""
RESIDENT = (1, 2, 3)
"""Blocks that registers are to let fit a multiprocessor, so that one begins while another one ends."""


@dataclass(frozen=True)
class Ways:
    """Ways to copy factors: in `bulk` by the copy engine, `shared` by all blocks of a cluster that want them.

    Rows of `a` may be pixels of images that it is `walked` over, with a `tail` where the last tile ends past the last
    image.
    """

    bulk: bool
    shared: bool = False
    walked: bool = False
    tail: bool = False


@dataclass(frozen=True)
class SidePlan:
    """A side of the product: its factor, the rows of which are so many warps of so many matrices.

    `panel` are the elements of a row in shared memory where rows of the matrix are neighbours there; 0 for all.
    """

    factor: Factor
    warps: Hole
    tiles: Hole
    panel: int

    @property
    def copy(self) -> str:
        """The block that copies, and its buffer."""
        return f"{self.factor.operand.name}_shared"

    def layout(self, product: Product) -> tuple[str, ...]:
        """The axes of the copy: those of a batch, then rows and steps of k, the contiguous one last."""
        rows, steps = ("*".join(a.name for a in axes) for axes in (self.factor.rows, product.k))
        batch = [a.name for a in product.batch]
        if self.panel:
            return (*batch, f"{rows}/{self.panel}", steps, f"{rows}%{self.panel}")
        return (*batch, *((steps, rows) if self.factor.turned else (rows, steps)))


@dataclass(frozen=True)
class Width:
    """The columns of an instruction that a candidate chooses, and their first digit, which moves with them."""

    columns: Hole
    digit: Derived


@dataclass(frozen=True)
class TensorPlan:
    """A product in tiles of warps, or warp groups: `sides` are those of `a` and of `b`, `warps` all of a block.

    A `width` is chosen where the family has several members; `resident` blocks of a multiprocessor for warp groups.
    `parts` of eight columns are written at once. With a `cluster`, so many neighbours along rows and along columns of
    tiles share what they copy. Rows may be pixels that are `walked` over; with a `tail` they are padded to whole tiles.
    """

    block: str
    product: Product
    family: Family
    bulk: bool
    target: Target
    division: Division | None
    sides: tuple[SidePlan, SidePlan]
    steps: Hole
    stages: Hole
    group: Hole
    warps: Derived
    width: Width | None
    resident: Hole | None
    parts: int
    cluster: tuple[Hole, Hole] | None = None
    walked: bool = False
    tail: Derived | None = None

    def numbers(self) -> Iterator[Hole | Derived]:
        """Return the holes and derived numbers in the order they have in a sketch."""
        if self.width is not None:
            yield from (self.width.columns, self.width.digit)
        for side in reversed(self.sides):
            yield from (side.tiles, side.warps)
        yield from (self.steps, self.stages, self.group, self.warps)
        yield from self.cluster or ()
        if self.resident is not None:
            yield self.resident
        if self.tail is not None:
            yield self.tail

    @property
    def intrinsic(self) -> list[str | Hole]:
        """The intrinsic's name, in pieces: with a hole for its columns."""
        before, behind = self.family.name_parts
        return [before] if self.width is None else [before, self.width.columns, behind]

    def digits(self, axis: str) -> list[int | Derived]:
        """The extents of the digits of `i` or `j`, the outermost first."""
        first, *others = (digit.extent for digit in self.family.widest.digits(axis))
        return [first if self.width is None or axis == "i" else self.width.digit, *others]


def plan_tensor(
    block: str,
    product: Product,
    family: Family,
    ways: Ways,
    target: Target,
    division: Division | None,
    in_halves: bool,
) -> TensorPlan:
    """Plan the tiles of a product of matrices by a family of intrinsics, with factors copied in these ways.

    Results `in_halves` are of two bytes, in whole tiles of columns that are neighbours.
    """
    x, b_extent = product.intrinsic, product.b.extent
    listed = WARP_GROUPS if x.reads_shared else WARPS
    fit = [n for n in family.columns if b_extent % n == 0 and has_whole_panels(product, n)]
    family = family.of_columns(n for n in fit if n >= min(x.n, LEAST_COLUMNS))
    usual, columns = (_usual_group_tile(product, target)) if x.reads_shared else (listed.usual_warps[0], x.n)
    width = _width(block, family, columns) if len(family.members) > 1 else None
    chosen = family.widest.n if width is None else width.columns.default
    panels = [_panel(product, factor) * x.reads_shared for factor in product.factors]
    a = _side(block, "i", product.a, (x.m, x.m), listed, usual, panels[0], ways.tail)
    b = _side(block, "j", product.b, (family.columns[0], chosen), listed, listed.usual_warps[1], panels[1])
    all_steps = product.depth // x.k
    wanted = min(USUAL_STEPS, all_steps // (1 + ways.bulk))
    steps = Hole.near(f"{block}_k_steps", dividing(listed.fills, all_steps), wanted, "tile", f"{block}_k")
    stages = listed.stages[1:] if ways.bulk else listed.stages
    fills = all_steps // steps.default
    tile = x.m * a.warps.default * a.tiles.default
    rows = -(-product.a.extent // tile) if ways.tail else product.a.extent // tile
    groups = max(n for n in GROUPS if n <= listed.usual_group and rows % n == 0)
    across = product.b.extent // (chosen * b.warps.default * b.tiles.default)
    holes = (a.warps, b.warps)
    return TensorPlan(
        block,
        product,
        family,
        ways.bulk,
        target,
        division,
        (a, b),
        steps,
        Hole.near(f"{block}_stages", stages, min(listed.usual_stages, fills), "stages"),
        Hole.near(f"{block}_group", GROUPS, groups, "tile"),
        Derived.of(f"{block}_warps", lambda c: np.asarray(prod(c[h.name] for h in holes)), holes),
        width,
        Hole(f"{block}_resident", RESIDENT, 1, "threads") if x.reads_shared else None,
        PARTS if x.reads_shared and in_halves else 1,
        _cluster(block, across, rows // groups) if ways.shared else None,
        ways.walked,
        _tail(block, a, x.m) if ways.tail else None,
    )


def _tail(block: str, side: SidePlan, rows: int) -> Derived:
    """Plan the rows of a tile, to a multiple of which all are padded."""
    holes = (side.warps, side.tiles)
    return Derived.of(f"{block}_tile_rows", lambda c: np.asarray(rows * prod(c[h.name] for h in holes)), holes)


def _cluster(block: str, across: int, down: int) -> tuple[Hole, Hole]:
    """Plan the blocks of a cluster; by default two beside each other where tiles `across` or `down` come in pairs."""
    usual = (1, 2) if across % 2 == 0 else (2, 1) if down % 2 == 0 else (1, 1)
    i, j = (
        Hole.near(f"{block}_{axis}_cluster", IN_CLUSTER, count, "threads", f"{block}_{axis}")
        for axis, count in zip("ij", usual, strict=True)
    )
    return i, j


def has_whole_panels(product: Product, columns: int) -> bool:
    """True where columns of an instruction are whole panels, in which a turned factor lies for warp groups."""
    return not product.intrinsic.reads_shared or not product.b.turned or columns % _panel(product, product.b) == 0


def _panel(product: Product, factor: Factor) -> int:
    """Elements that a row in shared memory has where neighbours are rows of the matrix: of a swizzle that divides all.

    Rows are those of `a` or of `b` once they are padded for the intrinsic.
    """
    if not factor.turned:
        return 0
    unit = product.intrinsic.m if factor is product.a else product.intrinsic.n
    extent = -(-factor.extent // unit) * unit
    panels = [span // TURNED_BYTES for span in SWIZZLES]
    return next((n for n in panels if extent % n == 0), panels[0])


def is_narrow(product: Product) -> bool:
    """True for warp groups whose instructions have columns that are no whole panels, or are no usual number."""
    panel = SWIZZLES[0] // TURNED_BYTES if product.b.turned else LEAST_COLUMNS
    return product.intrinsic.reads_shared and product.intrinsic.n % panel != 0


def _usual_group_tile(product: Product, target: Target) -> tuple[int, int]:
    batch = prod(x.extent for x in product.batch)
    for groups, columns in USUAL_GROUP_TILES:
        rows = -(-product.a.extent // (groups * product.intrinsic.m))
        if 2 * batch * rows * -(-product.b.extent // columns) >= target.cores:
            return groups, columns
    return USUAL_GROUP_TILES[-1]


def _width(block: str, family: Family, usual: int) -> Width:
    columns = Hole.near(f"{block}_columns", family.columns, usual, "tile", f"{block}_j")
    step = family.widest.digits("j")[0].step

    def parts(c: Columns) -> npt.NDArray[np.int64]:
        return np.asarray(c[columns.name] // step)

    return Width(columns, Derived.of(f"{block}_column_parts", parts, [columns]))


def _side(
    block: str,
    axis: str,
    factor: Factor,
    extents: tuple[int, int],
    listed: TileChoices,
    usual: int,
    panel: int,
    tail: bool = False,
) -> SidePlan:
    """Plan a side, whose matrices have so many rows at least, and so many by default; with a `tail` of any number."""
    least, extent = extents
    more, label = extent - 1 if tail else 0, f"{block}_{axis}"
    most = dividing if least == extent and not tail else _up_to
    longest = (factor.extent + more) // least
    tiles = Hole.near(f"{label}_tiles", most(listed.tiles, longest), listed.usual_tiles, "tile", label)
    left = max(1, (factor.extent + more) // (extent * tiles.default))
    warps = Hole.near(f"{label}_warps", (_up_to if tail else dividing)(listed.warps, left), usual, "threads", label)
    every = most(listed.warps, longest)
    return SidePlan(factor, Hole(warps.name, every, warps.default, warps.kind, warps.axis), tiles, panel)


def _up_to(choices: tuple[int, ...], count: int) -> tuple[int, ...]:
    return tuple(n for n in choices if n <= count)


def tensor_model(plan: TensorPlan) -> TensorModel:
    """Return the model of a plan's candidates."""
    (a, b), product = plan.sides, plan.product
    model = TensorModel(
        target=plan.target,
        intrinsic=plan.family.widest,
        batch=prod(x.extent for x in product.batch if plan.division is None or x.name != plan.division.part),
        rows=(product.a.extent, product.b.extent),
        depth=product.depth * (plan.division.parts.default if plan.division is not None else 1),
        vectors=(product.a.vector, product.b.vector),
        warps=(a.warps.name, b.warps.name),
        tiles=(a.tiles.name, b.tiles.name),
        steps=plan.steps.name,
        stages=plan.stages.name,
        group=plan.group.name,
        split=plan.division.parts.name if plan.division is not None else "",
        clustered=plan.division is not None and plan.division.clustered,
        cluster=tuple(hole.name for hole in plan.cluster or ()),
    )
    if plan.resident is None:
        return model
    return GroupModel(
        **vars(model),
        columns=plan.width.columns.name if plan.width is not None else "",
        resident=plan.resident.name,
        bulk=plan.bulk,
        turned=(product.a.turned, product.b.turned),
        row_bytes=(_row_bytes(product.a), _row_bytes(product.b)),
        run=_run(product),
        tail=plan.tail is not None,
        walked=plan.walked,
        whole=plan.parts > 1,
        overlap=_overlap(product) if plan.walked else 1.0,
    )


def _overlap(product: Product) -> float:
    """Return the elements that rows of windows have in memory for each that they are made of, 1 at most."""
    made = prod(x.extent for x in product.batch) * product.a.extent * product.depth
    return min(1.0, prod(buffer_shape(product.a.operand.buffer)) / made)


def _run(product: Product) -> int:
    """Steps of k that are neighbours in both factors: those of the last axis where several are dimensions apart."""
    *others, last = product.k
    names = {a.name for a in others}
    indices = [e for factor in product.factors for e in factor.operand.indices if last.name in e.axes()]
    return product.depth if all(names <= e.axes() for e in indices) else last.extent


def _row_bytes(factor: Factor) -> int:
    """Return the bytes from one row of a factor in memory to the next."""
    buffer = factor.operand.buffer
    return buffer_shape(buffer)[-1] * element_bytes(element_of_buffer(buffer))
