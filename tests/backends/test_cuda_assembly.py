"""Products that are written as assembly: read back as operations, they compute what the kernel computes."""

import itertools
import math
import re

import numpy as np
import pytest
from gpu_programs import check_outputs, compile_cuda, parse
from late_notes import noting
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.kernel import PtxOp
from loopwright.passes.lower.assemble_products import _Runs, assemble_products
from loopwright.search.measure.reference import make_reference
from loopwright.search.named_workloads import matmul


def convolution(channels: int, size: int, filters: int, window: int, stride: int) -> list[te.Tensor]:
    data = te.placeholder((1, channels, size, size), name="data")
    kernel = te.placeholder((filters, channels, window, window), name="kernel")
    return [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, stride, window // 2))]


def batched(parts: int, rows: int, columns: int, terms: int) -> list[te.Tensor]:
    a, b = te.placeholder((parts, rows, terms), name="A"), te.placeholder((parts, columns, terms), name="B")
    return [a, b, topi.nn.batch_matmul(a, b, transpose_b=True)]


CASES = {
    "matmul": lambda: matmul(64, 96, 128),
    "uneven matmul": lambda: matmul(61, 37, 203),
    "3x3": lambda: convolution(8, 14, 32, 3, 1),
    "3x3/2": lambda: convolution(8, 14, 32, 3, 2),
    "5x5": lambda: convolution(3, 11, 16, 5, 1),
    "batched": lambda: batched(3, 40, 24, 64),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES)
def test_assembly_computes_what_loops_compute(case: str) -> None:
    task = lw.SearchTask(CASES[case], target="cuda model=h200")
    reference, rng, blocks_seen = make_reference(task.module), np.random.default_rng(0), 0
    for sketch in task.sketches:
        for row in itertools.chain([sketch.default], sketch.sample(rng, 2)):
            schedule = sketch.schedule(row)
            module = scheduled_kernel(str(task.module), schedule)
            with noting(schedule):
                assemble_products(module)
                module.verify()
                found = sum(isinstance(op, PtxOp) for op in module.walk())
                blocks_seen += found
                if found:
                    check_outputs(run_kernel(module, reference.inputs), reference, schedule)
    assert blocks_seen > 0


INSTRUCTIONS = """
    func.func @f(%out : memref<32xf32> {{lw.output}}) {{
      %c0 = arith.constant 0 : index
      %two = arith.constant 2.0 : f32
      lw_kernel.launch grid [1, 1, 1] block [32, 1, 1] {{
        %t = lw_kernel.thread "threadIdx.x" : index
        %s = lw_kernel.alloc "s" : memref<40xf32, "shared">
        %sum = lw_kernel.alloc "sum" : memref<1xf32, "local">
        lw_kernel.store %two, %s[%t] : f32, memref<40xf32, "shared">
        lw_kernel.barrier
        lw_kernel.ptx [f0 = %two[0], p0 = %s[%t]] {{
          {0}
        }} [%sum[0] = t2] temporaries 2 : f32, memref<40xf32, "shared">, index, memref<1xf32, "local">
        %last = lw_kernel.load %sum[%c0] : memref<1xf32, "local"> -> f32
        lw_kernel.store %last, %out[%t] : f32, memref<32xf32>
      }}
      func.return
    }}"""


def interpreted(*instructions: str) -> list[float]:
    text = " ".join(f'"{each}"' for each in instructions)
    (found,) = run_kernel(parse(INSTRUCTIONS.format(text)), [])
    return found.tolist()


def test_instructions_have_a_meaning() -> None:
    assert interpreted("ld.shared.f32 t1, [p0];", "fma.rn.f32 t2, t1, f0, t1;") == [6.0] * 32


@pytest.mark.parametrize(
    ("instructions", "why"),
    [
        (["mul.f32 t2, f0, f0;"], "no meaning is known for 'mul.f32 t2, f0, f0;'"),
        (["fma.rn.f32 t2, t1, f0, f0;"], "register t1 is read before it is set"),
        (["ld.shared.f32 t2, [p1];"], "register p1 is no address"),
        (["ld.shared.f32 t2, [p0+2];"], "p0\\+2 is between elements of 4 bytes"),
        (["ld.shared.v2.f32 {t1, t2}, [p0];"], "align"),
        (["ld.shared.f32 t2, [p0+400];"], "40 elements"),
    ],
)
def test_wrong_instructions_are_refused(instructions: list[str], why: str) -> None:
    with pytest.raises(InterpretationError, match=why):
        interpreted(*instructions)


def default_of(tensors: list[te.Tensor], name: str) -> ModuleOp:
    task = lw.SearchTask(lambda: tensors, target="cuda model=h200")
    sketch = next(sketch for sketch in task.sketches if sketch.name == name)
    return scheduled_kernel(str(task.module), sketch.schedule(sketch.default))


def test_a_loop_around_assembly_is_not_unrolled_by_the_compiler() -> None:
    source = print_cuda(default_of(matmul(64, 96, 128), "j")).source
    (loop,) = (part for part in source.split("for (")[1:] if "asm volatile" in part and "fma.rn" in part)
    assert "#pragma unroll 1\n    for (" + loop in source
    assert "fmaf(" not in source
    assert re.search(r"// \d+ multiply-adds of what is in a_shared, b_shared, which change .*T_matmul_tile\.\n", source)


def test_neighbours_in_shared_memory_are_read_at_once() -> None:
    """Rows of 4 results read them one by one in the kernel dialect, at places that are known to be multiples of 4."""
    source = print_cuda(default_of(convolution(8, 14, 32, 3, 1), "xx")).source
    assert re.search(r"ld\.shared\.v[24]\.f32 \{t\d+, ", source)


def test_a_block_ends_where_threads_wait_for_each_other() -> None:
    """An arrival is a truth value, but no arithmetic that may be done before: to its threads it is a barrier."""
    adds = """
        %x{0} = lw_kernel.load %s[%c0] : memref<32xf32, "shared"> -> vector<32xf32>
        %y{0} = lw_kernel.load %sum[%c0] : memref<32xf32, "local"> -> vector<32xf32>
        %z{0} = math.fma %x{0}, %x{0}, %y{0} : vector<32xf32>
        lw_kernel.store %z{0}, %sum[%c0] : vector<32xf32>, memref<32xf32, "local">"""
    module = parse(f"""
    func.func @f(%in : memref<32xf32>, %out : memref<32xf32> {{lw.output}}) {{
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      lw_kernel.launch grid [1, 1, 1] block [32, 1, 1] {{
        %t = lw_kernel.thread "threadIdx.x" : index
        %counters = lw_kernel.alloc "arrived" : memref<1xi32, "counters">
        %s = lw_kernel.alloc "s" : memref<32xf32, "shared">
        %sum = lw_kernel.alloc "sum" : memref<32xf32, "local">
        %a = lw_kernel.load %in[%t] : memref<32xf32> -> f32
        lw_kernel.store %a, %s[%t] : f32, memref<32xf32, "shared">
        lw_kernel.barrier
        {adds.format(1)}
        %last = lw_kernel.arrive %counters[%c0] of 1 : memref<1xi32, "counters">
        {adds.format(2)}
        scf.if %last {{
          lw_kernel.store %zero, %out[%t] : f32, memref<32xf32>
        }}
      }}
      func.return
    }}""")
    order = re.findall(r"fma\.rn|bool last", print_cuda(module).source)
    assert order == ["fma.rn"] * 32 + ["bool last"] + ["fma.rn"] * 32


@pytest.mark.slow
def test_architectures_take_it() -> None:
    compile_cuda(default_of(matmul(64, 96, 128), "j"), (80, 90))


def unrolled_assembly(source: str) -> int:
    """The most instructions of assembly that a kernel's loops come to which are to be unrolled whole."""
    lines, trips, most = source.splitlines(), dict[int, int](), 0
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        trips = {depth: count for depth, count in trips.items() if depth < indent}
        if found := re.match(r"\s*for \(int \w+ = 0; \w+ < (\d+);", line):
            whole = lines[number - 1].strip() == "#pragma unroll"
            trips[indent] = int(found[1]) if whole else 1
        elif 'asm volatile("{\\n"' in line:
            end = next(n for n in range(number, len(lines)) if lines[n].lstrip().startswith('"}"'))
            instructions = sum("fma" in each or "ld.shared" in each for each in lines[number:end])
            most = max(most, instructions * math.prod(trips.values()))
    return most


def test_loops_within_loops_are_unrolled_to_a_bound_in_all() -> None:
    """A candidate of the seed convolution had 49 instructions in loops of 3, 3 and 16, and took 1.8 s of NVRTC."""
    task = lw.SearchTask(lambda: convolution(64, 7, 32, 3, 1), target="cuda model=h200")
    rng, sizes = np.random.default_rng(1), list[int]()
    for sketch in task.sketches:
        for row in sketch.sample(rng, 6):
            sizes.append(unrolled_assembly(print_cuda(scheduled_kernel(str(task.module), sketch.schedule(row))).source))
    assert 100 < max(sizes) <= 1200


def test_a_run_of_which_a_value_is_read_later_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [
        f"%y{n} = math.fma %two, %two, %two : f32 lw_kernel.store %y{n}, %sum[%c0] : f32, {SUM}" for n in range(50)
    ]
    module = parse(
        f"""
    builtin.module attributes {{lw.target = #lw.target<"cuda warp_size=32 compute_capability=90">}} {{
    func.func @f(%out : memref<32xf32> {{lw.output}}) {{
      %c0 = arith.constant 0 : index
      %two = arith.constant 2.0 : f32
      lw_kernel.launch grid [1, 1, 1] block [32, 1, 1] {{
        %sum = lw_kernel.alloc "sum" : {SUM}
        {" ".join(parts)}
        %z = math.fma %two, %two, %two : f32
        lw_kernel.barrier
        lw_kernel.store %z, %out[%c0] : f32, memref<32xf32>
      }}
      func.return
    }} }}"""
    )
    looked, begun = [], _Runs._from

    def counted(runs: _Runs, op: Operation) -> tuple[list[Operation], list[Operation]]:
        looked.append(op)
        return begun(runs, op)

    monkeypatch.setattr(_Runs, "_from", counted)
    assemble_products(module)
    assert len(looked) <= 2
    assert not any(isinstance(op, PtxOp) for op in module.walk())


SUM = 'memref<1xf32, "local">'
