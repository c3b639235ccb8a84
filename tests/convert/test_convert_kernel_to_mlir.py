"""Kernels as memref, arith, scf, vector and gpu, compiled by MLIR's own passes, against what they come from."""

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np
import pytest
import stock_mlir
from effort import everything, exploring
from gpu_kernels import MATMUL
from kernel_elements import DTYPE, values
from kernel_texts import N, copy_text
from lowered_runs import exact_inputs
from random_gpu_schedules import gpu_scheduled
from sample_workloads import SAMPLES
from sketch_rows import anywhere
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from loopwright import te
from loopwright.backends.context import create_context
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.convert.convert_kernel_to_mlir import convert_kernel_to_mlir
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.task import SearchTask

CPU = "llvm cores=2 vector_bytes=32"
CUDA = "cuda max_threads_per_block=64 max_shared_bytes=49152 warp_size=32 max_vthreads=8 compute_capability=90"
LONG = "winograd_nhwc"
"""The sample whose kernel for a CPU takes the longest (27 s)."""
SEEDS = range(1000, 2000) if exploring() else range(40 if everything() else 12)


def parse(text: str) -> ModuleOp:
    module = Parser(create_context(), text).parse_module()
    module.verify()
    return module


def converted(kernel: ModuleOp) -> ModuleOp:
    """Return what a kernel becomes: nothing of ours is left, and its text parses back to the same, in both forms."""
    module = kernel.clone()
    convert_kernel_to_mlir(module)
    module.verify()
    assert not {op.name for op in module.walk() if op.name.startswith("lw")}
    printed = str(module)
    for text in (printed, stock_mlir.generic(module)):
        again = Parser(stock_mlir.context(), text).parse_module()
        again.verify()
        assert str(again) == printed
    return module


def hold(kernel: ModuleOp, inputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray], shown: str) -> None:
    """Run a kernel as MLIR has it on arrays, on the CPU or as threads, and compare."""
    module = converted(kernel)
    outputs = [stock_mlir.unwritten_like(array) for array in wanted]
    launches = any(not isinstance(op, FuncOp) for op in module.body.block.ops)
    (stock_mlir.run_launches if launches else stock_mlir.run)(module, inputs, outputs)
    for got, expected in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5, err_msg=shown)


@cache
def schedules(name: str, target: str) -> list[str]:
    """A schedule of each sketch of a sample, drawn from a seed."""
    task, rng = SearchTask(SAMPLES[name], target=target), np.random.default_rng(len(name))
    return [str(sketch.schedule(row)) for sketch in task.sketches for row in anywhere(sketch, rng, 1)]


def check_sample(name: str, target: str) -> None:
    workload = te.create_module(SAMPLES[name](), target)
    inputs = exact_inputs(workload)
    wanted = run_te(workload, inputs)
    drawn = schedules(name, target)
    plain = ["lw-lower-te-to-loop"] if target == CPU else []
    for schedule in [*plain, *(drawn if everything() else drawn[:1])]:
        kernel = workload.clone()
        apply_schedule(kernel, schedule)
        lower_loop_to_kernel(kernel)
        if "lw-tensorize" in schedule:
            with pytest.raises(PassFailedException, match=r"fragment_load is an instruction of one device, which"):
                convert_kernel_to_mlir(kernel)
        else:
            hold(kernel, inputs, wanted, schedule)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", [name for name in SAMPLES if name != LONG])
def test_samples_for_a_cpu(name: str) -> None:
    check_sample(name, CPU)


@pytest.mark.slow
def test_the_longest_sample_for_a_cpu() -> None:
    check_sample(LONG, CPU)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_for_a_gpu(name: str) -> None:
    check_sample(name, CUDA)


