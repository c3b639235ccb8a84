"""Gathers of lanes that are known places apart are loads and shuffles, against the kernel interpreter."""

import random

import numpy as np
import pytest
from kernel_elements import DTYPE
from kernel_texts import compare, parse

from loopwright.backends.build import build
from loopwright.dialects.target import Target

N = 400


def gather_text(kind: str, near: list[int], first: int, on: int | None = None) -> str:
    """Store the elements of a buffer at `first` and so far from it, of lanes that are on."""
    lanes = len(near)
    shape, places, array = f"vector<{lanes}x{kind}>", f"vector<{lanes}xindex>", f"memref<{N}x{kind}>"
    mask = f"lw_kernel.mask %last step -1 : vector<{lanes}xi1>" if on is not None else None
    all_on = f"vector.broadcast %true : i1 to vector<{lanes}xi1>"
    lines = [
        "%zero = arith.constant 0 : index",
        "%true = arith.constant true",
        f"%last = arith.constant {(on or 0) - 1} : index",
        f"%mask = {mask or all_on}",
        f"%at = arith.constant dense<[{', '.join(str(first + place) for place in near)}]> : {places}",
        f"%v = lw_kernel.gather %in[%at] mask %mask {{near = array<i64: {', '.join(map(str, near))}>}} "
        f": {array}, {places}, vector<{lanes}xi1> -> {shape}",
        f"lw_kernel.store %v, %out[%zero] : {shape}, memref<{lanes}x{kind}>",
    ]
    body = "\n".join(lines)
    return f"func.func @near(%in : {array}, %out : memref<{lanes}x{kind}> {{lw.output}}) {{\n{body}\nfunc.return\n}}"


def values(kind: str) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, N).astype(DTYPE[kind])


PLACES = {
    "repeated": [lane // 2 for lane in range(16)],
    "interleaved": [lane % 2 * 100 + lane // 2 for lane in range(16)],
    "of three": [lane % 3 * 100 + lane // 3 for lane in range(48)],
    "backwards": [-lane for lane in range(8)],
    "one": [0] * 8,
}


@pytest.mark.parametrize("on", [None, 1, 5, 8])
@pytest.mark.parametrize("kind", ["f32", "f16", "f64", "i8"])
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.few(16)
def test_stretches_are_loaded_as_the_interpreter_reads_them(places: str, kind: str, on: int | None) -> None:
    module = parse(gather_text(kind, PLACES[places], 60, on))
    kernel = build(module, Target(vector_bytes=64))
    compare(kernel, module, values(kind))
    assert "masked.gather" not in kernel.source


@pytest.mark.parametrize("seed", range(8))
def test_any_places_are_read(seed: int) -> None:
    rng = random.Random(seed)
    lanes = rng.choice((4, 8, 12, 16))
    near = [0, *(rng.randrange(-40, rng.choice((10, 300))) for _ in range(lanes - 1))]
    module = parse(gather_text("f32", near, 50, rng.choice((None, rng.randrange(lanes + 1)))))
    compare(build(module, Target(vector_bytes=64)), module, values("f32"))


def test_many_stretches_are_gathered() -> None:
    near = [lane * 20 for lane in range(16)]
    assert "masked.gather" in build(parse(gather_text("f32", near, 0)), Target(vector_bytes=64)).source


def test_no_lane_is_read_where_none_is_on() -> None:
    module = parse(gather_text("f32", [0, 1, 2, 3], 0, 0))
    compare(build(module, Target(vector_bytes=64)), module, values("f32"))


def test_places_are_printed_and_parsed() -> None:
    module = parse(gather_text("f32", [0, 0, 1, 1], 3))
    assert str(parse(str(module))) == str(module) and "near = array<i64: 0, 0, 1, 1>" in str(module)


def test_places_are_of_all_lanes() -> None:
    text = gather_text("f32", [0, 0, 1, 1], 3).replace("i64: 0, 0, 1, 1", "i64: 0, 0")
    with pytest.raises(Exception, match="near says where 4 lanes are, got 2 numbers"):
        parse(text).verify()
