"""Code for other CPUs than this one: of the right architecture, with the right features, run where it can be."""

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import Machine, emulated

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.llvm import host, jit
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.cpu import MissingFeatures, architecture, cpu_for, host_model
from loopwright.backends.llvm.executable import Artifact
from loopwright.backends.llvm.host import named_elsewhere
from loopwright.dialects.cpu_models import CPU_MODELS, GENERIC
from loopwright.dialects.target import Target

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
"""System V ABI: the field e_machine of an ELF file's header."""
OTHERS = [arch for arch in MACHINES if arch != architecture()]
ROWS, INNER, COLUMNS = 13, 40, 24


def product(target: str | Target) -> lw.SearchTask:
    a, b = te.placeholder((ROWS, INNER), name="a"), te.placeholder((INNER, COLUMNS), name="b")
    return lw.SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target=target)


def artifact(target: str | Target) -> Artifact:
    task = product(target)
    return compile_module(lower_to_kernel(task.schedule_module(task.default_schedule), task.target))[1]


def machine_of(object_code: bytes) -> int:
    assert object_code[:4] == b"\x7fELF"
    return int(struct.unpack_from("<H", object_code, 18)[0])


@pytest.mark.parametrize(
    ("target", "arch"),
    [
        ("llvm model=cortex-a72 cores=1", "aarch64"),
        ("llvm arch=aarch64", "aarch64"),
        ("llvm model=neoverse-v2", "aarch64"),
        ("llvm arch=riscv64", "riscv64"),
        ("llvm model=sifive-u74", "riscv64"),
        ("llvm model=x86-64-v2", "x86_64"),
        ("llvm model=haswell", "x86_64"),
        ("llvm arch=x86_64", "x86_64"),
    ],
)
@pytest.mark.few(2)
def test_code_is_for_the_architecture_that_is_named(target: str, arch: str) -> None:
    """`llvm model=cortex-a72` was x86 code under that name."""
    made = artifact(target)
    assert machine_of(made.object_code) == MACHINES[arch]
    assert made.features[0] == arch and set(made.features[1:]) <= set(cpu_for(arch=arch).features) | set(made.features)
    assert Artifact.from_bytes(made.to_bytes()) == made


def test_code_uses_what_is_recorded() -> None:
    plain, dots = cpu_for("cortex-a72"), cpu_for("cortex-a76", features="+neon,-lse")
    assert plain.features == ("aarch64", "fp-armv8", "neon") and plain.tune == "cortex-a72"
    assert dots.features == ("aarch64", "dotprod", "fp-armv8", "fullfp16", "neon")
    assembly = product("llvm model=cortex-a72").build().assembly
    assert "fmla" in assembly and "ymm" not in assembly
    assert "sve" not in product("llvm model=neoverse-v2").build().assembly


def test_running_elsewhere_code_is_one_sentence() -> None:
    arch = OTHERS[-1]
    kernel = product(f"llvm arch={arch}").build()
    said = (
        rf"^kernel .* is compiled for {arch}, this CPU is {architecture()}: run it there, or compile it for this one$"
    )
    with pytest.raises(MissingFeatures, match=said):
        kernel(np.zeros((ROWS, INNER), np.float32), np.zeros((INNER, COLUMNS), np.float32))
    with pytest.raises(MissingFeatures, match=said):
        kernel.benchmark()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "llvm model=cortex-a27",
            "no CPU 'cortex-a27' is known, near: cortex-a7.*; for another CPU say arch=x86_64 or ",
        ),
        ("llvm model=cortex-a72 arch=x86_64", "model 'cortex-a72' is of aarch64, not of x86_64"),
        ("llvm arch=aarch64 features=+mmx", "no feature 'mmx' of aarch64 is known; known: .*dotprod, "),
    ],
)
def test_a_cpu_that_is_not_known_is_refused(target: str, said: str) -> None:
    """It was this CPU's code under that name."""
    with pytest.raises(ValueError, match=f"^target '{target.split()[0]} .*': {said}"):
        lw.resolve_target(target)
    with pytest.raises(ValueError, match=said):
        lw.build(te.create_module(_tensors(), target))


def _tensors() -> list[te.Tensor]:
    x = te.placeholder((8,), name="x")
    return [x, te.compute((8,), lambda i: x[i] + 1.0, name="y")]


def test_an_architecture_that_llvm_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit.CpuFeatures, "triple", "vax-dec-ultrix")
    with pytest.raises(jit.MissingTarget, match=f"^LLVM here was built without {OTHERS[0]}: "):
        jit._machine(cpu_for(arch=OTHERS[0]))


