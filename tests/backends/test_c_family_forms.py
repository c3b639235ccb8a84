"""What the C printers make of a kernel reads as people write it: declarations, names, parts of an index, sums."""

import re

import numpy as np
import pytest
from gpu_programs import compile_cuda, parse, run_opencl
from xdsl.dialects.builtin import UnitAttr

from loopwright.backends.c_family.names import Names
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.cuda.language import Cuda
from loopwright.backends.opencl.compile import print_opencl
from loopwright.dialects.kernel import BACKWARDS, StoreOp
from loopwright.dialects.target import TargetAttr, parse_target
from loopwright.passes.analysis.unrolling import even_factor, unroll_factor


def kernel(body: str, threads: int = 32, kind: str = "f32", size: int = 64) -> str:
    """A kernel on x and y in which %t is the thread, %c0, %c1, ... are constants and %z is 0.0."""
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 8, 9))
    return f"""
func.func @f(%x : memref<{size}x{kind}> {{lw.name = "x"}}, %y : memref<{size}x{kind}> {{lw.name = "y", lw.output}}) {{
  lw_kernel.launch grid [1, 1, 1] block [{threads}, 1, 1] {{
    {constants}
    %z = arith.constant 0.0 : {kind}
    %t = lw_kernel.thread "threadIdx.x" : index
    {body}
  }}
  func.return
}}
"""


def sources(body: str, **options: object) -> tuple[str, str]:
    text = kernel(body, **options)  # type: ignore[arg-type]
    module = parse(text)
    compile_cuda(parse(text), (90,))
    return print_cuda(module).source, print_opencl(module).source


ACCUMULATE = """
    %a = lw_kernel.alloc "a" : memref<2xf32, "local">
    {first}
    lw_kernel.store {start0}, %a[%c0] : f32, memref<2xf32, "local">
    lw_kernel.store {start1}, %a[%c0 + 1] : f32, memref<2xf32, "local">
    scf.for %k = %c0 to %c2 step %c1 {{
      %v = lw_kernel.load %x[%t] : memref<64xf32> -> f32
      %o = lw_kernel.load %a[%c0] : memref<2xf32, "local"> -> f32
      %s = arith.addf %o, %v : f32
      lw_kernel.store %s, %a[%c0] : f32, memref<2xf32, "local">
    }}
    %r = lw_kernel.load %a[%c0] : memref<2xf32, "local"> -> f32
    %q = lw_kernel.load %a[%c1] : memref<2xf32, "local"> -> f32
    %w = arith.addf %r, %q : f32
    lw_kernel.store %w, %y[%t] : f32, memref<64xf32>
"""


def accumulate(first: str = "", start0: str = "%z", start1: str = "%z") -> str:
    return ACCUMULATE.format(first=first, start0=start0, start1=start1)


def test_an_array_of_zeros_is_declared_so() -> None:
    cuda, opencl = sources(accumulate())
    assert "    float a[2] = {};\n" in cuda and "    float a[2] = {0};\n" in opencl
    assert "a[1] =" not in cuda and "= 0.0f" not in cuda
    assert "        a[0] += x[thread_x];\n" in cuda or "        a[0] += x[t];\n" in cuda
    x = np.arange(64, dtype=np.float32)
    (y,) = run_opencl(parse(kernel(accumulate())), x)
    np.testing.assert_array_equal(y[:32], 2 * x[:32])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"start1": "%one"}, "two values"),
        ({"start0": "%minus", "start1": "%minus"}, "minus zero"),
        ({"start0": "%one", "start1": "%one"}, "an array has no short form for ones"),
        ({"first": '%early = lw_kernel.load %a[%c0] : memref<2xf32, "local"> -> f32'}, "a read comes first"),
    ],
)
def test_other_starts_are_stores(options: dict[str, str], why: str) -> None:
    numbers = "%one = arith.constant 1.0 : f32\n%minus = arith.constant -0.0 : f32\n"
    body = accumulate(**{**options, "first": numbers + options.get("first", "")})
    cuda, _ = sources(body)
    assert "float a[2];" in cuda, why
    assert cuda.count("    a[0] = ") == 1 and cuda.count("    a[1] = ") == 1, why


def test_stores_in_a_loop_or_under_a_condition_are_no_declaration() -> None:
    body = """
    %a = lw_kernel.alloc "a" : memref<1xf32, "local">
    %p = arith.cmpi slt, %t, %c4 : index
    scf.if %p {
      lw_kernel.store %z, %a[%c0] : f32, memref<1xf32, "local">
    }
    lw_kernel.store %z, %a[%c0] : f32, memref<1xf32, "local">
    %r = lw_kernel.load %a[%c0] : memref<1xf32, "local"> -> f32
    lw_kernel.store %r, %y[%t] : f32, memref<64xf32>"""
    cuda, _ = sources(body)
    assert "        a = 0.0f;\n    }\n    a = 0.0f;\n    y[t] = a;\n" in cuda


