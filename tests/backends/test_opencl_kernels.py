"""Kernels written by hand on OpenCL against NumPy and the interpreter, and as CUDA C through the compiler."""

import random

import numpy as np
import pytest
from gpu_kernels import MATMUL
from gpu_programs import compile_cuda, parse, run_opencl

from loopwright.backends.cuda.compile import compile_module, print_cuda
from loopwright.backends.opencl.compile import print_opencl
from loopwright.backends.opencl.platform import MissingOpenCl
from loopwright.backends.unsupported import UnsupportedError
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.target import Target, TargetAttr


def test_tiled_matmul_through_shared_memory() -> None:
    a, b = (np.random.default_rng(n).standard_normal(s).astype(np.float32) for n, s in ((0, (64, 32)), (1, (32, 64))))
    (c,) = run_opencl(parse(MATMUL), a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    module = parse(MATMUL)
    compile_cuda(module)
    source = print_cuda(module).source
    assert "__launch_bounds__(16)" in source
    assert "const float* __restrict__ A" in source
    assert "reinterpret_cast<const float4*>(&Bs[" in source
    assert source.count("__syncthreads();") == 2
    assert source.count("#pragma unroll\n") == 2 and "#pragma unroll 4\n" in source


def test_launches_pass_workspaces_on() -> None:
    """A sum in two launches: partial sums of a block through shared memory, then one thread adds them up."""
    text = """
func.func @sum(%x : memref<256xf32> {lw.name = "x"}, %y : memref<1xf32> {lw.name = "y", lw.output}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %eight = arith.addi %c8, %c0 : index
  %partial = lw_kernel.alloc "partial" : memref<8xf32>
  lw_kernel.launch grid [8, 1, 1] block [32, 1, 1] {
    %s = lw_kernel.alloc "s" : memref<32xf32, "shared">
    %b = lw_kernel.thread "blockIdx.x" : index
    %t = lw_kernel.thread "threadIdx.x" : index
    %c32 = arith.constant 32 : index
    %c16 = arith.constant 16 : index
    %c2 = arith.constant 2 : index
    %i0 = arith.muli %b, %c32 : index
    %i = arith.addi %i0, %t : index
    %v = lw_kernel.load %x[%i] stride 0 : memref<256xf32> -> f32
    lw_kernel.store %v, %s[%t] stride 0 : f32, memref<32xf32, "shared">
    lw_kernel.barrier
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %acc = lw_kernel.alloc "acc" : memref<1xf32, "local">
      lw_kernel.store %zero, %acc[%c0] stride 0 : f32, memref<1xf32, "local">
      scf.for %j = %c0 to %c32 step %c1 {
        %p = lw_kernel.load %s[%j] stride 0 : memref<32xf32, "shared"> -> f32
        %o = lw_kernel.load %acc[%c0] stride 0 : memref<1xf32, "local"> -> f32
        %n = arith.addf %o, %p : f32
        lw_kernel.store %n, %acc[%c0] stride 0 : f32, memref<1xf32, "local">
      }
      %total = lw_kernel.load %acc[%c0] stride 0 : memref<1xf32, "local"> -> f32
      lw_kernel.store %total, %partial[%b] stride 0 : f32, memref<8xf32>
    }
  }
  lw_kernel.launch grid [1, 1, 1] block [1, 1, 1] {
    %acc = lw_kernel.alloc "acc" : memref<1xf32, "local">
    lw_kernel.store %zero, %acc[%c0] stride 0 : f32, memref<1xf32, "local">
    scf.for %j = %c0 to %eight step %c1 {
      %p = lw_kernel.load %partial[%j] stride 0 : memref<8xf32> -> f32
      %o = lw_kernel.load %acc[%c0] stride 0 : memref<1xf32, "local"> -> f32
      %n = arith.addf %o, %p : f32
      lw_kernel.store %n, %acc[%c0] stride 0 : f32, memref<1xf32, "local">
    }
    %total = lw_kernel.load %acc[%c0] stride 0 : memref<1xf32, "local"> -> f32
    lw_kernel.store %total, %y[%c0] stride 0 : f32, memref<1xf32>
  }
  func.return
}
"""
    x = np.arange(256, dtype=np.float32)
    (y,) = run_opencl(parse(text), x)
    assert y[0] == x.sum()
    module = parse(text)
    compile_cuda(module)
    kernel = print_cuda(module)
    assert kernel.workspaces == (32,)
    assert [(launch.grid, launch.block, launch.buffers) for launch in kernel.launches] == [
        ((8, 1, 1), (32, 1, 1), (0, 2)),
        ((1, 1, 1), (1, 1, 1), (1, 2)),
    ]
    assert "acc += partial[j];" in kernel.source, "a buffer of one element is a variable"


def launch(body: str, arguments: str, threads: int) -> str:
    return f"""
func.func @k({arguments}) {{
  %c0 = arith.constant 0 : index
  lw_kernel.launch grid [1, 1, 1] block [{threads}, 1, 1] {{
    %t = lw_kernel.thread "threadIdx.x" : index
    {body}
  }}
  func.return
}}
"""


def test_masks() -> None:
    """Tails by lane masks, by one condition for all lanes, and on scalars; lanes that are off touch nothing."""
    body = """
    %c4 = arith.constant 4 : index
    %c3 = arith.constant 3 : index
    %c17 = arith.constant 17 : index
    %i = arith.muli %t, %c4 : index
    %left = arith.subi %c17, %i : index
    %one = arith.constant 1 : index
    %start = arith.subi %left, %one : index
    %m = lw_kernel.mask %start step -1 : vector<4xi1>
    %v = lw_kernel.load %x[%i] mask %m align 16 : memref<17xf32> -> vector<4xf32>
    lw_kernel.store %v, %a[%i] mask %m align 16 : vector<4xf32>, memref<17xf32>
    %inside = arith.cmpi slt, %t, %c3 : index
    %mm = vector.broadcast %inside : i1 to vector<4xi1>
    %w = lw_kernel.load %x[%i] mask %mm align 16 : memref<17xf32> -> vector<4xf32>
    lw_kernel.store %w, %b[%i] mask %mm align 16 : vector<4xf32>, memref<17xf32>
    %s = lw_kernel.load %x[%t] stride 0 mask %inside : memref<17xf32> -> f32
    lw_kernel.store %s, %c[%t] stride 0 : f32, memref<5xf32>
    lw_kernel.store %s, %d[%t + 5] stride 0 mask %inside : f32, memref<10xf32>
"""
    arguments = ", ".join(
        f'%{n} : memref<{s}xf32> {{lw.name = "{n}"{o}}}'
        for n, s, o in (("x", 17, ""), *((n, s, ", lw.output") for n, s in zip("abcd", (17, 17, 5, 10), strict=True)))
    )
    module = parse(launch(body, arguments, 5))
    x = np.arange(1, 18, dtype=np.float32)
    a, b, c, d = run_opencl(module, x)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b[:12], x[:12])
    np.testing.assert_array_equal(c, [1, 2, 3, 0, 0])
    np.testing.assert_array_equal(d[5:8], [1, 2, 3])
    source = print_cuda(module).source
    assert "const bool inside = t < 3;" in source
    assert "if (inside) w = *reinterpret_cast<const float4*>(&x[t * 4]);" in source
    compile_cuda(module)


