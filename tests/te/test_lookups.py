"""Reads where data say: what they mean, what is refused, and kernels that do them in rows and lane by lane."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import loopwright as lw
from loopwright import te
from loopwright.backends.context import create_context
from loopwright.dialects.index import Lookup, axis
from loopwright.dialects.index_text import parse_index
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.lookups import looked_up, lookups_in

ROWS = 9


def table_and_places(dtype: str = "int64", shape: tuple[int, ...] = (3, 7)) -> tuple[te.Tensor, te.Tensor]:
    return te.placeholder((ROWS, 24), name="table"), te.placeholder(shape, dtype, "ids")


def arrays(dtype: str = "int64", shape: tuple[int, ...] = (3, 7)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    places = rng.integers(-4, ROWS + 4, shape).astype(dtype)
    assert places.min() < 0 and places.max() >= ROWS
    return rng.standard_normal((ROWS, 24)).astype("float32"), places


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_a_place_out_of_range_is_moved_to_the_edge(dtype: str) -> None:
    table, ids = te.placeholder((ROWS, 24), name="table"), te.placeholder((3, 7), dtype, "ids")
    made = te.compute((3, 7, 24), lambda b, s, j: table[ids[b, s].astype("int64"), j], name="found")
    rows, places = arrays(dtype)
    (got,) = run_te(te.create_module([table, ids, made]), [rows, places])
    np.testing.assert_array_equal(got, rows[np.clip(places, 0, ROWS - 1)])


def test_what_is_added_to_a_place_is_clamped_with_it() -> None:
    table, ids = table_and_places(shape=(24,))
    made = te.compute((24,), lambda j: table[ids[j] + j, (ids[j] * 3) // 2], name="found")
    rows, places = arrays(shape=(24,))
    (got,) = run_te(te.create_module([table, ids, made]), [rows, places])
    wanted = rows[np.clip(places + np.arange(24), 0, ROWS - 1), np.clip(places * 3 // 2, 0, 23)]
    np.testing.assert_array_equal(got, wanted)


def test_only_data_make_an_index_that_is_no_index_expression() -> None:
    table, _ = table_and_places()
    with pytest.raises(te.ExpressionError, match="index 0 of tensor 'table' is not affine"):
        te.create_module([table, te.compute((3, 24), lambda i, j: table[i * i, j], name="squares")])


BODY = """
func.func @main(%t: tensor<9x24xf32>, %ids: tensor<7xi64>) -> tensor<7x24xf32> {{
  %0 = lw_te.compute "found" [s = 7, j = 24] -> tensor<7x24xf32> {{
    %1 = lw_te.read %ids[s] : tensor<7xi64>
    {read}
    lw_te.yield %2 : f32
  }}
  func.return %0 : tensor<7x24xf32>
}}
"""


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ("%2 = lw_te.read %t[?0(s) of 10, j] at (%1 : i64) : tensor<9x24xf32>", "read out of bounds on axis 0"),
        ("%2 = lw_te.read %t[?0(j) of 9, j] at (%1 : i64) : tensor<9x24xf32>", "depends on 's' as well"),
        ("%2 = lw_te.read %t[?1(s) of 9, j] at (%1 : i64) : tensor<9x24xf32>", "name position \\?1, 1 operands"),
        ("%2 = lw_te.read %t[?0(s) of 9, ?0(s) of 8] at (%1 : i64) : tensor<9x24xf32>", "two positions of different"),
        ("%2 = lw_te.read %t[s, j] at (%1 : i64) where (?0(s) of 9 - 1 >= 0) : tensor<9x24xf32>", "guard the read"),
    ],
)
def test_malformed_reads_are_refused(read: str, reason: str) -> None:
    with pytest.raises(VerifyException, match=reason):
        Parser(create_context(), BODY.format(read=read)).parse_module().verify()


def test_a_lookup_is_an_unknown_function_of_what_it_depends_on() -> None:
    text = "?0(i, j * 2) of 30 * 4 + k"
    expr = parse_index(text)
    assert str(expr) == text and parse_index(str(expr)) == expr
    assert expr.axes() == {"i", "j", "k"} and not expr.is_linear_in("j") and expr.is_linear_in("k")
    assert expr.bounds({"k": (0, 3)}) == (0, 119)
    assert expr.substitute({"j": axis("m") + 1}).axes() == {"i", "m", "k"}
    assert (expr // 4).simplify({"k": (0, 3)}) == parse_index("?0(i, j * 2) of 30")
    assert lookups_in(expr) == (Lookup(0, (axis("i"), axis("j") * 2), 30),)
    assert str(looked_up(expr, {0: axis("row")})) == "row * 4 + k"
    with pytest.raises(ValueError, match="only while a program runs"):
        expr.evaluate({"i": 0, "j": 0, "k": 0})


def in_rows(table: te.Tensor, ids: te.Tensor) -> te.Tensor:
    made: te.Tensor = te.compute((7, 24), lambda s, j: table[ids[1, s], j] * 2.0, name="found")
    return made


def lane_by_lane(table: te.Tensor, ids: te.Tensor) -> te.Tensor:
    made: te.Tensor = te.compute((7, 24), lambda s, j: table[ids[1, (s + j) % 7], j] * 2.0, name="found")
    return made


def guarded(table: te.Tensor, ids: te.Tensor) -> te.Tensor:
    """The places exist for some of the lanes only."""
    made: te.Tensor = te.compute(
        (7, 24), lambda s, j: te.select(te.all(j >= 3, j < 10), table[ids[1, j - 3], j], 0.5) * 2.0, name="found"
    )
    return made


def wanted(program: Callable[..., te.Tensor], rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    clamped, s, j = np.clip(places, 0, ROWS - 1), np.arange(7)[:, None], np.arange(24)[None]
    if program is in_rows:
        found = rows[clamped[1, s], j]
    elif program is lane_by_lane:
        found = rows[clamped[1, (s + j) % 7], j]
    else:
        found = np.where((j >= 3) & (j < 10), rows[clamped[1, np.clip(j - 3, 0, 6)], j], np.float32(0.5)) + 0 * s
    return np.asarray(found * 2, "float32")


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("program", [in_rows, lane_by_lane, guarded])
def test_kernels_read_where_data_say(program: Callable[..., te.Tensor], lanes: int) -> None:
    """In lanes too, also of a tail (24 in vectors of 16)."""
    table, ids = table_and_places("int32")
    schedule: Any = lw.Schedule([table, ids, program(table, ids)], target="llvm cores=1 vector_bytes=32")
    _, inner = schedule.split("found", "j", [None, lanes])
    if lanes > 1:
        schedule.vectorize(inner)
    rows, places = arrays("int32")
    np.testing.assert_array_equal(lw.build(schedule)(rows, places), wanted(program, rows, places))


@pytest.mark.parametrize("target", ["cuda model=h200", "opencl model=mali-g610"])
def test_a_row_is_moved_in_vectors_where_its_place_is_the_same_for_all(target: str) -> None:
    table, ids = table_and_places("int32")
    schedule: Any = lw.Schedule([table, ids, in_rows(table, ids)], target=target)
    outer, inner = schedule.split("found", "j", [None, 4])
    schedule.bind("found", "s", "blockIdx.x")
    schedule.bind(outer, "threadIdx.x")
    schedule.vectorize(inner)
    source = lw.build(schedule).source
    assert "float4" in source and source.count("ids[") == 1