def test_what_a_condition_may_leave_unset_starts_from_zero() -> None:
    """A call with a variable that was never set is undefined behavior, also where nothing uses its result."""
    body = """
    %a = lw_kernel.alloc "a" : memref<2xf32, "local">
    %b = lw_kernel.alloc "b" : memref<1xf32, "local">
    %below = arith.cmpi slt, %t, %c4 : index
    %read = lw_kernel.load %y[%t] : memref<64xf32> -> f32
    scf.if %below {
      lw_kernel.store %read, %a[%c0] : f32, memref<2xf32, "local">
      lw_kernel.store %read, %b[%c0] : f32, memref<1xf32, "local">
    }
    %q = lw_kernel.load %a[%c0] : memref<2xf32, "local"> -> f32
    %r = lw_kernel.load %b[%c0] : memref<1xf32, "local"> -> f32
    %sum = math.fma %q, %r, %read : f32
    lw_kernel.store %sum, %y[%t] : f32, memref<64xf32>"""
    cuda, opencl = sources(body)
    assert "float a[2] = {};" in cuda and "float b = 0.0f;" in cuda
    assert "float a[2] = {0};" in opencl and "float b = 0.0f;" in opencl


def test_a_scalar_starts_from_any_constant() -> None:
    body = """
    %m = arith.constant 0xff800000 : f32
    %a = lw_kernel.alloc "a" : memref<1xf32, "local">
    lw_kernel.store %m, %a[%c0] : f32, memref<1xf32, "local">
    %r = lw_kernel.load %a[%c0] : memref<1xf32, "local"> -> f32
    lw_kernel.store %r, %y[%t] : f32, memref<64xf32>"""
    cuda, opencl = sources(body)
    assert "float a = __int_as_float(0xff800000);" in cuda and "float a = (-INFINITY);" in opencl


@pytest.mark.parametrize(
    ("sum_of", "written"),
    [
        ("%s = arith.addf %o, %v : f32", "a[0] += v;"),
        ("%d = arith.mulf %v, %v : f32\n%s = arith.addf %o, %d : f32", "a[0] += v * v;"),
        ("%u = arith.addf %o, %v : f32\n%s = arith.addf %u, %v : f32", "a[0] = a[0] + v + v;"),
        ("%s = arith.subf %o, %v : f32", "a[0] = a[0] - v;"),
    ],
)
def test_a_sum_is_added_to_only_where_that_is_the_same_sum(sum_of: str, written: str) -> None:
    body = f"""
    %a = lw_kernel.alloc "a" : memref<2xf32, "local">
    %v = lw_kernel.load %x[%t] : memref<64xf32> -> f32
    lw_kernel.store %v, %y[%t + 32] : f32, memref<64xf32>
    %o = lw_kernel.load %a[%c0] : memref<2xf32, "local"> -> f32
    {sum_of}
    lw_kernel.store %s, %a[%c0] : f32, memref<2xf32, "local">
    %r = lw_kernel.load %a[%c0] : memref<2xf32, "local"> -> f32
    lw_kernel.store %r, %y[%t] : f32, memref<64xf32>"""
    cuda, _ = sources(body)
    assert written in cuda


PARTS = """
    %0 = arith.divui %t, %c8 : index
    %1 = arith.remui %t, %c8 : index
    %2 = arith.remui %t, %c9 : index
    %3 = arith.addi %0, %1 : index
    %4 = arith.muli %0, %1 : index
    %5 = arith.addi %4, %2 : index
    %6 = arith.cmpi sle, %1, %c0 : index
    scf.if %6 {
      %7 = lw_kernel.load %x[%3] : memref<64xf32> -> f32
      lw_kernel.store %7, %y[%5] : f32, memref<64xf32>
      %8 = lw_kernel.load %x[%3 + 1] : memref<64xf32> -> f32
      lw_kernel.store %8, %y[%5 + 32] : f32, memref<64xf32>
    }"""


def test_parts_of_a_thread_are_shifts_and_masks_with_names() -> None:
    source, _ = sources(PARTS)
    assert "const int t_div8 = t >> 3;" in source
    assert "const int t_mod8 = t & 7;" in source
    assert "const int x_at = t_div8 + t_mod8;" in source
    assert "const int y_at = t_div8 * t_mod8 + (int)((unsigned)t % 9u);" in source
    assert "if (t_mod8 == 0) {" in source
    x = np.arange(64, dtype=np.float32)
    (y,) = run_opencl(parse(kernel(PARTS)), x)
    assert [y[t % 9] for t in (0, 8, 16, 24)] == [0, 1, 2, 3]
    assert [y[t % 9 + 32] for t in (0, 8, 16, 24)] == [1, 2, 3, 4]