def test_gather_and_scatter() -> None:
    body = """
    %c4 = arith.constant 4 : index
    %c15 = arith.constant 15 : index
    %l = lw_kernel.lanes : vector<4xindex>
    %i = arith.muli %t, %c4 : index
    %iv = vector.broadcast %i : index to vector<4xindex>
    %p = arith.addi %iv, %l : vector<4xindex>
    %ends = vector.broadcast %c15 : index to vector<4xindex>
    %q = arith.subi %ends, %p : vector<4xindex>
    %m = lw_kernel.compare "sge" %q, %iv : vector<4xindex>
    %g = lw_kernel.gather %x[%q] mask %m : memref<16xi32>, vector<4xindex>, vector<4xi1> -> vector<4xi32>
    lw_kernel.scatter %g, %y[%p] mask %m : vector<4xi32>, memref<16xi32>, vector<4xindex>, vector<4xi1>
"""
    arguments = '%x : memref<16xi32> {lw.name = "x"}, %y : memref<16xi32> {lw.name = "y", lw.output}'
    module = parse(launch(body, arguments, 4))
    x = np.arange(16, dtype=np.int32)
    (y,) = run_opencl(module, x)
    p = np.arange(16)
    on = 15 - p >= p // 4 * 4
    np.testing.assert_array_equal(y[on], x[::-1][on])
    assert 0 < on.sum() < 16
    compile_cuda(module)


