"""The model of products of warp groups, held to what was measured, and its limits to what a device has."""

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.rules import gpu_tensor
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch

TARGET = lw.resolve_target("cuda model=h200")
TILES = ("i_warps", "i_tiles", "columns", "stages", "group", "resident")
FORMS = ((2, 1, 256, 4, 8, 1), (2, 1, 256, 4, 1, 1), (2, 2, 128, 4, 1, 1), (2, 2, 128, 4, 4, 1), (2, 1, 128, 6, 1, 1),
         (2, 1, 128, 3, 1, 2), (1, 1, 128, 6, 1, 1))  # fmt: skip
MEASURED_US = {
    1024: (15.8, 15.8, 16.3, 15.9, 9.3, 9.2, 7.8),
    2048: (29.3, 29.3, 29.3, 29.4, 31.4, 29.5, 42.3),
    4096: (202.9, 219.5, 215.5, 215.6, 233.5, 212.9, 355.4),
    8192: (1755.0, 1814.6, 1824.8, 1774.9, 2209.9, 2027.4, 3904.0),
}
"""fp16, by size, for each of FORMS (benchmarks/results/warp-groups-h200-2026-11-23.md)."""


SMALL_TILES = {(128, 96): (2, 1, 96, 6, 1, 1), (128, 128): (2, 1, 128, 6, 1, 1), (64, 192): (1, 1, 192, 6, 1, 1)}
SMALL_US = {
    (1024, 1536, 2048): (13.1, 13.5, 11.4),
    (1000, 1512, 2056): (18.5, 18.1, 20.3),
}
"""fp16, by rows, columns and k, for each of SMALL_TILES: rows of 4096 bytes are whole lines of the cache, rows of 4112
are not (benchmarks/results/ragged-h200-2026-11-24.md)."""


STREAMS_US = {
    (256, 4096, 4096): {(1, 1, 128, 8, 4, 1): 17.7, (1, 1, 128, 4, 4, 1): 22.5},
    (128, 14336, 4096): {(1, 1, 224, 6, 2, 1): 33.3, (1, 1, 224, 5, 1, 1): 42.6},
}
"""fp16, by rows, columns and k, for tiles as those of FORMS: weights come from memory
(benchmarks/results/few-rows-h200-2026-11-28.md)."""


def sketch_of(size: int, target: lw.Target = TARGET) -> Sketch:
    return sketch_of_product(size, size, size, target)


def sketch_of_product(rows: int, columns: int, depth: int, target: lw.Target = TARGET) -> Sketch:
    a = te.placeholder((rows, depth), "float16", name="a")
    b = te.placeholder((columns, depth), "float16", name="b")
    product = topi.nn.matmul(a, b, transpose_b=True, out_dtype="float32")
    module = te.create_module([a, b, topi.cast(product, "float16")], target)
    (found,) = [s for s in generate_sketches(module, target) if s.name.endswith("_bulk")]
    return found


def row_of(sketch: Sketch, values: dict[str, int]) -> np.ndarray:
    usual = {"j_tiles": 1, "j_warps": 1, "k_steps": 4} | values
    return np.array([h.choices.index(usual[h.name.removeprefix("T_matmul_")]) for h in sketch.holes])


@pytest.mark.parametrize("size", MEASURED_US)
def test_estimates_are_near_what_was_measured(size: int) -> None:
    """Within 1.4 times each, of a device whose clock goes down; and the one chosen is as fast as the best."""
    sketch = sketch_of(size)
    rows = np.stack([row_of(sketch, dict(zip(TILES, form, strict=True))) for form in FORMS])
    assert sketch.legal(rows).all()
    estimates_s, measured_s = sketch.estimate(rows), 1e-6 * np.array(MEASURED_US[size])
    assert estimates_s is not None
    assert (np.abs(np.log(estimates_s / measured_s)) < np.log(1.4)).all(), estimates_s / measured_s
    assert measured_s[np.argmin(estimates_s)] <= 1.02 * measured_s.min()


