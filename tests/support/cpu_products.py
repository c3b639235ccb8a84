"""Products of matrices scheduled for matrix instructions of CPUs, small enough to be interpreted."""

from collections.abc import Sequence

from loopwright import te, topi
from loopwright.dialects.intrinsics import Intrinsic, find_intrinsic
from loopwright.schedule import Schedule

SHAPE = (32, 64, 128)
BLOCK = "T_matmul"


def named(name: str) -> Intrinsic:
    found = find_intrinsic(name)
    assert found is not None
    return found


def target_with(intrinsic: Intrinsic) -> str:
    """A CPU that has an intrinsic."""
    if intrinsic.name.startswith("neon"):
        return "llvm model=neoverse-v1"
    return "llvm model=x86-64-v3" if intrinsic.name.startswith("avx2") else "llvm model=sapphirerapids"


def small_shape(intrinsic: Intrinsic) -> tuple[int, int, int]:
    """The extents (m, n, k) of two register tiles along each side, of two steps by two instructions; at most SHAPE."""
    sizes = intrinsic.extents.values()
    m, n, k = (min(4 * step, most // step * step) for step, most in zip(sizes, SHAPE, strict=True))
    return m, n, k


def whole_shape(intrinsic: Intrinsic) -> tuple[int, int, int]:
    """The extents of whole register tiles of two by two instructions and two steps: SHAPE, or the next below."""
    m, n, k = (most // (2 * x) * 2 * x for x, most in zip(intrinsic.extents.values(), SHAPE, strict=True))
    return m, n, k


def product(intrinsic: Intrinsic, m: int, n: int, k: int) -> list[te.Tensor]:
    """c = a b, its sums as wide as those of the intrinsic."""
    a = te.placeholder((m, k), name="a", dtype=intrinsic.a.element)
    b = te.placeholder((k, n), name="b", dtype=intrinsic.b.element)
    return [a, b, topi.nn.matmul(a, b, out_dtype=intrinsic.c.element)]


def scheduled(
    intrinsic: Intrinsic,
    target: str = "",
    shape: Sequence[int] = SHAPE,
    tiles: tuple[int, int] = (2, 2),
    k_steps: int = 2,
    tensorize: bool = True,
) -> Schedule:
    """The product in register tiles of so many instructions along each side, b packed as the instruction holds it."""
    sch = Schedule(product(intrinsic, *shape), target=target or target_with(intrinsic))
    group = intrinsic.held_extents("b")[-1]
    layout = (f"j/{intrinsic.n}", f"k/{group}", f"j%{intrinsic.n}", f"k%{group}")
    sch.cache_read(BLOCK, "b", "global", layout=layout, label="b_panel")
    i, j, k = sch.get_loops(BLOCK)
    i0, i1, i2 = sch.split(BLOCK, i, [None, tiles[0], intrinsic.m])
    j0, j1, j2 = sch.split(BLOCK, j, [None, tiles[1], intrinsic.n])
    k0, k1, k2 = sch.split(BLOCK, k, [None, k_steps, intrinsic.k])
    has_rows = len(intrinsic.c.held) > 1
    inside = [i2, j2, k2] if has_rows else [j2, k2]
    around = [i0, j0] if has_rows else [i2, i0, j0]
    sch.reorder(BLOCK, *around, k0, k1, i1, j1, *inside)
    for loop in (k1, i1, j1):
        sch.unroll(BLOCK, loop)
    sch.cache_write(BLOCK, BLOCK, label="sums")
    sch.reverse_compute_at("sums", j0)
    sch.vectorize("sums", sch.get_loops("sums")[-1])
    if tensorize:
        sch.tensorize(BLOCK, inside[0], intrinsic.name)
    return sch