@pytest.mark.parametrize(
    ("kind", "lanes", "vector"), [("f16", 8, "half_x8"), ("i8", 16, "char_x16"), ("f64", 4, "double2")]
)
@pytest.mark.few(2)
def test_widest_accesses(kind: str, lanes: int, vector: str) -> None:
    body = f"""
    %n = arith.constant {lanes} : index
    %i = arith.muli %t, %n : index
    %v = lw_kernel.load %x[%i] align 16 : memref<64x{kind}> -> vector<{lanes}x{kind}>
    %w = lw_kernel.load %x[%i] align 2 : memref<64x{kind}> -> vector<{lanes}x{kind}>
    lw_kernel.store %v, %y[%i] align 16 : vector<{lanes}x{kind}>, memref<64x{kind}>
    lw_kernel.store %w, %z[%i] : vector<{lanes}x{kind}>, memref<64x{kind}>
"""
    arguments = f"%x : memref<64x{kind}>, %y : memref<64x{kind}> {{lw.output}}, %z : memref<64x{kind}> {{lw.output}}"
    module = parse(launch(body, arguments, 64 // lanes))
    x = np.arange(64).astype({"f16": np.float16, "i8": np.int8, "f64": np.float64}[kind])
    for result in run_opencl(module, x):
        np.testing.assert_array_equal(result, x)
    source = print_cuda(module).source
    assert source.count(f"reinterpret_cast<const {vector}*>(") == lanes * x.itemsize // 16
    compile_cuda(module)


def test_wide_accumulation() -> None:
    """int8 products in int32, half products in single precision."""
    body = """
    %c4 = arith.constant 4 : index
    %i = arith.muli %t, %c4 : index
    %a = lw_kernel.load %x[%i] align 4 : memref<64xi8> -> vector<4xi8>
    %aw = lw_kernel.convert "extsi" %a : vector<4xi8> -> vector<4xi32>
    %p = arith.muli %aw, %aw : vector<4xi32>
    %s = vector.reduction <add>, %p : vector<4xi32> into i32
    lw_kernel.store %s, %y[%t] stride 0 : i32, memref<16xi32>
    %h = lw_kernel.load %u[%i] align 8 : memref<64xf16> -> vector<4xf16>
    %hw = arith.extf %h : vector<4xf16> to vector<4xf32>
    %q = arith.mulf %hw, %hw : vector<4xf32>
    %f = vector.reduction <add>, %q : vector<4xf32> into f32
    lw_kernel.store %f, %z[%t] stride 0 : f32, memref<16xf32>
"""
    arguments = (
        "%x : memref<64xi8>, %u : memref<64xf16>, %y : memref<16xi32> {lw.output}, %z : memref<16xf32> {lw.output}"
    )
    module = parse(launch(body, arguments, 16))
    x = np.random.default_rng(0).integers(-128, 128, 64).astype(np.int8)
    u = np.random.default_rng(1).standard_normal(64).astype(np.float16)
    y, z = run_opencl(module, x, u)
    np.testing.assert_array_equal(y, (x.astype(np.int32) ** 2).reshape(16, 4).sum(1))
    np.testing.assert_allclose(z, (u.astype(np.float32) ** 2).reshape(16, 4).sum(1), rtol=1e-6)
    compile_cuda(module)


SHUFFLE = launch(
    """
    %v = lw_kernel.load %x[%t] stride 0 : memref<64xf32> -> f32
    %a = lw_kernel.shuffle %v, 16 : f32
    %b = arith.maximumf %v, %a : f32
    lw_kernel.store %b, %y[%t] stride 0 : f32, memref<64xf32>
""",
    "%x : memref<64xf32>, %y : memref<64xf32> {lw.output}",
    64,
)


def test_shuffles() -> None:
    module = parse(SHUFFLE)
    compile_cuda(module)
    source = print_cuda(module).source
    assert "__shfl_xor_sync(0xffffffffu, v, 16)" in source
    assert "max.NaN.f32" in source
    with pytest.raises(MissingOpenCl, match=r"kernel 'k_k0' uses cl_khr_subgroup_shuffle, .* has none"):
        run_opencl(module, np.zeros(64, np.float32))


def test_shared_memory_above_the_static_limit() -> None:
    body = """
    %s = lw_kernel.alloc "s" : memref<8192xf32, "shared">
    %u = lw_kernel.alloc "u" : memref<8193xf16, "shared">
    %v = lw_kernel.load %x[%t] stride 0 : memref<64xf32> -> f32
    lw_kernel.store %v, %s[%t + 100] stride 0 : f32, memref<8192xf32, "shared">
    %h = arith.truncf %v : f32 to f16
    lw_kernel.store %h, %u[%t + 8129] stride 0 : f16, memref<8193xf16, "shared">
    lw_kernel.barrier
    %63 = arith.constant 63 : index
    %r = arith.subi %63, %t : index
    %a = lw_kernel.load %s[%r + 100] stride 0 : memref<8192xf32, "shared"> -> f32
    %b = lw_kernel.load %u[%r + 8129] stride 0 : memref<8193xf16, "shared"> -> f16
    %bw = arith.extf %b : f16 to f32
    %c = arith.addf %a, %bw : f32
    lw_kernel.store %c, %y[%t] stride 0 : f32, memref<64xf32>
"""
    text = launch(body, "%x : memref<64xf32>, %y : memref<64xf32> {lw.output}", 64)
    module = parse(text)
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run_opencl(module, x)[0], 2 * x[::-1])
    kernel = print_cuda(module)
    assert kernel.launches[0].static_shared_bytes == 0
    assert kernel.launches[0].dynamic_shared_bytes == 32768 + 16400
    assert "float* const s = reinterpret_cast<float*>(shared_memory + 0);" in kernel.source
    compile_cuda(module)
    small = parse(text.replace("8193xf16", "8192xf16").replace("8129]", "8128]"))
    assert print_cuda(small).launches[0].static_shared_bytes == 49152


def test_addresses_beyond_32_bits() -> None:
    text = launch(
        """
    %big = arith.constant 4294967296 : index
    %p = arith.addi %t, %big : index
    %v = lw_kernel.load %x[%p + 4] stride 0 : memref<8589934592xi8> -> i8
    lw_kernel.store %v, %y[%t] stride 0 : i8, memref<64xi8>
""",
        "%x : memref<8589934592xi8>, %y : memref<64xi8> {lw.output}",
        64,
    )
    source = print_cuda(parse(text)).source
    assert "const long long t = (int)threadIdx.x;" in source
    assert "x[t + 4294967300]" in source
    assert "const long t = (int)get_local_id(0);" in print_opencl(parse(text)).source
    compile_cuda(parse(text))


def test_resources_are_in_the_artifact() -> None:
    module = parse(MATMUL)
    module.attributes["lw.target"] = TargetAttr(Target(kind="cuda", compute_capability=90))
    (resources,) = compile_module(module).resources
    assert resources.name == "matmul_k0"
    assert resources.shared_bytes == 1024
    assert 16 < resources.registers < 128
    assert (resources.stack_bytes, resources.spill_store_bytes, resources.spill_load_bytes) == (0, 0, 0)


def test_names_are_legal_and_apart() -> None:
    body = """
    %float = lw_kernel.load %int[%t] stride 0 : memref<8xf32> -> f32
    %exp = math.exp %float : f32
    %k_k0 = arith.addf %exp, %float : f32
    %t2 = arith.addf %k_k0, %k_k0 : f32
    lw_kernel.store %t2, %float4[%t] stride 0 : f32, memref<8xf32>
"""
    module = parse(launch(body, "%int : memref<8xf32>, %float4 : memref<8xf32> {lw.output}", 8))
    x = np.linspace(0, 1, 8, dtype=np.float32)
    np.testing.assert_allclose(run_opencl(module, x)[0], 2 * (np.exp(x) + x), rtol=1e-6)
    compile_cuda(module)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('%b = lw_kernel.alloc "b" : memref<4xf32>', "buffer 'b' in a launch must be shared or local, got 'global'"),
        ("lw_kernel.parallel %i in 8 { %q = arith.addi %i, %i : index }", "CUDA C has no lw_kernel.parallel"),
    ],
)
def test_refusals(body: str, message: str) -> None:
    user = "%one = arith.constant 1.0 : f32\nlw_kernel.store %one, %b[%t] stride 0 : f32, memref<4xf32>"
    text = launch(body + ("\n" + user if "alloc" in body else ""), "%y : memref<8xf32> {lw.output}", 4)
    with pytest.raises(UnsupportedError, match=message):
        print_cuda(parse(text))


