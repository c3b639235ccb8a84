"""Products of matrices scheduled for matrix intrinsics: in many forms, small enough to be interpreted."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from loopwright import te, topi
from loopwright.dialects.intrinsics import find_intrinsic
from loopwright.schedule import Schedule

CUDA = "cuda max_threads_per_block=1024 max_shared_bytes=232448 max_vthreads=8 warp_size=32 compute_capability=80"
OPENCL = "opencl max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=8"


class Form(NamedTuple):
    """A way to multiply matrices by an intrinsic."""

    intrinsic: str = "mma.m16n8k16.f16"
    dtype: str = "float16"
    sums: str = "float32"
    result: str = "float16"
    transpose_a: bool = False
    transpose_b: bool = True
    warps: tuple[int, int] = (1, 2)
    tiles: tuple[int, int] = (2, 2)
    k_steps: int = 2
    stages: int = 2
    span: int = 128
    """Bytes of a swizzle; 0 for none."""
    bulk: int = 0
    rounded: str = ""
    """The type that factors are rounded to."""
    padded: int = 0
    """The number that extents are padded to multiples of; 0 for none."""
    parts: int = 1
    """Parts of eight columns of a result that a thread writes at once."""


FORMS = (
    Form(),
    Form("mma.m16n16k16.f16", warps=(2, 1), tiles=(1, 2), k_steps=2, stages=3),
    Form("mma.m16n16k16.bf16", "bfloat16", result="bfloat16", tiles=(1, 1), span=64),
    Form("mma.m16n8k32.s8", "int8", "int32", "int32", k_steps=1),
    Form("mma.m16n16k32.u8", "uint8", "int32", "int32", tiles=(1, 1), k_steps=1, span=0),
    Form(transpose_b=False, warps=(1, 1), tiles=(1, 4)),
    Form("mma.m16n16k16.f16", transpose_a=True, transpose_b=False, warps=(2, 2), tiles=(2, 1), stages=1),
    Form("mma.m16n16k8.tf32x3", "float32", result="float32", warps=(2, 1), tiles=(1, 1), rounded="tf32x3"),
    Form("mma.m16n8k8.tf32", "float32", result="float32", rounded="tf32"),
)
GROUP_FORMS = (
    Form("wgmma.m64n32k16.f16", k_steps=4, warps=(1, 2), tiles=(1, 1), stages=3, bulk=1),
    Form("wgmma.m64n32k16.f16", k_steps=4, warps=(2, 1), tiles=(1, 2), stages=2),
    Form("wgmma.m64n64k16.bf16", "bfloat16", result="bfloat16", k_steps=2, warps=(1, 1), tiles=(1, 1), span=64, bulk=1),
    Form("wgmma.m64n32k32.s8", "int8", "int32", "int32", k_steps=4, warps=(1, 1), tiles=(2, 1), bulk=1),
    Form("wgmma.m64n64k16.f16", transpose_b=False, k_steps=4, warps=(2, 1), tiles=(1, 1), stages=3, bulk=1),
    Form(
        "wgmma.m64n64k8.tf32",
        "float32",
        result="float32",
        k_steps=4,
        warps=(1, 1),
        tiles=(1, 1),
        bulk=1,
        rounded="tf32",
    ),
    Form("wgmma.m64n64k16.f16", transpose_a=True, transpose_b=False, k_steps=4, warps=(1, 1), tiles=(1, 1), stages=1),
)
"""Products of warp groups; copied in bulk, by threads, and without a pipeline."""
HOPPER = CUDA.replace("=80", "=90")


def product(form: Form, m: int, n: int, k: int) -> list[te.Tensor]:
    """c = a b, its sums wider than a and b, and d, which is c in the type of the result."""
    a = te.placeholder((k, m) if form.transpose_a else (m, k), form.dtype, name="a")
    b = te.placeholder((n, k) if form.transpose_b else (k, n), form.dtype, name="b")
    if form.rounded:
        k_axis = te.reduce_axis((0, k), name="k")
        c = te.compute(
            (m, n),
            lambda i, j: te.sum(
                te.round_to(a[i, k_axis], form.rounded) * te.round_to(b[j, k_axis], form.rounded), axis=k_axis
            ),
            name="T_matmul",
        )
    else:
        c = topi.nn.matmul(a, b, form.transpose_a, form.transpose_b, out_dtype=form.sums)
    return [a, b, te.compute((m, n), lambda i, j: c[i, j].astype(form.result) * 1, name="d")]


def scheduled(form: Form, shape: Sequence[int], target: str = CUDA) -> Schedule:
    """The product, tiled for the form's intrinsic."""
    found = find_intrinsic(form.intrinsic)
    assert found is not None
    sch = Schedule(product(form, *shape), target=target)
    block = "T_matmul"
    for loop in sch.get_loops(block) if form.padded else ():
        sch.pad(block, loop, form.padded)
    for operand, rows in (("a", "i"), ("b", "j")):
        layout = (rows, "k") if form.padded else ()
        sch.cache_read(block, operand, "shared", layout=layout, label=f"{operand}_shared")
    tile = sch.tensor_tile(block, form.intrinsic, form.warps, form.tiles, form.k_steps)
    for operand in ("a_shared", "b_shared"):
        sch.compute_at(operand, tile.fill, unit_loops=True)
        if form.span:
            sch.swizzle(operand, form.span)
        if form.bulk:
            continue
        both = sch.fuse(operand, *sch.get_loops(operand)[-2:])
        threads = form.warps[0] * form.warps[1]
        _, warp, lane, vector = sch.split(operand, both, [None, threads, found.threads, 16 // found.a.bytes])
        sch.bind(operand, warp, "threadIdx.y")
        sch.bind(operand, lane, "threadIdx.x")
        sch.vectorize(operand, vector)
    sch.reverse_compute_at("d", tile.lane)
    if form.parts > 1:
        join_parts(sch, form.parts)
    sch.vectorize("d", sch.get_loops("d")[-1])
    if form.stages > 1:
        sch.software_pipeline(block, tile.fill, form.stages, bulk=form.bulk)
    return sch


def join_parts(sch: Schedule, count: int) -> None:
    """Make one loop of the pairs of several parts of a result."""
    *_, parts, rows, pair = sch.get_loops("d")
    part, within = sch.split("d", parts, (0, count))
    sch.reorder("d", part, rows, within, pair)
    for loop in (part, rows):
        sch.unroll("d", loop)
    sch.fuse("d", within, pair)


# -- products that rules find -----------------------------------------------------------------------------------------


def random_product(random: Random) -> list[te.Tensor]:
    """A product of matrices in some form, of types that matrix units multiply, with some epilogue."""
    dtype = random.choice(("float16", "float16", "bfloat16", "int8", "uint8"))
    sums = "float32" if "float" in dtype else "int32"
    kind = random.choice((_random_matmul, _random_large, _random_large, _random_batch, _random_conv, _random_conv))
    factors, found = kind(random, dtype, sums)
    ending = random.choice(("none", "cast", "relu", "bias", "residual"))
    if ending == "bias":
        bias = te.placeholder((found.shape[-1],), sums, name="bias")
        factors, found = [*factors, bias], found + bias
    if ending == "relu":
        found = topi.nn.relu(found)
    if ending != "none" and dtype != "uint8":
        found = topi.cast(found, dtype if "float" in dtype else "float32")
    if ending == "residual":
        other = te.placeholder(found.shape, found.dtype, name="other")
        factors, found = [*factors, other], found + other
    return [*factors, found]


def _extent(random: Random, unit: int, most: int) -> int:
    """A multiple of a unit, or any number above half of it."""
    if random.random() < 0.6:
        return unit * random.randint(1, most)
    return random.randint(unit // 2 + 1, unit * most)


def _random_matmul(random: Random, dtype: str, sums: str) -> tuple[list[te.Tensor], te.Tensor]:
    m, n, k = _extent(random, 16, 5), _extent(random, 8, 9), _extent(random, 32, 4)
    turned_a, turned_b = random.random() < 0.3, random.random() < 0.5
    a = te.placeholder((k, m) if turned_a else (m, k), dtype, name="a")
    b = te.placeholder((n, k) if turned_b else (k, n), dtype, name="b")
    return [a, b], topi.nn.matmul(a, b, turned_a, turned_b, out_dtype=sums)


def _random_large(random: Random, dtype: str, sums: str) -> tuple[list[te.Tensor], te.Tensor]:
    """Tiles of warp groups; with rows that the copy engine takes or not, and steps of k that may be divided or not."""
    m, n = _extent(random, 64, 2), _extent(random, 32, 3)
    k = random.choice((512, _extent(random, 64, 2), 16 * random.randint(3, 10)))
    turned_a, turned_b = random.random() < 0.2, random.random() < 0.6
    a = te.placeholder((k, m) if turned_a else (m, k), dtype, name="a")
    b = te.placeholder((n, k) if turned_b else (k, n), dtype, name="b")
    return [a, b], topi.nn.matmul(a, b, turned_a, turned_b, out_dtype=sums)


def _random_batch(random: Random, dtype: str, sums: str) -> tuple[list[te.Tensor], te.Tensor]:
    m, n, k = _extent(random, 16, 5), _extent(random, 8, 5), _extent(random, 32, 3)
    batch, turned = random.randint(2, 3), random.random() < 0.5
    a = te.placeholder((batch, m, k), dtype, name="a")
    b = te.placeholder((batch, n, k) if turned else (batch, k, n), dtype, name="b")
    return [a, b], topi.nn.batch_matmul(a, b, False, turned, out_dtype=sums)


def _random_conv(random: Random, dtype: str, sums: str) -> tuple[list[te.Tensor], te.Tensor]:
    size, window, stride = random.choice(
        ((8, 3, 1), (8, 1, 1), (12, 3, 1), (16, 3, 2), (8, 1, 2), (4, 3, 1), (8, 5, 1))
    )
    images, channels, filters = random.randint(1, 2), _extent(random, 32, 2), _extent(random, 8, 5)
    first, pad = random.random() < 0.3, window // 2
    data = te.placeholder((images, channels, size, size) if first else (images, size, size, channels), dtype, "data")
    shape = (filters, channels, window, window) if first else (window, window, channels, filters)
    kernel = te.placeholder(shape, dtype, name="kernel")
    conv = topi.nn.conv2d_nchw if first else topi.nn.conv2d_nhwc
    return [data, kernel], conv(data, kernel, stride, pad, out_dtype=sums)