@pytest.mark.parametrize("extents", SMALL_US)
def test_lines_of_the_cache_decide_between_small_tiles(extents: tuple[int, int, int]) -> None:
    sketch, measured_us = sketch_of_product(*extents), np.array(SMALL_US[extents])
    rows = np.stack([row_of(sketch, dict(zip(TILES, form, strict=True))) for form in SMALL_TILES.values()])
    assert sketch.legal(rows).all()
    estimates_s = sketch.estimate(rows)
    assert estimates_s is not None
    assert (np.abs(np.log(1e6 * estimates_s / measured_us)) < np.log(1.4)).all(), 1e6 * estimates_s / measured_us
    assert measured_us[np.argmin(estimates_s)] <= 1.03 * measured_us.min()


@pytest.mark.parametrize("extents", STREAMS_US)
def test_weights_from_memory_take_many_fills_and_neighbours(extents: tuple[int, int, int]) -> None:
    """The estimates decide untuned, and the defaults are of the least one."""
    sketch, measured_us = sketch_of_product(*extents), np.array([*STREAMS_US[extents].values()])
    rows = np.stack([row_of(sketch, dict(zip(TILES, form, strict=True))) for form in STREAMS_US[extents]])
    assert sketch.sure and sketch.legal(rows).all()
    estimates_s = sketch.estimate(np.concatenate([rows, sketch.default[None]]))
    assert estimates_s is not None
    assert (np.abs(np.log(1e6 * estimates_s[:-1] / measured_us)) < np.log(1.4)).all()
    assert np.argmin(estimates_s[:-1]) == np.argmin(measured_us) and estimates_s[-1] == estimates_s.min()


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({}, True),
        ({"stages": 5}, False),  # 245,760 bytes of shared memory
        ({"i_tiles": 2}, False),  # 256 sums of a thread
        ({"resident": 2}, False),  # two times 197,632 bytes
        ({"columns": 128, "stages": 3, "resident": 2}, True),
        ({"columns": 128, "stages": 3, "resident": 3}, False),  # three times 256 threads of 104 registers
        ({"j_warps": 2, "stages": 2}, False),  # 512 columns are more than a box has
        ({"i_warps": 4, "columns": 128, "stages": 3}, True),
        ({"columns": 96}, None),  # no choice for 4096 columns
        ({"k_steps": 2, "stages": 8}, True),
    ],
)
@pytest.mark.few(5)
def test_limits_are_those_of_the_device(values: dict[str, int], fits: bool | None) -> None:
    sketch = sketch_of(4096)
    usual = dict(zip(TILES, FORMS[0], strict=True))
    if fits is None:
        with pytest.raises(ValueError, match="not in tuple"):
            row_of(sketch, usual | values)
        return
    assert sketch.legal(row_of(sketch, usual | values)[None])[0] == fits


def test_less_shared_memory_makes_less_legal() -> None:
    small = sketch_of(4096, replace(TARGET, max_shared_bytes=98304))
    usual = dict(zip(TILES, FORMS[4], strict=True))
    assert not small.legal(row_of(small, usual)[None])[0]
    assert small.legal(row_of(small, usual | {"stages": 2})[None])[0]


def test_blocks_do_not_hide_each_other_s_copies_where_none_has_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a convolution that threads copy: that of 128x14x14x256 took 103 us in one stage, others 66."""
    monkeypatch.setattr(gpu_tensor, "find_walked", lambda *_: None)
    data, kernel = te.placeholder((128, 14, 14, 256), "float16"), te.placeholder((3, 3, 256, 256), "float16")
    product = topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="float32")
    sketches = generate_sketches(te.create_module([data, kernel, topi.cast(product, "float16")], TARGET), TARGET)
    (sketch,) = [s for s in sketches if "wgmma" in s.name]
    form = {"i_tiles": 2, "i_warps": 1, "j_tiles": 1, "j_warps": 1, "columns": 128, "k_steps": 4, "group": 1}
    holes = {hole.name.partition("_")[2]: hole for hole in sketch.holes}
    values = [form | {"resident": resident, "stages": stages} for resident, stages in ((3, 1), (3, 2), (1, 3))]
    rows = np.array([[hole.choices.index(each[name]) for name, hole in holes.items()] for each in values])
    assert sketch.legal(rows).all()
    alone_s, *piped_s = sketch.estimate(rows)  # type: ignore[misc]
    assert alone_s > 1.3 * max(piped_s)