class Writer:
    """Random straight-line code on small buffers of integers: what is read and written overlaps in many ways."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values: dict[int, list[str]] = {1: [], 2: [], 4: []}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def place(self, lanes: int) -> tuple[str, int]:
        index = self.random.choice(["%c0", "%i", "%j"])
        return index, self.random.randint(0, 8 - lanes)

    def buffer(self) -> tuple[str, str]:
        return self.random.choice([("%r", 'memref<16xi32, "local">'), ("%y", "memref<16xi32>")])

    def statement(self) -> None:
        lanes = self.random.choice([1, 1, 2, 4])
        kind = f"vector<{lanes}xi32>" if lanes > 1 else "i32"
        known = self.values[lanes]
        action = self.random.choice(["load", "load", "store", "store", "add", "if"])
        if action == "load" or not known:
            (name, buffer), (index, offset) = self.buffer(), self.place(lanes)
            value = self.fresh()
            self.lines.append(f"{value} = lw_kernel.load {name}[{index} + {offset}] : {buffer} -> {kind}")
            known.append(value)
        elif action == "add":
            value = self.fresh()
            operator = self.random.choice(["addi", "subi", "muli", "maxsi"])
            self.lines.append(f"{value} = arith.{operator} {self.take(known)}, {self.take(known)} : {kind}")
            known.append(value)
        elif action == "store":
            (name, buffer), (index, offset) = self.buffer(), self.place(lanes)
            self.lines.append(f"lw_kernel.store {self.take(known)}, {name}[{index} + {offset}] : {kind}, {buffer}")
        else:
            before = {lanes: list(values) for lanes, values in self.values.items()}
            self.lines.append("scf.if %truth {")
            for _ in range(3):
                self.statement()
            self.lines.append("}")
            self.values = before

    def take(self, known: list[str]) -> str:
        """Take a value, mostly for the last time, so that it stays part of an expression."""
        value = self.random.choice(known)
        if self.random.random() < 0.8 and len(known) > 1:
            known.remove(value)
        return value


HEAD = """
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %one = lw_kernel.load %x[%c0 + 1] stride 0 : memref<16xi32> -> i32
  %i = arith.index_cast %one : i32 to index
  %j = arith.addi %i, %c3 : index
  %truth = arith.cmpi slt, %i, %c3 : index
  %r = lw_kernel.alloc "r" : memref<16xi32, "local">