@pytest.mark.slow(1.2)
def test_random_gpu_schedules() -> None:
    """Shared memory, barriers, virtual threads, pipelines, several launches with global buffers in between."""
    ran = 0
    for seed in SEEDS:
        workload, kernel, steps = gpu_scheduled(Random(seed))
        try:
            lower_loop_to_kernel(kernel)
        except PassFailedException:
            continue
        inputs = exact_inputs(workload)
        hold(kernel, inputs, run_te(workload, inputs), f"seed {seed}: {steps}")
        ran += 1
    assert ran > len(SEEDS) // 2


def test_nvidia_code_is_made_of_kernels_for_gpus() -> None:
    """MLIR's pipeline for NVIDIA's devices takes shared memory, barriers and shuffles as they are written."""
    workload = te.create_module(SAMPLES["sum_all"](), CUDA)
    apply_schedule(workload, schedules("sum_all", CUDA)[0])
    lower_loop_to_kernel(workload)
    passes = "gpu-lower-to-nvvm-pipeline{cubin-chip=sm_90 cubin-features=+ptx80 cubin-format=isa}"
    code = stock_mlir.mlir_opt(stock_mlir.generic(converted(workload)), passes)
    for piece in (".entry main_0", ".shared", "bar.sync", "shfl.sync.bfly"):
        assert piece in code


# -- operations one by one --------------------------------------------------------------------------------------------


def check_program(text: str, *arrays: np.ndarray) -> np.ndarray:
    """Run a kernel by MLIR and by the interpreter; elements that this never wrote are not compared."""
    module = parse(text)
    (wanted,) = run_kernel(module, arrays)
    out = stock_mlir.unwritten_like(wanted)
    kept = out.copy()
    stock_mlir.run(converted(module), arrays, [out])
    written = ~np.isnan(wanted) if wanted.dtype.kind == "f" else wanted != _unwritten(wanted.dtype)
    np.testing.assert_array_equal(out[written], wanted[written])
    np.testing.assert_array_equal(out[~written], kept[~written])
    return out


def _unwritten(dtype: np.dtype) -> int:
    return 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)


def mask(lanes: int, start: int, step: int) -> str:
    return f"%m0 = arith.constant {start} : index\n%m = lw_kernel.mask %m0 step {step} : vector<{lanes}xi1>"


