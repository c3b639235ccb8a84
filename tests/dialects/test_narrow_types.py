"""float16, bfloat16 and int8 with wide sums, from te through CUDA C, OpenCL C and LLVM, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from gpu_programs import CAPABILITIES, compile_cuda, opencl_device, parse, run_opencl
from outputs import one

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.c_family.types import float_digits, rounded
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.device_kernel import DeviceKernel
from loopwright.backends.llvm.types import brief_text
from loopwright.dialects.element import DTYPES, dtype_name, epsilon
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.search.measure.reference import make_reference

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
KINDS = [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32")]
NARROW = ["float16", "bfloat16"]
THREADS, TILE, DEPTH = 4, 4, 8


def matmul(size: int, kind: str, total: str, target: str) -> lw.Schedule:
    a, b = te.placeholder((size, size), name="a", dtype=kind), te.placeholder((size, size), name="b", dtype=kind)
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k].astype(total) * b[k, j].astype(total), axis=k), name="c")
    return lw.Schedule([a, b, c], target=f"{target} {LIMITS}")


def tiled(sch: lw.Schedule, lanes: int) -> None:
    """Blocks of 16 x 16 elements, both operands in shared memory, fetched by vectors of `lanes`."""
    i, j, _ = sch.get_loops("c")
    i0, i1, i2 = sch.split("c", i, [None, THREADS, TILE])
    j0, j1, j2 = sch.split("c", j, [None, THREADS, TILE])
    k0, k1 = sch.split("c", "k", [None, DEPTH])
    sch.reorder("c", i0, j0, i1, j1, k0, k1, i2, j2)
    for loop, thread in ((i0, "blockIdx.y"), (j0, "blockIdx.x"), (i1, "threadIdx.y"), (j1, "threadIdx.x")):
        sch.bind("c", loop, thread)
    copy = sch.cache_write("c", "c", "local")
    sch.reverse_compute_at(copy, j1)
    for block, (row, column) in ((copy, sch.get_loops(copy)[-2:]), ("c", (i2, j2))):
        sch.unroll(block, row)
        sch.vectorize(block, column)
    for operand in "ab":
        shared = sch.cache_read("c", operand, "shared")
        sch.compute_at(shared, k0, unit_loops=True)
        _, y, x, lane = sch.split(shared, sch.fuse(shared, *sch.get_loops(shared)[-2:]), [None, THREADS, 2, lanes])
        sch.bind(shared, y, "threadIdx.y")
        sch.bind(shared, x, "threadIdx.x")
        sch.vectorize(shared, lane)


def draw(kind: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    values = rng.integers(-100, 100, shape) if kind == "int8" else rng.uniform(-1, 1, shape)
    return values.astype(BFLOAT16 if kind == "bfloat16" else kind)


@pytest.mark.parametrize("target", ["opencl", "llvm"])
@pytest.mark.parametrize(("kind", "total"), KINDS)
def test_a_matrix_product_sums_wide(kind: str, total: str, target: str) -> None:
    sch = matmul(32, kind, total, target)
    if target == "opencl":
        opencl_device()
        tiled(sch, 8)
    a, b = draw(kind, 32, 32), draw(kind, 32, 32).T.copy()
    got = one(lw.build(sch)(a, b))
    assert got.dtype == total
    np.testing.assert_allclose(got, a.astype(total) @ b.astype(total), rtol=1e-5, atol=1e-5 if total != "int32" else 0)


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize(("kind", "total"), KINDS)
@pytest.mark.few(5)
def test_a_matrix_product_compiles_for_cuda(kind: str, total: str, capability: int) -> None:
    sch = matmul(64, kind, total, f"cuda warp_size=32 compute_capability={capability}")
    lanes = 16 // np.dtype(kind if kind != "bfloat16" else "int16").itemsize
    tiled(sch, lanes)
    kernel = lw.build(sch)
    element = {"float16": "half", "bfloat16": "bfloat", "int8": "char"}[kind]
    vector = f"{element}_x{lanes}"
    if f"struct __align__(16) {vector}" in kernel.source:
        read = "a" if lanes <= DEPTH else "b"  # tiles of a have rows of DEPTH elements
        assert f"= *reinterpret_cast<const {vector}*>(&{read}[" in kernel.source, "16 bytes are read at once"
    assert isinstance(kernel, DeviceKernel)
    assert all(each.registers > 0 and each.spill_store_bytes == 0 for each in kernel.resources)


@pytest.mark.parametrize("target", ["opencl", "llvm", *(f"cuda compute_capability={c}" for c in CAPABILITIES)])
@pytest.mark.parametrize(("kind", "total"), KINDS)
@pytest.mark.few(8)
def test_a_convolution_gives_the_type_that_is_asked_for(kind: str, total: str, target: str) -> None:
    data = te.placeholder((1, 4, 6, 6), name="data", dtype=kind)
    weight = te.placeholder((8, 4, 3, 3), name="weight", dtype=kind)
    out = topi.nn.relu(topi.nn.conv2d_nchw(data, weight, 1, 1, out_dtype=total))
    sch = lw.Schedule([data, weight, out], target=f"{target} {LIMITS}")
    if target != "llvm":
        conv, relu = "compute", out.op.name
        sch.compute_inline("pad_temp")
        for block in (conv, relu):
            _, f, y, x = sch.get_loops(block)[:4]
            sch.bind(block, f, "blockIdx.x")
            sch.bind(block, y, "threadIdx.y")
            sch.bind(block, x, "threadIdx.x")
    kernel = lw.build(sch)
    if target.startswith("cuda"):
        assert isinstance(kernel, DeviceKernel) and kernel.resources[0].registers > 0
        return
    reference = make_reference(sch.workload)
    assert [a.dtype.name for a in reference.inputs] == [kind, kind]
    (expected,) = reference.expected
    np.testing.assert_allclose(kernel(*reference.inputs), expected, **reference.tolerances[0]._asdict())


ELEMENTWISE = """
func.func @op(%a : memref<16xbf16> {lw.name = "a"}, %b : memref<16xbf16> {lw.name = "b"},
              %s : memref<16xbf16> {lw.name = "s", lw.output}, %m : memref<16xbf16> {lw.name = "m", lw.output},
              %f : memref<16xbf16> {lw.name = "f", lw.output}, %w : memref<16xf32> {lw.name = "w", lw.output},
              %e : memref<16xbf16> {lw.name = "e", lw.output}, %p : memref<16xi1> {lw.name = "p", lw.output}) {
BEGIN
    %x = lw_kernel.load %a[%i] ALIGN : memref<16xbf16> -> vector<8xbf16>
    %y = lw_kernel.load %b[%i] ALIGN : memref<16xbf16> -> vector<8xbf16>
    %sum = arith.addf %x, %y : vector<8xbf16>
    %max = arith.maximumf %x, %y : vector<8xbf16>
    %fma = math.fma %x, %y, %x : vector<8xbf16>
    %wide = arith.extf %x : vector<8xbf16> to vector<8xf32>
    %exp = math.exp %x : vector<8xbf16>
    %less = lw_kernel.compare "olt" %x, %y : vector<8xbf16>
    lw_kernel.store %sum, %s[%i] ALIGN : vector<8xbf16>, memref<16xbf16>
    lw_kernel.store %max, %m[%i] ALIGN : vector<8xbf16>, memref<16xbf16>
    lw_kernel.store %fma, %f[%i] ALIGN : vector<8xbf16>, memref<16xbf16>
    lw_kernel.store %wide, %w[%i] ALIGN : vector<8xf32>, memref<16xf32>
    lw_kernel.store %exp, %e[%i] ALIGN : vector<8xbf16>, memref<16xbf16>
    lw_kernel.store %less, %p[%i] : vector<8xi1>, memref<16xi1>
END
  func.return
}
"""
LAUNCH = """  lw_kernel.launch grid [1, 1, 1] block [2, 1, 1] {
    %t = lw_kernel.thread "threadIdx.x" : index
    %n = arith.constant 8 : index
    %i = arith.muli %t, %n : index"""
LOOP = """  lw_kernel.parallel %t in 2 {
    %n = arith.constant 8 : index
    %i = arith.muli %t, %n : index"""


@pytest.mark.parametrize("target", ["opencl", "llvm", "cuda"])
def test_bfloat16_arithmetic_is_rounded_as_numpys(target: str) -> None:
    text = ELEMENTWISE.replace("BEGIN", LOOP if target == "llvm" else LAUNCH).replace("END", "  }")
    module = parse(text.replace("ALIGN", "align 16"))
    if target == "cuda":
        compile_cuda(module)
        return
    a, b = (draw("bfloat16", *[16] * n) for n in (1, 2))
    b = b[0].copy()
    a[:4], b[:4] = [np.nan, np.inf, 3.0, -0.0], [1.0, -np.inf, 2.0**-9, 0.0]
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    got = run_opencl(module, a, b) if target == "opencl" else lw.build(module)(a, b)
    with np.errstate(all="ignore"):
        expected = [a + b, np.maximum(a, b), (wide_a * wide_b + wide_a).astype(BFLOAT16), wide_a]
        expected += [np.exp(wide_a).astype(BFLOAT16), a < b]
    for name, result, other in zip("smfwep", got, expected, strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_array_equal(result.astype(np.float32), other.astype(np.float32), err_msg=name)


@pytest.mark.parametrize("target", ["opencl", "llvm"])
@pytest.mark.parametrize("source", ["float32", "float64", "int32", "float16"])
def test_conversions_to_bfloat16_and_back(source: str, target: str) -> None:
    """Values between two bfloat16 numbers go to the nearest, ties to the even one; on CPUs doubles in one step."""
    x = te.placeholder((64,), name="x", dtype=source)
    y = te.compute((64,), lambda i: x[i].astype("bfloat16"), name="y")
    z = te.compute((64,), lambda i: y[i].astype(source), name="z")
    sch = lw.Schedule([x, y, z], target=f"{target} {LIMITS}")
    if target == "opencl":
        opencl_device()
        for block in "yz":
            sch.bind(block, "i", "threadIdx.x")
    values = np.linspace(-300, 300, 64)
    if source != "int32":
        values[:8] = [np.inf, -np.inf, 0.0, -0.0, 1.00390625, 1.01171875, 1.0 + 2.0**-7, 2.0**-14]
    if source == "float64" and target == "llvm":
        values[8:11] = [1.00390625 + 2.0**-40, 1.00390625 - 2.0**-40, 3.3953e38]
    values = values.astype(source)
    y_got, z_got = lw.build(sch)(values)
    expected = values.astype(BFLOAT16)
    if source == "float64" and target == "llvm":
        expected[8:10] = [1.0078125, 1.0]
    np.testing.assert_array_equal(y_got.view(np.uint16), expected.view(np.uint16))
    np.testing.assert_array_equal(z_got, expected.astype(source))


DOT = """
func.func @dot(%a : memref<32xi8> {lw.name = "a"}, %b : memref<32xi8> {lw.name = "b"},
               %c : memref<8xi32> {lw.name = "c", lw.output}, %d : memref<8xi32> {lw.name = "d", lw.output}) {
  lw_kernel.launch grid [1, 1, 1] block [8, 1, 1] {
    %t = lw_kernel.thread "threadIdx.x" : index
    %n = arith.constant 4 : index
    %i = arith.muli %t, %n : index
    %x = lw_kernel.load %a[%i] align 4 : memref<32xi8> -> vector<4xi8>
    %y = lw_kernel.load %b[%i] align 4 : memref<32xi8> -> vector<4xi8>
    %v = lw_kernel.convert "extsi" %x : vector<4xi8> -> vector<4xi32>
    %w = lw_kernel.convert "extsi" %y : vector<4xi8> -> vector<4xi32>
    %p = arith.muli %v, %w : vector<4xi32>
    %s = vector.reduction <add>, %p : vector<4xi32> into i32
    %five = arith.constant 5 : i32
    %r = arith.addi %five, %s : i32
    lw_kernel.store %r, %c[%t] : i32, memref<8xi32>
    %q = vector.reduction <maxsi>, %p : vector<4xi32> into i32
    lw_kernel.store %q, %d[%t] : i32, memref<8xi32>
  }
  func.return
}
"""


def test_four_products_of_bytes_are_one_instruction_of_cuda() -> None:
    module = parse(DOT)
    compile_cuda(module)
    module.attributes["lw.target"] = TargetAttr(parse_target("cuda compute_capability=75"))
    source = print_cuda(module).source
    assert source.count("__dp4a(x, y, 5)") == 1 and source.count("__dp4a") == 1
    older = parse(DOT)
    older.attributes["lw.target"] = TargetAttr(parse_target("cuda compute_capability=60"))
    assert "__dp4a" not in print_cuda(older).source
    a, b = (np.random.default_rng(n).integers(-128, 128, 32).astype(np.int8) for n in (0, 1))
    products = a.astype(np.int32).reshape(8, 4) * b.reshape(8, 4)
    for sums, greatest in (run_opencl(parse(DOT), a, b), run_kernel(parse(DOT), [a, b])):
        np.testing.assert_array_equal(sums, products.sum(1) + 5)
        np.testing.assert_array_equal(greatest, products.max(1))


def test_bfloat16_literals() -> None:
    bits = np.arange(1 << 16, dtype=np.uint32) << 16
    for value in bits[::37].view(np.float32):
        number = float(value)
        assert rounded(number, "bf16") == number or number != number
        assert int(brief_text(number)) & 0xFFFF == int(value.view(np.uint32)) >> 16 or number != number
    assert float_digits(0.1, "bf16") == "0.1"
    near = [1.00390625, 1.00390625 + 2.0**-40, 1.01171875, 3.4e38, -3.4e38]
    assert [rounded(v, "bf16") for v in near] == [1.0, 1.0078125, 1.015625, np.inf, -np.inf]


def test_types_meet_in_one_that_holds_both() -> None:
    a, b = (te.placeholder((4,), name=name, dtype=kind) for name, kind in (("a", "float16"), ("b", "bfloat16")))
    c = te.compute((4,), lambda i: a[i] * b[i], name="c")
    assert c.dtype == "float32"
    to_half = te.compute((4,), lambda i: b[i].astype("float16"), name="d")
    kernel = lw.build(lw.Schedule([a, b, c, to_half], target="llvm"))
    x, y = np.array([1, 2, 3, 4], np.float16), np.array([0.5, 300, 1e5, -2], BFLOAT16)
    product, halves = kernel(x, y)
    np.testing.assert_array_equal(product, x.astype(np.float32) * y.astype(np.float32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(halves, y.astype(np.float32).astype(np.float16))


def test_precision_of_each_float_type() -> None:
    for name in ("float16", "bfloat16", "float32", "float64"):
        element = DTYPES[name]
        assert epsilon(element) == float(ml_dtypes.finfo(np.dtype(dtype_name(element))).eps)


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(ValueError, match="bfloat16 need ml_dtypes, which is not installed: pip install"):
        dtype_name(DTYPES["bfloat16"])
    assert dtype_name(DTYPES["float16"]) == "float16"