"""


@pytest.mark.parametrize("group", range(8))
@pytest.mark.few(1)
def test_expressions_keep_the_order_of_memory(group: int) -> None:
    """Loads move into expressions only past stores that do not concern them: as the interpreter says."""
    for seed in range(group * 5, group * 5 + 5):
        writer = Writer(seed)
        for _ in range(40):
            writer.statement()
        fill = [
            f"%f{n} = lw_kernel.load %x[%c0 + {n}] stride 0 : memref<16xi32> -> i32\n"
            f'lw_kernel.store %f{n}, %r[%c0 + {n}] stride 0 : i32, memref<16xi32, "local">\n'
            f"lw_kernel.store %f{n}, %y[%c0 + {n}] stride 0 : i32, memref<16xi32>"
            for n in range(16)
        ]
        body = "\n".join([HEAD, *fill, *writer.lines])
        head = "func.func @k(%x : memref<16xi32>, %y : memref<16xi32> {lw.output}) {"
        x = np.arange(16, dtype=np.int32)
        (expected,) = run_kernel(parse(f"{head}\n{body}\nfunc.return\n}}"), [x])
        inside = f"{head}\nlw_kernel.launch grid [1, 1, 1] block [1, 1, 1] {{\n{body}\n}}\nfunc.return\n}}"
        (got,) = run_opencl(parse(inside), x)
        np.testing.assert_array_equal(got, expected, err_msg=f"seed {seed}")