@pytest.mark.few(4)
@pytest.mark.parametrize("stride", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("kind", ["f16", "f64", "i8", "i1"])
def test_strided_loads_and_stores(kind: str, stride: int) -> None:
    check_program(copy_text(kind, 4, f"[%start + 3] stride {stride}", "[%zero]"), values(kind, N))
    if stride:
        check_program(copy_text(kind, 4, "[%zero]", f"[%start + 3] stride {stride}"), values(kind, N))


@pytest.mark.few(1)
@pytest.mark.parametrize("stride", [-2, -1, 0, 1, 3])
@pytest.mark.parametrize(("start", "step"), [(2, -1), (5, -2), (-3, 1), (-4, 3), (9, -1), (-1, -1), (0, 0)])
def test_masked_loads_and_stores(start: int, step: int, stride: int) -> None:
    """Lanes that are off would leave the buffer on both ends, by megabytes."""
    before = mask(8, start, step)
    check_program(copy_text("f32", 8, f"[%start] stride {stride} mask %m", "[%zero]", before), values("f32", N))
    if stride:
        check_program(copy_text("i1", 8, "[%zero]", f"[%start] stride {stride} mask %m", before), values("i1", N))


def test_scalar_masks() -> None:
    before = "%no = arith.constant false\n%far = arith.constant 1000000000 : index"
    check_program(copy_text("f32", None, "[%far] mask %no", "[%zero]", before), values("f32", N))
    check_program(copy_text("f32", None, "[%zero]", "[%far] mask %no", before), values("f32", N))
    check_program(copy_text("i1", 1, "[%far] mask %no", "[%zero]", before), values("i1", N))


@pytest.mark.parametrize("kind", ["f32", "i1"])
def test_gathers_and_scatters(kind: str) -> None:
    array, shape, places = f"memref<{N}x{kind}>", f"vector<4x{kind}>", "vector<4xindex>, vector<4xi1>"
    check_program(
        f"""
        func.func @move(%in : {array} {{lw.name = "in"}}, %out : {array} {{lw.name = "out", lw.output}}) {{
          %lanes = lw_kernel.lanes : vector<4xindex>
          %seven = arith.constant dense<7> : vector<4xindex>
          %far = arith.constant dense<[1, 1, 99999999, 1]> : vector<4xindex>
          %i = arith.muli %lanes, %seven : vector<4xindex>
          %j = arith.muli %i, %far : vector<4xindex>
          %fifteen = arith.constant dense<15> : vector<4xindex>
          %m = lw_kernel.compare "slt" %j, %fifteen : vector<4xindex>
          %x = lw_kernel.gather %in[%j] mask %m : {array}, {places} -> {shape}
          lw_kernel.scatter %x, %out[%j] mask %m : {shape}, {array}, {places}
          func.return
        }}""",
        values(kind, N),
    )


def lanewise_text(kinds: tuple[str, str], body: str) -> str:
    arrays = [f"memref<8x{kind}>" for kind in kinds]
    shapes = [f"vector<8x{kind}>" for kind in kinds]
    return f"""
    func.func @op(%in : {arrays[0]} {{lw.name = "in"}}, %out : {arrays[1]} {{lw.name = "out", lw.output}}) {{
      %zero = arith.constant 0 : index
      %x = lw_kernel.load %in[%zero] : {arrays[0]} -> {shapes[0]}
      {body}
      lw_kernel.store %r, %out[%zero] : {shapes[1]}, {arrays[1]}
      func.return
    }}"""


STRANGE = [0.0, -0.6, 2.7, -300.0, 3e10, -3e38, np.inf, np.nan]


@pytest.mark.few(3)
@pytest.mark.parametrize("result", ["i8", "i32", "i64", "ui8", "ui32", "ui64"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_floats_become_integers_that_saturate(kind: str, result: str) -> None:
    conversion = "fptoui" if result[0] == "u" else "fptosi"
    body = f'%r = lw_kernel.convert "{conversion}" %x : vector<8x{kind}> -> vector<8x{result}>'
    with np.errstate(over="ignore"):
        given = np.array(STRANGE).astype(DTYPE[kind])
    (wanted,) = run_kernel(parse(lanewise_text((kind, result), body)), [given])
    out = stock_mlir.unwritten_like(wanted)
    stock_mlir.run(converted(parse(lanewise_text((kind, result), body))), [given], [out])
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("op", ["divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui"])
@pytest.mark.few(3)
def test_lanes_that_a_mask_leaves_out_divide_by_zero(op: str) -> None:
    body = f"""
      {mask(8, 4, -1)}
      %y = lw_kernel.load %in[%zero] mask %m : memref<8xi32> -> vector<8xi32>
      %q = arith.{op} %x, %y : vector<8xi32>
      %r = lw_kernel.select %m, %q, %x : vector<8xi32>"""
    check_program(lanewise_text(("i32", "i32"), body), np.array([7, -7, 3, 9, 1, 0, 0, 5], np.int32))


@pytest.mark.parametrize("predicate", ["oeq", "ult", "one", "uno"])
@pytest.mark.few(2)
def test_comparisons_and_choices(predicate: str) -> None:
    body = f"""
      %y = lw_kernel.load %in[%zero] stride 0 : memref<8xf32> -> vector<8xf32>
      %m = lw_kernel.compare "{predicate}" %x, %y : vector<8xf32>
      %zeros = arith.constant dense<0.5> : vector<8xf32>
      %r = lw_kernel.select %m, %x, %zeros : vector<8xf32>"""
    check_program(lanewise_text(("f32", "f32"), body), np.array([1, 0, 2, 1, np.nan, -1, np.inf, 1], np.float32))


def test_unsigned_integers_are_signless() -> None:
    n = 37
    a, b = te.placeholder((n,), "uint8", "a"), te.placeholder((n,), "uint8", "b")
    c = te.compute((n,), lambda i: te.maximum(a[i], b[i]) // 3 + a[i], name="c")
    d = te.compute((n,), lambda i: c[i].astype("float32"), name="d")
    workload = te.create_module([a, b, c, d], CPU)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(0, 256, n, dtype=np.uint8) for _ in range(2)]
    kernel = workload.clone()
    apply_schedule(kernel, 'lw-lower-te-to-loop,lw-vectorize{block="c" loop="i"},lw-vectorize{block="d" loop="i"}')
    lower_loop_to_kernel(kernel)
    hold(kernel, inputs, run_te(workload, inputs), str(kernel))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(dtype: str) -> None:
    a, b = te.placeholder((5, 40), dtype, "a"), te.placeholder((40,), dtype, "b")
    c = te.compute((5, 40), lambda i, j: te.exp(a[i, j]) * b[j] + a[i, 0], name="c")
    workload = te.create_module([a, b, c], CPU)
    inputs = exact_inputs(workload)
    kernel = workload.clone()
    schedule = 'lw-lower-te-to-loop,lw-split{block="c" loop="j" factors=0,8},lw-vectorize{block="c" loop="j1"}'
    apply_schedule(kernel, schedule)
    lower_loop_to_kernel(kernel)
    (wanted,) = run_te(workload, inputs)
    out = np.zeros_like(wanted)
    stock_mlir.run(converted(kernel), inputs, [out])
    rtol = 2**-6 if dtype == "bfloat16" else 2**-9
    np.testing.assert_allclose(out.astype(np.float32), wanted.astype(np.float32), rtol=rtol, atol=0.05)


def test_kernels_written_by_hand() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 32), (32, 64)))
    hold(parse(MATMUL), [a, b], [a @ b], MATMUL)


