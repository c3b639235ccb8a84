"""Rows that taps of a window share: what is loaded once, by counting, and what registers do not keep."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.estimates.cache_traffic import Operand
from loopwright.search.estimates.row_reuse import KEPT_CYCLES, row_windows

ROWS, REDUCE = {"y": "y_rows", "n": "n_rows"}, [("ry", "ry_unroll"), ("rx", "rx_unroll")]


def data(stride: int, dilation: int) -> Operand:
    """Of images `n` and rows `y`, with pixels of a row in lanes."""
    return Operand(((("n", 1),), (("y", stride), ("ry", dilation)), (("x", 1), ("rx", dilation))), 4)


def columns(rows: int, taps: int, across: int = 1) -> dict[str, np.ndarray]:
    return {"y_rows": np.array([rows]), "ry_unroll": np.array([taps]), "rx_unroll": np.array([across])}


@pytest.mark.parametrize("rows", [1, 2, 4, 7])
@pytest.mark.parametrize("taps", [1, 3, 5])
@pytest.mark.parametrize("dilation", [1, 2])
def test_rows_that_taps_share_are_loaded_once(rows: int, taps: int, dilation: int) -> None:
    (window,) = row_windows(data(1, dilation), ROWS, REDUCE)
    assert (window.rows, window.taps, window.apart, window.within) == ("y_rows", "ry_unroll", dilation, ("rx_unroll",))
    places = [y + dilation * tap for y in range(rows) for tap in range(taps)]
    if dilation <= rows or taps == 1:
        span = rows + dilation * (taps - 1)
        assert window.part_loaded(columns(rows, taps))[0] == pytest.approx(span / len(places))
        assert len(set(places)) == span
    assert window.part_loaded(columns(rows, taps))[0] <= 1


def test_taps_between_rows_share_none() -> None:
    assert not row_windows(data(2, 1), ROWS, REDUCE)
    (window,) = row_windows(data(2, 4), ROWS, REDUCE)
    assert window.apart == 2
    assert not row_windows(Operand(((("f", 1),), (("ry", 1),), (("rx", 1),)), 4), ROWS, REDUCE)


def test_what_registers_do_not_keep_is_counted_for_all_taps_but_the_last() -> None:
    (window,) = row_windows(data(1, 2), ROWS, REDUCE)
    loads, many = np.array([8.0]), columns(8, 5, 5)
    assert window.kept_cycles(many, loads, np.array([30.0]))[0] == 0  # six of eight rows, for five taps across
    assert window.kept_cycles(many, loads, np.array([23.0]))[0] == pytest.approx(KEPT_CYCLES * 7 * 4 / 5 / 5)
    assert window.kept_cycles(columns(8, 1, 5), loads, np.array([0.0]))[0] == 0
    assert window.kept_cycles(columns(2, 5, 5), np.array([2.0]), np.array([0.0]))[0] == 0


def seconds(channels_apart: bool, rows: int) -> float:
    """The estimate of a tile of so many rows of a vector, 5x5 taps by 2 written out."""
    groups, filters = (32, 32) if channels_apart else (1, 32)

    def tensors() -> list[te.Tensor]:
        data = te.placeholder((1, 32, 56, 56), name="data")
        kernel = te.placeholder((filters, 32 // groups, 5, 5), name="kernel")
        return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 4, 2, groups)]

    task = lw.SearchTask(tensors, target="llvm cores=1 vector_bytes=64 vector_registers=32")
    sketch = next(s for s in task.sketches if s.name == "xx_direct")
    given = sketch.columns(sketch.default[None])
    wanted = {
        "lanes": 16,
        "vectors": 1,
        "vector_tile": 1,
        "yy_rows": rows,
        "yy_tile": 1,
        "ry_unroll": 5,
        "rx_unroll": 5,
    }
    wanted |= {} if channels_apart else {"ff_rows": 1, "ff_tile": 1, "rc_unroll": 1, "rc_block": 32}
    name = next(iter(given)).partition("_")[0]
    assert sketch.prior is not None
    return float(sketch.prior(given | {f"{name}_{hole}": np.array([n]) for hole, n in wanted.items()})[0])


def test_tiles_of_channels_apart_whose_rows_no_register_keeps_are_estimated_slower() -> None:
    assert seconds(True, 4) < 0.7 * seconds(True, 8)


def test_vectors_that_several_filters_may_use_are_not_asked() -> None:
    assert seconds(False, 8) == pytest.approx(seconds(False, 4), rel=0.3)