def test_every_model_is_known_to_llvm(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM only says on standard error that a processor or a feature is none."""
    for model in CPU_MODELS:
        source = f'define void @f() "tune-cpu"="{model}" {{\n  ret void\n}}\n'
        assert machine_of(jit.compile_text(source, cpu=cpu_for(model)).object_code) == MACHINES[CPU_MODELS[model].arch]
    for arch in GENERIC:
        jit.compile_text("define void @f() {\n  ret void\n}\n", cpu=cpu_for(arch=arch))
    assert not capfd.readouterr().err


def test_text_of_a_cpu_reads_back_and_keeps_its_vectors() -> None:
    for target in (
        Target(model="icelake-server"),
        Target(model="cortex-a72"),
        Target(model="x86-64-v4", vector_bytes=64),
    ):
        assert lw.resolve_target(str(target)) == target
    assert (
        lw.resolve_target("llvm model=cortex-a72").vector_bytes,
        lw.resolve_target("llvm model=znver5").vector_bytes,
    ) == (
        16,
        64,
    )


def test_a_package_says_what_it_was_compiled_for(tmp_path: Path, own_cache: Path) -> None:
    net = lw.Network("small")
    net.output(net.relu(net.dense(net.input("x", (4, 32)), np.ones((16, 32), np.float32))))
    here = lw.compile(net, "llvm vector_bytes=16", processes=1)
    assert here.plan.target == str(Target(model=host_model(), vector_bytes=16))
    assert np.asarray(here.executor()(np.ones((4, 32), np.float32)))[0, 0] == 32
    board = lw.compile(net, f"llvm arch={OTHERS[0]}", processes=1)
    board.save(tmp_path / "board.lw")
    with pytest.raises(ValueError, match=f"^network small is compiled for {OTHERS[0]}, this CPU is "):
        lw.load_network(tmp_path / "board.lw").executor()


def test_this_cpu_is_named_so_that_others_can_compile_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that LLVM calls `generic` was whatever CPU tuned for it; hidden features were used."""
    assert named_elsewhere(Target(model="cortex-a72")) == Target(model="cortex-a72")
    monkeypatch.setattr(host, "architecture", lambda: "aarch64")
    monkeypatch.setattr(host, "host_model", lambda: "cortex-a76")
    monkeypatch.setattr(host, "host_features", lambda: ("fp-armv8", "neon", "lse", "fullfp16", "sve"))
    assert named_elsewhere(Target(model="cortex-a76")) == Target(model="cortex-a76", features="-dotprod")
    monkeypatch.setattr(host, "host_model", lambda: "generic")
    board = named_elsewhere(Target(model="generic", vector_bytes=16))
    assert board == Target(model="generic", vector_bytes=16, arch="aarch64")
    assert machine_of(artifact(board).object_code) == MACHINES["aarch64"]
    monkeypatch.setattr(host, "architecture", lambda: "powerpc64le")
    assert named_elsewhere(Target(model="generic")) == Target(model="generic")


HARNESS = """
#include <stdio.h>
#include <stdlib.h>
void lw_run(void **pointers);
static void *read_floats(FILE *file, size_t count) {
  float *values = aligned_alloc(64, (count * sizeof *values + 63) / 64 * 64);
  if (fread(values, sizeof *values, count, file) != count) exit(2);
  return values;
}
int main(int argc, char **argv) {
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  void *pointers[4] = {read_floats(in, %(a)d), read_floats(in, %(b)d), aligned_alloc(64, %(c)d * 4), malloc(%(space)d)};
  lw_run(pointers);
  return fwrite(pointers[2], 4, %(c)d, out) != %(c)d || fclose(out);
}
"""


@pytest.mark.parametrize(
    ("machine", "target"),
    [
        emulated("llvm model=cortex-a53", "aarch64", "cortex-a53"),
        emulated("llvm model=cortex-a76", "aarch64", "cortex-a76"),
        emulated("llvm arch=riscv64", "riscv64", "riscv64"),
        emulated("llvm model=sifive-u74", "riscv64", "sifive-u74"),
    ],
)
def test_a_kernel_for_another_cpu_is_right(machine: Machine, target: str, tmp_path: Path) -> None:
    made = artifact(target)
    assert made.threads == 1
    sizes = {"a": ROWS * INNER, "b": INNER * COLUMNS, "c": ROWS * COLUMNS, "space": made.workspace_bytes + 64}
    (tmp_path / "kernel.o").write_bytes(made.object_code)
    (tmp_path / "main.c").write_text(HARNESS % sizes)
    subprocess.run([machine.compiler, "-static", "-o", "main", "main.c", "kernel.o", "-lm"], cwd=tmp_path, check=True)
    a, b = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((ROWS, INNER), (INNER, COLUMNS)))
    (tmp_path / "in").write_bytes(a.tobytes() + b.tobytes())
    subprocess.run([machine.runner[0], "main", "in", "out"], cwd=tmp_path, check=True)
    got = np.fromfile(tmp_path / "out", np.float32).reshape(ROWS, COLUMNS)
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)
