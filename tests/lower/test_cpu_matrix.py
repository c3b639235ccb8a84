"""Matrix instructions of CPUs: nests that are one, by the interpreter, by emulated units, and as assembly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_products import BLOCK, SHAPE, named, scheduled, small_shape, target_with, whole_shape
from emulated_units import emulated
from gpu_programs import parse
from lowered_runs import exact_inputs
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

import loopwright as lw
from loopwright.backends.arrays import aligned_copy, aligned_empty
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.cpu import MissingFeatures, architecture, cpu_for, host_features, why_not_here
from loopwright.backends.llvm.emit import emit
from loopwright.backends.llvm.host import cpu_of
from loopwright.backends.llvm.jit import MissingTarget, compile_text
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.intrinsics import Intrinsic, find_intrinsic, intrinsics
from loopwright.dialects.target import target_of
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel

ON_CPUS = [x for x in intrinsics() if x.target == "llvm"]
ON_X86 = [x for x in ON_CPUS if not x.name.startswith("neon")]
CUT = [
    named(name)
    for name in (
        "amx.m14n16k32.bf16",
        "amx.m7n11k24.bf16",
        "amx.m1n16k64.u8s8",
        "amx.m16n1k4.s8",
        "amx.m1n1k2.bf16",
    )
]
"""Tiles of fewer rows, columns and groups of k."""
ASSEMBLY = {
    "avx2.m1n8k2.u8s8": "vpmaddwd",
    "avxvnni.m1n8k4.u8s8": "vpdpbusd",
    "avx512vnni.m1n16k4.u8s8": "vpdpbusd",
    "avxvnni.m1n8k2.s16": "vpdpwssd",
    "avx512vnni.m1n16k2.s16": "vpdpwssd",
    "avx512bf16.m1n16k2.bf16": "vdpbf16ps",
    "amx.m16n16k32.bf16": "tdpbf16ps",
    "amx.m16n16k64.u8s8": "tdpbusd",
    "amx.m16n16k64.s8": "tdpbssd",
    "amx.m16n16k64.u8": "tdpbuud",
    "amx.m16n16k64.s8u8": "tdpbsud",
    "neon.m1n4k4.s8": "sdot",
    "neon.m1n4k4.u8": "udot",
    "neon.m1n4k4.u8s8": "usdot",
    "neon.m1n4k2.bf16": "bfdot",
    "neon.m2n2k8.s8": "smmla",
    "neon.m2n2k8.u8": "ummla",
    "neon.m2n2k8.u8s8": "usmmla",
    "neon.m2n2k4.bf16": "bfmmla",
}
"""What an intrinsic is in machine code."""


def lowered(intrinsic: Intrinsic, **options: Any) -> ModuleOp:
    module = scheduled(intrinsic, **options).module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return module


def assembly_of(module: ModuleOp) -> str:
    text = emit(module)
    return compile_text(text.source, texts=True, cpu=cpu_of(target_of(module)).using(text.features)).assembly


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(wanted, np.float64), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("intrinsic", [*CUT, *ON_CPUS], ids=lambda x: x.name)
@pytest.mark.few(5)
def test_the_instruction_is_right(intrinsic: Intrinsic) -> None:
    """What a nest computes does not change: that of te is what the kernel with instructions gives."""
    sch = scheduled(intrinsic, shape=small_shape(intrinsic))
    inputs = exact_inputs(sch.workload)
    (wanted,) = run_te(sch.workload, inputs)
    close(run_kernel(lowered(intrinsic, shape=small_shape(intrinsic)), inputs)[0], wanted)


@pytest.mark.parametrize("intrinsic", ON_CPUS, ids=lambda x: x.name)
@pytest.mark.few(10)
def test_factors_are_loaded_once_for_a_register_tile(intrinsic: Intrinsic) -> None:
    module = lowered(intrinsic, tiles=(2, 4), k_steps=2)
    ops = list(module.walk())
    assert sum(isinstance(op, kernel.TileProductOp) for op in ops) == 2 * 4 * 2
    loads = [op.operand.data for op in ops if isinstance(op, kernel.TileLoadOp)]
    assert (loads.count("a"), loads.count("b")) == (2 * 2, 4 * 2)


@pytest.mark.parametrize("intrinsic", [*CUT, *(x for x in ON_X86 if x.name in ASSEMBLY)], ids=lambda x: x.name)
@pytest.mark.few(3)
def test_the_code_is_right_where_units_are_emulated(intrinsic: Intrinsic) -> None:
    """All that is printed around an instruction, the tiles that loops keep in registers included, runs anywhere."""
    shape = whole_shape(intrinsic)
    sch = scheduled(intrinsic, shape=shape)
    inputs = exact_inputs(sch.workload)
    (wanted,) = run_te(sch.workload, inputs)
    found = aligned_empty(wanted.shape, wanted.dtype)
    text = emit(lowered(intrinsic, shape=shape))
    emulated(text).run([*(aligned_copy(x) for x in inputs), found])
    close(found, wanted)


@pytest.mark.parametrize("intrinsic", [*CUT, *ON_X86], ids=lambda x: x.name)
@pytest.mark.few(9)
def test_a_cpu_that_has_it_runs_it(intrinsic: Intrinsic) -> None:
    if why_not_here(("x86_64", *intrinsic.features)) is not None:
        pytest.skip(f"this CPU has no {', '.join(intrinsic.features)}")
    target = f"llvm features=+{',+'.join(intrinsic.features)}"
    sch = scheduled(intrinsic, target, shape=whole_shape(intrinsic))
    inputs = exact_inputs(sch.workload)
    (wanted,) = run_te(sch.workload, inputs)
    close(lw.build(sch)(*inputs), wanted)
    close(lw.build(sch, check_addresses=True)(*inputs), wanted)


@pytest.mark.parametrize("name", sorted(ASSEMBLY))
@pytest.mark.few(9)
def test_it_is_one_instruction(name: str) -> None:
    """And the innermost loop has no other one that touches sums: they stay in registers."""
    text = assembly_of(lowered(named(name), shape=(32, 64, 256)))
    assert f"\t{ASSEMBLY[name]}\t" in text.replace("{vex}\t", "\t")
    if name.startswith("amx"):
        lines = [line.split("\t")[1] for line in text.splitlines() if "\ttile" in line or "\ttdp" in line]
        products = [n for n, line in enumerate(lines) if line.startswith("tdp")]
        assert len(products) == 2 * 2 * 2
        assert "tilestored" not in lines[products[0] : products[-1]]
        assert lines[: products[0]].count("tilezero") == 2 * 2  # nothing is loaded to start from
        assert "ldtilecfg" in text


@pytest.mark.parametrize("name", ["avx512vnni.m1n16k4.u8s8", "amx.m16n16k32.bf16", "neon.m2n2k8.s8"])
def test_kernels_parse_back(name: str) -> None:
    text = str(lowered(named(name)))
    assert str(parse(text)) == text


def test_tiles_are_kept_over_nested_loops() -> None:
    """Of two loops around the products, both carry the sums."""
    intrinsic = named("amx.m16n16k32.bf16")
    sch = scheduled(intrinsic, shape=(32, 32, 256), k_steps=1)
    (steps,) = [loop for loop in sch.get_loops(BLOCK) if str(loop) == "k0"]
    sch.split(BLOCK, steps, [2, 4])
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    assert emit(module).source.count("phi x86_amx") == 2 * 4
    inputs = exact_inputs(sch.workload)
    (wanted,) = run_te(sch.workload, inputs)
    found = aligned_empty(wanted.shape, wanted.dtype)
    emulated(emit(module)).run([*(aligned_copy(x) for x in inputs), found])
    close(found, wanted)


def test_tiles_are_kept_where_steps_are_written_out() -> None:
    """A loop of one iteration is none, and sums stay in registers over what is in it."""
    module = lowered(named("amx.m14n16k32.bf16"), shape=(28, 32, 64))
    text = emit(module).source
    assert text.count("tilestored64.internal(") == 4 + 1  # and its declaration
    assert text.count("tilezero.internal(") == 4 + 1


def test_tiles_are_cut_to_whole_groups() -> None:
    assert find_intrinsic("amx.m14n16k32.bf16") is find_intrinsic("amx.m14n16k32.bf16")
    assert not {x.name for x in CUT} & {x.name for x in intrinsics()}
    for name in ("amx.m17n16k32.bf16", "amx.m0n16k32.bf16", "amx.m14n16k31.bf16", "avx512bf16.m2n16k2.bf16"):
        assert find_intrinsic(name) is None
    with pytest.raises(ValueError, match=r"'amx.m14n16k32.bf16' comes with loopwright; give yours another name"):
        lw.register_intrinsic(named("amx.m14n16k32.bf16"))
    for intrinsic in CUT:
        intrinsic.verify()


def test_code_says_what_it_needs_of_a_cpu() -> None:
    """AMX is asked for by kernels that use it alone."""
    amx, plain = lowered(named("amx.m16n16k32.bf16")), lowered(named("amx.m16n16k32.bf16"), tensorize=False)
    assert {"amx-tile", "amx-bf16"} <= set(compile_module(amx)[1].features)
    assert not {name for name in compile_module(plain)[1].features if name.startswith("amx")}
    if "amx-tile" not in host_features():
        with pytest.raises(MissingFeatures, match=r"uses amx-bf16, amx-tile"):
            lw.build(scheduled(named("amx.m16n16k32.bf16")))(
                *exact_inputs(scheduled(named("amx.m16n16k32.bf16")).workload)
            )


def test_a_target_says_which_units_it_has() -> None:
    def names(target: str) -> set[str]:
        return {x.name.partition(".")[0] for x in intrinsics(lw.resolve_target(target))}

    assert names("llvm model=haswell") == {"avx2"}
    assert names("llvm model=alderlake") == {"avx2", "avxvnni"}
    assert names("llvm model=znver4") == {"avx2", "avx512vnni", "avx512bf16"}
    assert names("llvm model=sapphirerapids") == {"avx2", "avxvnni", "avx512vnni", "avx512bf16", "amx"}
    assert names("llvm model=sapphirerapids features=-amx-tile") == {"avx2", "avxvnni", "avx512vnni", "avx512bf16"}
    assert names("llvm model=cortex-a72") == set()
    assert names("llvm model=neoverse-v1") == {"neon"}
    assert names("llvm model=haswell features=+avxvnni") == {"avx2", "avxvnni"}
    assert "avxvnni" in cpu_for("haswell", "", "+avxvnni").features


def test_a_target_without_it_refuses() -> None:
    with pytest.raises(
        lw.ScheduleError, match=r"needs a CPU with amx-tile, amx-bf16, the target's model is haswell: name"
    ):
        scheduled(named("amx.m16n16k32.bf16"), "llvm model=haswell")


def test_predicates_are_refused() -> None:
    with pytest.raises(lw.ScheduleError, match=r"has a predicate, which would cut through an instruction"):
        scheduled(named("avx2.m1n8k2.s16"), shape=(32, 60, 64))


def test_a_nest_that_later_steps_change_is_refused() -> None:
    sch = scheduled(named("avx2.m1n8k2.s16"))
    sch.transform_layout(BLOCK, "b_panel", ("d0", "d1", "d3", "d2"))
    with pytest.raises(
        PassFailedException, match=r"is no avx2.m1n8k2.s16: 'b_panel' must hold b of the instruction in"
    ):
        lower_loop_to_kernel(sch.module.clone())


INLINE = """\
declare i32 @llvm.vector.reduce.add.v2i32(<2 x i32>)
%wide_a = sext <16 x i16> %a to <16 x i32>
%wide_b = sext <16 x i16> %b to <16 x i32>
%products = mul <16 x i32> %wide_a, %wide_b
%pairs = bitcast <16 x i32> %products to <8 x i64>
%low = trunc <8 x i64> %pairs to <8 x i32>
%shifted = lshr <8 x i64> %pairs, splat (i64 32)
%high = trunc <8 x i64> %shifted to <8 x i32>
%both = add <8 x i32> %low, %high
%sums = add <8 x i32> %c, %both
ret <8 x i32> %sums"""


def test_users_add_an_instruction_of_their_own(registries: None) -> None:
    mine = replace(named("avx2.m1n8k2.s16"), name="mine.m1n8k2", features=(), code=INLINE)
    lw.register_intrinsic(mine)
    sch = scheduled(mine, "llvm")
    inputs = exact_inputs(sch.workload)
    (wanted,) = run_te(sch.workload, inputs)
    kernel_of_mine = lw.build(sch)
    close(kernel_of_mine(*inputs), wanted)
    assert "@lw.mine.m1n8k2(" in kernel_of_mine.source


def test_inline_assembly_is_assembled_for_this_architecture_alone(registries: None) -> None:
    code = '%s = call <8 x i32> asm "", "=x,0"(<8 x i32> %c)\nret <8 x i32> %s'
    mine = replace(named("avx2.m1n8k2.s16"), name="mine.m1n8k2", features=(), code=code)
    lw.register_intrinsic(mine)
    if architecture() == "x86_64":
        assert lw.build(scheduled(mine, "llvm")).source
    other = "aarch64" if architecture() == "x86_64" else "x86_64"
    with pytest.raises(MissingTarget, match=f"inline assembly is assembled for {architecture()} alone"):
        lw.build(scheduled(mine, f"llvm arch={other}"))


def test_target_with_is_right() -> None:
    for intrinsic in ON_CPUS:
        assert intrinsic.why_not(lw.resolve_target(target_with(intrinsic))) is None
    assert SHAPE[2] % 64 == 0
