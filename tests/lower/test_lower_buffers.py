"""Producers that are moved, tiles and panels in buffers of their own, lowered for a CPU."""

import pytest
from lowered_programs import check, convolution, convolved, mark, matmul, placeholder

from loopwright import te
from loopwright.dialects import kernel
from loopwright.schedule import Schedule


@pytest.mark.parametrize("at", ["yy0", "xx0", "rc", "yy1"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.few(4)
def test_padded_producer_moved_to_its_reader(stride: int, at: str) -> None:
    def steps(sch: Schedule) -> None:
        sch.split("compute", "yy", [None, 2])
        sch.split("compute", "xx", [None, 3])
        sch.reorder("compute", "nn", "ff", "yy0", "xx0", "rc", "yy1", "xx1")
        sch.compute_at("pad_temp", at)
        sch.vectorize("pad_temp", sch.get_loops("pad_temp")[-1])
        sch.parallel("compute", "ff")

    check(convolution(stride=stride), steps, convolved(stride))


@pytest.mark.parametrize("size", [7, 5])
@pytest.mark.parametrize("layout", ['"yy*xx/16","rc","ry*rx","yy*xx%16"', '"rc","ry*rx","yy*xx"'])
@pytest.mark.few(2)
def test_fused_pixels_from_a_panel(size: int, layout: str) -> None:
    """49 (or 25) pixels as one axis, in vectors of 16 with a rest, read from a panel in the order they are used in."""
    steps = (
        f'lw-cache-read{{block="compute" buffer="pad_temp" layout={layout} label="panel"}},'
        'lw-compute-inline{block="pad_temp"},lw-fuse{block="compute" loops="yy","xx"},'
        'lw-split{block="compute" loop="yy_xx" factors=0,2,16},lw-split{block="compute" loop="ff" factors=0,3},'
        'lw-reorder{block="compute" loops="ff0","yy_xx0","rc","ry","rx","ff1","yy_xx1","yy_xx2"},'
        'lw-compute-inline{block="T_add"},lw-reverse-compute-at{block="T_relu" loop="yy_xx0"},'
        'lw-vectorize{block="compute" loop="yy_xx2"},lw-unroll{block="compute" loop="yy_xx1"},'
        'lw-unroll{block="compute" loop="ff1"},lw-parallel{block="compute" loop="ff0"}'
    )
    module = check(convolution(size), steps, convolved(1))
    assert "mask" in str(module)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_tile_written_at_its_end(scope: str) -> None:
    """A tile of sums in a buffer of its own, which the epilogue reads; both run over the edge of the output."""
    a, b, c = matmul(9, 19, 5)
    d = te.compute((9, 19), lambda i, j: c[i, j] * 2.0, name="d")

    def steps(sch: Schedule) -> None:
        sch.split("c", "i", [None, 4])
        sch.split("c", "j", [None, 8])
        sch.reorder("c", "i0", "j0", "k", "i1", "j1")
        sch.reverse_compute_at("d", "j0")
        sch.set_scope("c", scope)
        sch.vectorize("c", "j1")
        sch.unroll("c", "i1")
        sch.vectorize("d", sch.get_loops("d")[-1])

    module = check([a, b, d], steps, lambda a, b: 2 * (a @ b))
    (tile,) = (op.buffer.type.get_shape() for op in module.walk() if isinstance(op, kernel.AllocOp))
    assert tile == (4 * 8,)


def chain(m: int = 5, n: int = 9, outputs: int = 2) -> list[te.Tensor]:
    x, y = placeholder("x", m, n), placeholder("y", n)
    a = te.compute((m, n), lambda i, j: x[i, j] + y[j], name="a")
    b = te.compute((m, n), lambda i, j: a[i, j] * a[i, n - 1 - j], name="b")
    c = te.compute((m, n), lambda i, j: b[i, j] + a[i, j], name="c")
    return [x, y, b, c] if outputs == 2 else [x, y, c]


@pytest.mark.parametrize("how", ["serial", "unroll", "vectorize", "parallel"])
def test_two_outputs_one_read_by_the_other(how: str) -> None:
    """A nest reads again what it stores: no load may be taken from before the store."""

    def steps(sch: Schedule) -> None:
        sch.reverse_compute_at("c", "j", producer="b")
        sch.compute_at("a", "i")
        mark(sch, "i" if how == "parallel" else "j", how)

    check(chain(), steps)


@pytest.mark.parametrize("how", ["serial", "unroll", "vectorize"])
def test_temporaries_in_one_nest(how: str) -> None:
    """Two producers in the loops of their reader, one of them read at two places that change from lane to lane."""

    def steps(sch: Schedule) -> None:
        sch.compute_at("b", "j")
        sch.compute_at("a", "i")
        mark(sch, "j", how)

    check(chain(outputs=1), steps)


def test_buffer_of_lanes() -> None:
    """A buffer used in one vectorized loop only has an element for each lane, not one for all."""

    def steps(sch: Schedule) -> None:
        sch.compute_inline("a")
        cached = sch.cache_read("c", "b", "local")
        assert cached is not None
        sch.compute_at(cached, "j")
        sch.vectorize("c", "j")

    check(chain(), steps)


def test_aligned_rows() -> None:
    module = check(chain(4, 6), lambda sch: sch.storage_align("a", 0, 16, 3))
    sizes = [op.buffer.type.get_shape() for op in module.walk() if isinstance(op, kernel.AllocOp)]
    assert sizes == [(3 * 19 + 6,)], "three rows of 19 elements, 3 modulo 16, and the last one"


@pytest.mark.parametrize(("size", "scope"), [(16384, "local"), (16385, "")])
def test_large_local_buffers_live_in_memory(size: int, scope: str) -> None:
    x = placeholder("x", size)
    a = te.compute((size,), lambda i: x[i] * 2.0, name="a")
    c = te.compute((size,), lambda i: a[size - 1 - i] + x[i], name="c")

    def steps(sch: Schedule) -> None:
        sch.set_scope("a", "local")
        sch.split("a", "i", [None, 64])
        sch.vectorize("a", "i1")

    module = check([x, c], steps, lambda x: 2 * x[::-1] + x)
    (alloc,) = (op for op in module.walk() if isinstance(op, kernel.AllocOp))
    space = alloc.buffer.type.memory_space
    assert getattr(space, "data", "") == scope
