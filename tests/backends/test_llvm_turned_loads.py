"""Strided loads of neighbouring columns, made together as rows and transposed, against the kernel interpreter."""

import mmap
import random

import numpy as np
import pytest
from kernel_elements import DTYPE
from kernel_texts import compare, parse, protect

from loopwright.backends.build import build
from loopwright.dialects.target import Target

N = 600


def loads_text(
    kind: str, lanes: int, stride: int, offsets: list[int], stored: dict[int, int] | None = None, on: int | None = None
) -> str:
    """Load a vector at each offset of a buffer in turn, and store it to the output behind those before.

    `stored` are the offsets of the buffer that are written behind the load of a number, `on` the lanes that are loaded.
    """
    shape, array, out = f"vector<{lanes}x{kind}>", f"memref<{N}x{kind}>", f"memref<{lanes * len(offsets)}x{kind}>"
    one = "1.0" if kind[0] == "f" else "true" if kind == "i1" else "1"
    lines = [f"%ones = arith.constant dense<{one}> : {shape}", "%zero = arith.constant 0 : index"]
    lines += [f'%t = lw_kernel.alloc "t" : {array}', f"%x0 = lw_kernel.load %in[%zero] : {array} -> {kind}"]
    lines += ["%end = arith.constant 600 : index", "%step = arith.constant 1 : index"]
    lines += ["scf.for %i = %zero to %end step %step {", f"%y = lw_kernel.load %in[%i] : {array} -> {kind}"]
    lines += [f"lw_kernel.store %y, %t[%i] : {kind}, {array}", "}"]
    mask = "" if on is None else " mask %mask"
    if on is not None:
        lines += [
            f"%last = arith.constant {on - 1} : index",
            f"%mask = lw_kernel.mask %last step -1 : vector<{lanes}xi1>",
        ]
    for number, offset in enumerate(offsets):
        lines.append(f"%v{number} = lw_kernel.load %t[%zero + {offset}] stride {stride}{mask} : {array} -> {shape}")
        lines.append(f"lw_kernel.store %v{number}, %out[%zero + {number * lanes}] : {shape}, {out}")
        if number in (stored or {}):
            lines.append(f"lw_kernel.store %ones, %t[%zero + {stored[number]}] : {shape}, {array}")  # type: ignore[index]
    body = "\n".join(lines)
    return f"func.func @loads(%in : {array}, %out : {out} {{lw.output}}) {{\n{body}\nfunc.return\n}}"


def values(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 2 if kind == "i1" else 100, N).astype(DTYPE[kind])


@pytest.mark.parametrize("stride", [4, 5, 16, 21])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 24])
@pytest.mark.parametrize("kind", DTYPE)
@pytest.mark.few(16)
def test_columns_in_any_order_are_as_the_interpreter_reads_them(kind: str, lanes: int, stride: int) -> None:
    rng = random.Random(f"{kind} {lanes} {stride}")
    most = N - stride * (lanes - 1)
    offsets = [rng.randrange(min(most, 40)) for _ in range(12)] + list(range(3, min(most, 9)))
    for order in (offsets, sorted(offsets)):
        module = parse(loads_text(kind, lanes, stride, order))
        compare(build(module, Target(vector_bytes=64)), module, values(kind))


@pytest.mark.parametrize("seed", range(6))
def test_stores_in_between_are_seen_by_the_loads_behind_them_alone(seed: int) -> None:
    rng = random.Random(seed)
    stored = {number: rng.randrange(60) for number in rng.sample(range(12), 3)}
    module = parse(loads_text("f32", 8, 17, [n % 8 for n in range(12)], stored))
    compare(build(module, Target(vector_bytes=32)), module, values("f32"))


@pytest.mark.parametrize("on", [0, 1, 2, 5, 8, 11, 15, 16, 20])
@pytest.mark.parametrize("kind", ["f32", "f16", "f64"])
@pytest.mark.few(8)
def test_rows_of_lanes_that_are_off_are_not_read(kind: str, on: int) -> None:
    module = parse(loads_text(kind, 16, 37, list(range(8)), on=on))
    kernel = build(module, Target(vector_bytes=64))
    compare(kernel, module, values(kind))
    if on > 0:
        parts = kernel.source.count(f"= load <{16 // np.dtype(DTYPE[kind]).itemsize} x ")
        assert parts == min(on, 16) * np.dtype(DTYPE[kind]).itemsize // 2 and "masked.gather" not in kernel.source


@pytest.mark.parametrize(("kind", "columns"), [("f32", 4), ("f32", 6), ("f16", 8), ("f64", 2)])
def test_whole_parts_are_neither_gathered_nor_picked_one_by_one(kind: str, columns: int) -> None:
    source = build(parse(loads_text(kind, 16, 20, list(range(columns)))), Target(vector_bytes=64)).source
    assert "masked.gather" not in source and "insertelement" not in source
    assert source.count("shufflevector") > columns


def test_fewer_columns_than_a_part_are_gathered() -> None:
    source = build(parse(loads_text("f32", 16, 20, [0, 1, 2, 4])), Target(vector_bytes=64)).source
    assert source.count("call <16 x float> @llvm.masked.gather") == 4


@pytest.mark.parametrize("columns", [4, 5, 7])
def test_nothing_outside_of_the_columns_is_read(columns: int) -> None:
    """The pages before the first row and behind the last one are not ours."""
    stride, lanes, page = 1024, 8, mmap.PAGESIZE
    size = stride * (lanes - 1) + columns
    for at_end in (False, True):
        memory = mmap.mmap(-1, 10 * page)
        protect(memory, 0, page)
        protect(memory, 9 * page, page)
        a = np.frombuffer(memory, np.float32, size, 9 * page - 4 * size if at_end else page)
        a[...] = np.arange(size)
        array, shape, out = f"memref<{size}xf32>", f"vector<{lanes}xf32>", f"memref<{lanes * columns}xf32>"
        lines = [
            line
            for n in range(columns)
            for line in (
                f"%v{n} = lw_kernel.load %in[%zero + {n}] stride {stride} : {array} -> {shape}",
                f"lw_kernel.store %v{n}, %out[%zero + {n * lanes}] : {shape}, {out}",
            )
        ]
        body = "\n".join(["%zero = arith.constant 0 : index", *lines, "func.return"])
        found = build(parse(f"func.func @edge(%in : {array}, %out : {out} {{lw.output}}) {{\n{body}\n}}"), Target())(a)
        expected = a[np.arange(columns)[:, None] + stride * np.arange(lanes)]
        np.testing.assert_array_equal(found.reshape(columns, lanes), expected)


def test_checked_kernels_read_one_load_after_the_other() -> None:
    module = parse(loads_text("f32", 8, 20, [0, 1, 2, 3]))
    assert "masked.gather" in build(module, Target(vector_bytes=32), check_addresses=True).source