COPY = """
func.func @copy(%x : memref<32xf32> {lw.name = "x"}, %y : memref<32xf32> {lw.name = "y", lw.output}) {
  lw_kernel.launch grid [1, 1, 1] block [8, 1, 1] {
    %s = lw_kernel.alloc "s" : memref<32xf32, "shared">
    %t = lw_kernel.thread "threadIdx.x" : index
    %four = arith.constant 4 : index
    %seven = arith.constant 7 : index
    %i = arith.muli %t, %four : index
    %near = arith.cmpi slt, %t, %seven : index
    lw_kernel.prefetch %x[%i + 4096] : memref<32xf32>
    lw_kernel.async_copy 4 %x[%i + 4] -> %s[%i] if %near : memref<32xf32> -> memref<32xf32, "shared">
    lw_kernel.commit
    lw_kernel.wait 0
    lw_kernel.barrier
    %back = arith.subi %seven, %t : index
    %j = arith.muli %back, %four : index
    %v = lw_kernel.load %s[%j] : memref<32xf32, "shared"> -> vector<4xf32>
    lw_kernel.store %v, %y[%i] : vector<4xf32>, memref<32xf32>
  }
  func.return
}
"""


def test_asynchronous_copies_are_made_at_once() -> None:
    x = np.arange(32, dtype=np.float32)
    moved = np.concatenate([x[4:], np.zeros(4, np.float32)])
    hold(parse(COPY), [x], [moved.reshape(8, 4)[::-1].reshape(-1)], COPY)


@pytest.mark.parametrize(
    ("level", "rule"),
    [
        (lambda module: None, "'main' is on tensors: run lw-lower-te-to-loop first"),
        (lambda module: apply_schedule(module, "lw-lower-te-to-loop"), "run lw-lower-loop-to-kernel first"),
    ],
)
def test_other_levels_are_refused(level: Callable[[ModuleOp], None], rule: str) -> None:
    module = te.create_module(SAMPLES["dense"](), CPU)
    level(module)
    with pytest.raises(PassFailedException, match=rule):
        convert_kernel_to_mlir(module)