def test_scopes_share_names_and_nothing_is_computed_twice() -> None:
    body = """
    scf.for %k = %c0 to %c4 step %c1 {
      %i = arith.addi %t, %k : index
      %v = lw_kernel.load %x[%i] : memref<64xf32> -> f32
      lw_kernel.store %v, %y[%i] : f32, memref<64xf32>
    }
    scf.for %k = %c0 to %c4 step %c1 {
      %i = arith.addi %t, %k : index
      %j = arith.addi %t, %k : index
      %v = lw_kernel.load %x[%i] : memref<64xf32> -> f32
      %w = lw_kernel.load %x[%i + 8] : memref<64xf32> -> f32
      lw_kernel.store %v, %y[%j + 16] : f32, memref<64xf32>
      lw_kernel.store %w, %y[%j + 24] : f32, memref<64xf32>
    }"""
    cuda, _ = sources(body)
    assert cuda.count("for (int k = 0; k < 4; ++k) {") == 2
    assert cuda.count("= t + k;") == 2, "once in each loop"


@pytest.mark.parametrize(
    ("trips", "statements", "limit", "factor"),
    [(8, 10, 80, 8), (8, 10, 79, 4), (9, 10, 89, 8), (32, 80, 1024, 8), (4, 600, 1024, 1), (4, 2000, 1024, 1)],
)
def test_unroll_factors(trips: int, statements: int, limit: int, factor: int) -> None:
    assert unroll_factor(trips, statements, limit) == factor


def test_nvidias_opencl_compiler_is_asked_to_unroll_innermost_loops() -> None:
    body = """
    scf.for %j = %c0 to %c2 step %c1 {
      scf.for %k = %c0 to %c4 step %c1 {
        %i = arith.addi %t, %k : index
        %v = lw_kernel.load %x[%i] : memref<64xf32> -> f32
        lw_kernel.store %v, %y[%i] : f32, memref<64xf32>
      }
    }"""
    module = parse(kernel(body))
    for model, asked in (("nvidia-h200", True), ("h200", True), ("mali-t860", False), ("generic", False)):
        module.attributes["lw.target"] = TargetAttr(parse_target(f"opencl model={model}"))
        source = print_opencl(module).source
        assert source.count("#pragma unroll\n        for (int k") == asked and source.count("#pragma") == asked
    assert "#pragma" not in print_cuda(module).source


AROUND_UNROLLED = """
    %a = lw_kernel.alloc "a" : memref<4xf32, "local">
    scf.for %i = %c0 to %c2 step %c1 {{
      %i2 = arith.muli %i, %c2 : index
      scf.for %j = %c0 to %c2 step %c1 {{
        %ij = arith.addi %i2, %j : index
        lw_kernel.store {start}, %a[%ij] : f32, memref<4xf32, "local">
      }} {{lw.unroll}}
    }} {{lw.unroll}}
    %n = arith.constant {trips} : index
    scf.for %k = %c0 to %n step %c1 {{
      %v = lw_kernel.load %x[%k] : memref<64xf32> -> f32
      {inside}
      scf.for %j = %c0 to %c4 step %c1 {{
        %o = lw_kernel.load %a[%j] : memref<4xf32, "local"> -> f32
        %s = arith.addf %o, %v : f32
        lw_kernel.store %s, %a[%j] : f32, memref<4xf32, "local">
      }} {{lw.unroll}}
    }}
    %r = lw_kernel.load %a[%c1] : memref<4xf32, "local"> -> f32
    lw_kernel.store %r, %y[%t] : f32, memref<64xf32>
"""


@pytest.mark.parametrize(("trips", "asked"), [(44, "#pragma unroll\n"), (47, ""), (48, "#pragma unroll 16\n")])
def test_loops_around_unrolled_ones_are_unrolled_as_around_copies(trips: int, asked: str) -> None:
    """An iteration is a load, four sums and the loop, 9 instructions: 22 of them are 198, 44 are 396."""
    cuda, opencl = sources(AROUND_UNROLLED.format(trips=trips, start="%z", inside=""))
    before, _, _ = cuda.partition("    for (int k = 0;")
    assert before.endswith(";\n    " + asked if asked else ";\n")
    assert opencl.partition("    for (int k = 0;")[0].endswith(";\n"), "which leaves it to its compilers"


def test_loops_around_others_are_left_to_compilers() -> None:
    inner = "scf.for %l = %c0 to %c9 step %c1 { lw_kernel.store %v, %y[%l] : f32, memref<64xf32> }"
    cuda, _ = sources(AROUND_UNROLLED.format(trips=4, start="%z", inside=inner))
    assert cuda.partition("    for (int k = 0;")[0].endswith(";\n")


