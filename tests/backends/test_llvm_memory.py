"""Loads, stores, masks, gathers and buffers through LLVM against the kernel interpreter, which checks every access."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from kernel_elements import DTYPE, values
from kernel_texts import N, compare, copy_text, parse, protect

import loopwright as lw
from loopwright.backends import arrays
from loopwright.backends.build import build
from loopwright.backends.llvm.executable import LlvmExecutable
from loopwright.dialects.target import Target
from loopwright.search.named_workloads import conv2d_nhwc


def check(text: str, *arrays: np.ndarray, vector_bytes: int = 64, cores: int = 1) -> np.ndarray:
    """Run both ways; elements that the interpreter never wrote must not have changed."""
    module = parse(text)
    return compare(build(module, Target(vector_bytes=vector_bytes, cores=cores)), module, *arrays)


@pytest.mark.parametrize("lanes", [None, 1, 3, 4, 8, 16, 31])
@pytest.mark.parametrize("kind", DTYPE)
@pytest.mark.few(25)
def test_plain(kind: str, lanes: int | None) -> None:
    a = values(kind, N)
    out = check(copy_text(kind, lanes, "[%start + 3]", "[%zero + 5]"), a)
    np.testing.assert_array_equal(out[5 : 5 + (lanes or 1)], a[67 : 67 + (lanes or 1)])


@pytest.mark.parametrize("stride", [-5, -4, -3, -2, -1, 0, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("lanes", [3, 4, 16])
@pytest.mark.parametrize("kind", ["f32", "i8", "i1"])
@pytest.mark.few(13)
def test_strided_load(kind: str, lanes: int, stride: int) -> None:
    a = values(kind, N)
    start = 64 if stride < 0 else 10
    if start + stride * (lanes - 1) < 0:
        start = N - 1
    out = check(copy_text(kind, lanes, f"[%zero + {start}] stride {stride}", "[%zero]"), a)
    np.testing.assert_array_equal(out[:lanes], a[start + stride * np.arange(lanes)])


@pytest.mark.parametrize("on", [16, 9])
@pytest.mark.parametrize("edge", ["first", "last"])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5])
@pytest.mark.few(10)
def test_load_stays_inside(stride: int, edge: str, on: int) -> None:
    """A strided load may read between its lanes, never beyond the last one: the page behind is not ours."""
    import mmap

    lanes, page = 16, mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    protect(memory, 0, page)
    protect(memory, 2 * page, page)
    size = (on - 1) * stride + 1
    offset = page if edge == "first" else 2 * page - 4 * size
    a = np.frombuffer(memory, np.float32, size, offset)
    a[...] = np.arange(size)
    array = f"memref<{size}xf32>"
    text = f"""
    func.func @edge(%in : {array} {{lw.name = "in"}}, %out : memref<{lanes}xf32> {{lw.name = "out", lw.output}}) {{
      %zero = arith.constant 0 : index
      %last = arith.constant {on - 1} : index
      %m = lw_kernel.mask %last step -1 : vector<{lanes}xi1>
      %x = lw_kernel.load %in[%zero] stride {stride} mask %m : {array} -> vector<{lanes}xf32>
      lw_kernel.store %x, %out[%zero] : vector<{lanes}xf32>, memref<{lanes}xf32>
      func.return
    }}"""
    out = build(parse(text), Target(vector_bytes=64))(a)
    np.testing.assert_array_equal(out, np.where(np.arange(lanes) < on, np.arange(lanes) * stride, 0))


@pytest.mark.parametrize("stride", [-3, -1, 2, 5])
@pytest.mark.parametrize("lanes", [3, 8, 16])
@pytest.mark.parametrize("kind", ["f32", "f64", "i8", "i1"])
@pytest.mark.few(24)
def test_strided_store(kind: str, lanes: int, stride: int) -> None:
    a = values(kind, N)
    out = check(copy_text(kind, lanes, "[%zero]", f"[%start] stride {stride}"), a)
    np.testing.assert_array_equal(out[64 + stride * np.arange(lanes)], a[:lanes])


MASKS = [("%zero", -1), ("%start", -1), ("%given", -1), ("%given", 1), ("%given", -3), ("%given", 0)]


@pytest.mark.parametrize(("start", "step"), MASKS)
@pytest.mark.parametrize("lanes", [None, 4, 16])
def test_masks(lanes: int | None, start: str, step: int) -> None:
    """The start comes from memory, so that nothing is known of it."""
    mask = f"vector<{lanes}xi1>" if lanes else "i1"
    shape = f"vector<{lanes}xf32>" if lanes else "f32"
    text = f"""
    func.func @masked(%in : memref<{N}xf32>, %at : memref<1xi64>, %out : memref<{N}xf32> {{lw.output}}) {{
      %zero = arith.constant 0 : index
      %start = arith.constant 6 : index
      %wide = lw_kernel.load %at[%zero] : memref<1xi64> -> i64
      %given = arith.index_cast %wide : i64 to index
      %m = lw_kernel.mask {start} step {step} : {mask}
      %x = lw_kernel.load %in[%zero + 7] mask %m : memref<{N}xf32> -> {shape}
      lw_kernel.store %x, %out[%zero] : {shape}, memref<{N}xf32>
      lw_kernel.store %x, %out[%zero + 32] mask %m : {shape}, memref<{N}xf32>
      func.return
    }}"""
    a = values("f32", N)
    module = parse(text)
    kernel = build(module, Target(vector_bytes=64))
    for given in (-20, -9, -1, 0, 4, 7, 16, 1 << 40, -(1 << 40)):
        out = compare(kernel, module, a, np.array([given]))
        first = {"%zero": 0, "%start": 6, "%given": given}[start]
        on = np.array([first + lane * step >= 0 for lane in range(lanes or 1)])
        np.testing.assert_array_equal(out[: len(on)], np.where(on, a[7 : 7 + len(on)], 0))


@pytest.mark.parametrize(
    "access", ["[%zero + 150]", "[%zero + 159] stride -1", "[%zero + 130] stride 3", "[%zero] stride 0"]
)
@pytest.mark.parametrize("kind", DTYPE)
@pytest.mark.few(14)
def test_masked_lanes_touch_no_memory(kind: str, access: str) -> None:
    """Ten lanes of sixteen are inside of the buffer."""
    before = "%last = arith.constant 9 : index\n%m = lw_kernel.mask %last step -1 : vector<16xi1>"
    a = values(kind, N)
    check(copy_text(kind, 16, f"{access} mask %m", "[%zero]", before), a)
    check(copy_text(kind, 16, "[%zero]", f"{access.replace(' 0', ' 1')} mask %m", before), a)


@pytest.mark.parametrize("stride", [0, 1, -1, 2])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", ["f32", "f64", "i8", "i1"])
@pytest.mark.few(16)
def test_conditions_that_are_the_same_for_all_lanes(kind: str, apart: bool, stride: int) -> None:
    """Where it is off, the load and the store are millions of elements away; `apart`: lanes are masked, too."""
    array, shape, mask = f"memref<{N}x{kind}>", f"vector<8x{kind}>", "vector<8xi1>"
    joined = f"%m = arith.andi %all, %some : {mask}" if apart else f"%m = arith.andi %all, %all : {mask}"
    text = f"""
    func.func @same(%in : {array}, %at : memref<1xi64>, %out : {array} {{lw.output}}) {{
      %zero = arith.constant 0 : index
      %seven = arith.constant 7 : index
      %last = arith.constant 4 : index
      %wide = lw_kernel.load %at[%zero] : memref<1xi64> -> i64
      %start = arith.index_cast %wide : i64 to index
      %on = arith.cmpi slt, %start, %seven : index
      %all = vector.broadcast %on : i1 to {mask}
      %some = lw_kernel.mask %last step -1 : {mask}
      {joined}
      %x = lw_kernel.load %in[%start + 30] stride {stride} mask %{"m" if apart else "all"} : {array} -> {shape}
      lw_kernel.store %x, %out[%zero] : {shape}, {array}
      lw_kernel.store %x, %out[%start + 64] stride {stride or 1} mask %{"m" if apart else "all"} : {shape}, {array}
      func.return
    }}"""
    a, module = values(kind, N), parse(text)
    kernel = build(module, Target(vector_bytes=32))
    for start in (0, 5, 1 << 24):
        compare(kernel, module, a, np.array([start]))
    assert apart or stride not in (0, 1) or "masked." not in kernel.source


@pytest.mark.parametrize("lanes", [5, 8, 16])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "i1", "i8", "i32"])
@pytest.mark.few(9)
def test_gather_and_scatter(kind: str, lanes: int) -> None:
    array, shape = f"memref<{N}x{kind}>", f"vector<{lanes}x{kind}>"
    text = f"""
    func.func @places(%in : {array}, %out : {array} {{lw.output}}) {{
      %zero = arith.constant 0 : index
      %seven = arith.constant dense<7> : vector<{lanes}xindex>
      %last = arith.constant {lanes - 2} : index
      %lanes = lw_kernel.lanes : vector<{lanes}xindex>
      %at = arith.muli %lanes, %seven : vector<{lanes}xindex>
      %m = lw_kernel.mask %last step -1 : vector<{lanes}xi1>
      %x = lw_kernel.gather %in[%at] mask %m : {array}, vector<{lanes}xindex>, vector<{lanes}xi1> -> {shape}
      lw_kernel.store %x, %out[%zero + 130] : {shape}, {array}
      lw_kernel.scatter %x, %out[%at] mask %m : {shape}, {array}, vector<{lanes}xindex>, vector<{lanes}xi1>
      func.return
    }}"""
    a = values(kind, N)
    out = check(text, a)
    expected = np.where(np.arange(lanes) < lanes - 1, a[7 * np.arange(lanes)], 0)
    np.testing.assert_array_equal(out[130 : 130 + lanes], expected)


def test_buffers_local_and_global() -> None:
    text = f"""
    func.func @buffers(%in : memref<{N}xf32>, %out : memref<{N}xf32> {{lw.output}}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %ten = arith.constant 10 : index
      %sixteen = arith.constant 16 : index
      %big = lw_kernel.alloc "big" : memref<100000xf32>
      %deep = lw_kernel.alloc "deep" : memref<100000xf32, "local">
      scf.for %i = %zero to %ten step %one {{
        %small = lw_kernel.alloc "small" : memref<32xf32, "local">
        %at = arith.muli %i, %sixteen : index
        %x = lw_kernel.load %in[%at] : memref<{N}xf32> -> vector<16xf32>
        lw_kernel.store %x, %small[%zero + 16] : vector<16xf32>, memref<32xf32, "local">
        %y = lw_kernel.load %small[%zero + 16] : memref<32xf32, "local"> -> vector<16xf32>
        lw_kernel.store %y, %big[%at + 99000] : vector<16xf32>, memref<100000xf32>
        lw_kernel.store %y, %deep[%at + 99000] : vector<16xf32>, memref<100000xf32, "local">
      }}
      scf.for %i = %zero to %ten step %one {{
        %at = arith.muli %i, %sixteen : index
        %x = lw_kernel.load %big[%at + 99000] : memref<100000xf32> -> vector<16xf32>
        %y = lw_kernel.load %deep[%at + 99000] : memref<100000xf32, "local"> -> vector<16xf32>
        %z = arith.addf %x, %y : vector<16xf32>
        lw_kernel.store %z, %out[%at] : vector<16xf32>, memref<{N}xf32>
        lw_kernel.prefetch %in[%at + 123456] : memref<{N}xf32>
      }}
      func.return
    }}"""
    a = values("f32", N)
    np.testing.assert_array_equal(check(text, a), 2 * a)


def test_control_flow() -> None:
    text = """
    func.func @flow(%in : memref<4xi64>, %out : memref<64xi64> {lw.output}) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %three = arith.constant 3 : index
      %low64 = lw_kernel.load %in[%zero] : memref<4xi64> -> i64
      %high64 = lw_kernel.load %in[%one] : memref<4xi64> -> i64
      %low = arith.index_cast %low64 : i64 to index
      %high = arith.index_cast %high64 : i64 to index
      scf.for %i = %low to %high step %three {
        %even = arith.remsi %i, %three : index
        %c = arith.cmpi eq, %even, %one : index
        scf.if %c {
          scf.for %j = %zero to %one step %one {
            lw_kernel.store %low64, %out[%i] : i64, memref<64xi64>
          }
        } else {
          lw_kernel.store %high64, %out[%i] : i64, memref<64xi64>
          scf.for %j = %one to %one step %one {
            lw_kernel.store %low64, %out[%i] : i64, memref<64xi64>
          }
        }
        %last = arith.addi %i, %one : index
        %d = arith.cmpi slt, %last, %high : index
        scf.if %d {
          lw_kernel.store %low64, %out[%last] : i64, memref<64xi64>
        }
      }
      func.return
    }"""
    for low, high in ((0, 0), (5, 3), (1, 20), (3, 61), (2, 3)):
        check(text, np.array([low, high, 0, 0]))


def random_program(seed: int) -> str:
    """Return a random nest of loops that moves data between buffers, with masks, strides and constant parts."""
    rng = random.Random(seed)
    kind = rng.choice(["f32", "f64", "i32", "i8"])
    lanes = rng.choice([4, 5, 8, 16])
    shape, array = f"vector<{lanes}x{kind}>", f"memref<{N}x{kind}>"
    trips = [rng.choice([1, 2, 3]) for _ in range(2)]
    add = "arith.addf" if kind[0] == "f" else "arith.addi"
    lines = [
        f"func.func @random(%in : {array}, %out : {array} {{lw.output}}) {{",
        *(f"%c{n} = arith.constant {n} : index" for n in range(8)),
        f'%t = lw_kernel.alloc "t" : {array}',
        f'%u = lw_kernel.alloc "u" : memref<{N}x{kind}, "local">',
        f"%z = arith.constant dense<{'1.0' if kind[0] == 'f' else '1'}> : {shape}",
        *(f"lw_kernel.store %z, %t[%c0 + {n}] : {shape}, {array}" for n in range(0, N - lanes, lanes)),
        *(
            f'lw_kernel.store %z, %u[%c0 + {n}] : {shape}, memref<{N}x{kind}, "local">'
            for n in range(0, N - lanes, lanes)
        ),
        f"lw_kernel.store %z, %t[%c0 + {N - lanes}] : {shape}, {array}",
        f'lw_kernel.store %z, %u[%c0 + {N - lanes}] : {shape}, memref<{N}x{kind}, "local">',
        f"scf.for %i = %c0 to %c{trips[0]} step %c1 {{",
        f"scf.for %j = %c0 to %c{trips[1]} step %c1 {{",
        f"%s = arith.muli %i, %c{rng.randint(1, 7)} : index",
        "%a = arith.addi %s, %j : index",
        f"%m = lw_kernel.mask %a step {rng.choice([-1, 1, -2])} : vector<{lanes}xi1>",
    ]
    buffers = {"in": array, "t": array, "u": f'memref<{N}x{kind}, "local">'}
    held: list[str] = []
    for step in range(rng.randint(3, 9)):
        name = rng.choice(list(buffers))
        stride = rng.choice([1, 1, 1, 2, 3, -1, 0])
        place = rng.choice(["%a", "%i", "%c0"])
        offset = rng.randint(16, 40) if stride >= 0 else rng.randint(60, 90)
        mask = rng.choice(["", " mask %m"])
        where = f"[{place} + {offset}]" + (f" stride {stride}" if stride != 1 else "") + mask
        if rng.random() < 0.5 or not held or stride == 0 or name == "in":
            lines.append(f"%x{step} = lw_kernel.load %{name}{where} : {buffers[name]} -> {shape}")
            held.append(f"%x{step}")
        else:
            lines.append(f"lw_kernel.store {rng.choice(held)}, %{name}{where} : {shape}, {buffers[name]}")
        if len(held) > 1:
            lines.append(f"%y{step} = {add} {rng.choice(held)}, {rng.choice(held)} : {shape}")
            held.append(f"%y{step}")
    lines.append(f"lw_kernel.store {held[-1]}, %out[%a + {rng.randint(0, 20)}] : {shape}, {array}")
    return "\n".join([*lines, "}", "}", "func.return", "}"])


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.few(8)
def test_random_programs(seed: int, vector_bytes: int) -> None:
    text = random_program(seed)
    kind = text.partition(f"memref<{N}x")[2].partition(">")[0]
    check(text, values(kind, N, seed), vector_bytes=vector_bytes)


def test_workspaces_are_zeros_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the memory held: lanes beyond an edge read places of it that nothing is written to."""
    empty = arrays.aligned_empty

    def used(shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        found = empty(shape, dtype)
        found.view(np.uint8)[...] = 0x11
        return found

    monkeypatch.setattr(arrays, "aligned_empty", used)
    task = lw.SearchTask(lambda: conv2d_nhwc(1, 8, 8, 8, 9, 3, 3), target="llvm cores=1")
    sketch = next(sketch for sketch in task.sketches if sketch.name.endswith("root"))
    executable = task.build(sketch.schedule(sketch.default))._executable
    assert isinstance(executable, LlvmExecutable)
    workspace = executable._workspace
    assert len(workspace) > 0
    assert not workspace.any()


@pytest.mark.parametrize("first", [0, 640, 4032])
def test_results_are_apart_from_what_is_read(first: int) -> None:
    raw = np.zeros(5 * arrays.PAGE_BYTES, np.uint8)
    start = -raw.ctypes.data % arrays.PAGE_BYTES + first
    data, weight = raw[start : start + 2 * arrays.PAGE_BYTES], np.zeros(64, np.float32)
    shapes = [((40, 40), np.float32), ((30, 60), np.float32), ((8,), np.float32)]
    one, other, small = arrays.aligned_results(shapes, weight, data)
    for number, result in enumerate((one, other), 1):
        assert (result.ctypes.data - data.ctypes.data) % arrays.PAGE_BYTES == arrays.place_in_page(number)
    assert all(result.ctypes.data % arrays.CACHE_LINE_BYTES == 0 for result in (one, other, small))
    assert [result.shape for result in (one, other, small)] == [shape for shape, _ in shapes]


def test_results_of_no_inputs_are_aligned() -> None:
    (result,) = arrays.aligned_results([((3000,), "float32")])
    assert result.ctypes.data % arrays.CACHE_LINE_BYTES == 0