def test_an_array_that_unrolled_loops_fill_with_zeros_is_declared_so() -> None:
    for source in sources(AROUND_UNROLLED.format(trips=4, start="%z", inside="")):
        assert re.search(r"float a\[4\] = {0?};", source) and source.count("#pragma unroll\n") >= 1
        assert "a[" not in source.partition("float a[4]")[2].partition("for (int k")[0][12:]
    cuda, _ = sources(
        AROUND_UNROLLED.format(trips=4, start="%one", inside="").replace(
            "%a =", "%one = arith.constant 1.0 : f32\n%a =", 1
        )
    )
    assert "float a[4];" in cuda, "ones are stored"


@pytest.mark.parametrize(
    ("trips", "instructions", "factor"), [(32, 37, 4), (96, 70, 2), (3, 151, 1), (3, 48, 3), (3, 100, 3), (7, 60, 1)]
)
def test_even_factors(trips: int, instructions: int, factor: int) -> None:
    assert even_factor(trips, instructions, 150) == factor


def test_a_name_of_the_whole_function_stays_taken() -> None:
    names = Names()
    names.enter()
    assert [names.fresh("i"), names.outermost("t"), names.fresh("i")] == ["i", "t", "i1"]
    names.leave()
    assert [names.fresh("i"), names.fresh("t")] == ["i", "t1"]


def test_no_variable_hides_a_function_of_the_preamble() -> None:
    """Kernels whose tensor is called shared_place did not compile; that one is in each product's."""
    helpers = {f"copy_async{form} 16" for form in ("", "_if", "_where", "_if_where")}
    helpers |= {f"copy_{form} 3" for form in ("box", "box_once", "box_to_all", "walk", "walk_to_all")}
    helpers |= {"load_matrices 4", "load_matrices_turned 2", "pack f16", "pack bf16", "hold float", "tensor_map -"}
    helpers |= {f"{name} f32" for name in ("exp_near", "exp2_near", "maximum", "minimum")} | {
        "floordiv i32",
        "fma bf16",
    }
    helpers |= {f"barrier_{name} -" for name in ("init", "expect", "await")} | {"shared_matrix -", "end_block -"}
    helpers |= {f"{name} -" for name in ("arrive", "cluster_barrier", "cluster_meet")}
    helpers |= {f"{name} -" for name in ("transpose_quad", "remainder_of", "shared_place")}
    text = "\n".join(Cuda(90).preamble({"f16", "bf16"}, set(), helpers))
    defined = re.findall(r"^(?:template <.*> )?__device__ __forceinline__ [\w ]+?[ &*](\w+)\(", text, re.MULTILINE)
    assert len(defined) == len(helpers) - 1
    assert not [name for name in (*defined, "TensorMap") if Names().fresh(name) == name]


def test_words_of_one_language_are_names_in_the_other() -> None:
    text = kernel(
        "%v = lw_kernel.load %x[%t] : memref<64xf32> -> f32\nlw_kernel.store %v, %y[%t] : f32, memref<64xf32>"
    )
    module = parse(text.replace("%x", "%kernel"))
    assert "const float* __restrict__ kernel," in print_cuda(module).source
    assert "__global const float* restrict kernel1," in print_opencl(module).source


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("backwards", [False, True])
def test_lanes_that_others_overwrite_are_kept_in_either_order(backwards: bool, start: int) -> None:
    """A vector moves by one element, up or down: one of both directions is written over in each order of lanes."""
    body = f"""
    %a = lw_kernel.alloc "a" : memref<5xf32, "local">
    scf.for %k = %c0 to %c4 step %c1 {{
      %v = lw_kernel.load %x[%k] : memref<64xf32> -> f32
      lw_kernel.store %v, %a[%k] : f32, memref<5xf32, "local">
    }}
    %last = lw_kernel.load %x[%t + 4] : memref<64xf32> -> f32
    lw_kernel.store %last, %a[%c4] : f32, memref<5xf32, "local">
    %v = lw_kernel.load %a[%c{start}] : memref<5xf32, "local"> -> vector<4xf32>
    lw_kernel.store %v, %a[%c{1 - start}] : vector<4xf32>, memref<5xf32, "local">
    %r = lw_kernel.load %a[%c0] : memref<5xf32, "local"> -> vector<4xf32>
    lw_kernel.store %r, %y[%c0] : vector<4xf32>, memref<64xf32>"""
    x = np.arange(64, dtype=np.float32)
    module = parse(kernel(body, threads=1))
    for op in module.walk():
        if backwards and isinstance(op, StoreOp):
            op.attributes[BACKWARDS] = UnitAttr()
    (y,) = run_opencl(module, x)
    np.testing.assert_array_equal(y[:4], [1, 2, 3, 4] if start else [0, 0, 1, 2])
