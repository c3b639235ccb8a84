"""Kernels say which CPU features they may use, and are refused in a sentence where one is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.llvm import cpu, device, half
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.cpu import CpuFeatures, MissingFeatures, cpu_for, host_model
from loopwright.backends.llvm.executable import Artifact, LlvmExecutable
from loopwright.backends.llvm.half import MissingConversions
from loopwright.dialects.cpu_models import LEVELS
from loopwright.graph.builders import Job, build_all
from loopwright.graph.runtime.package import PackageError

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
X86 = cpu.architecture() == "x86_64"
only_x86 = pytest.mark.skipif(not X86, reason="levels are of x86-64")


def product(target: str) -> lw.SearchTask:
    a, b = te.placeholder((8, 64), name="a"), te.placeholder((64, 64), name="b")
    return lw.SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target=target)


def module(target: str) -> ModuleOp:
    return lower_to_kernel(product(target).module)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This CPU as one that has what the second level has, and nothing more."""
    known = {name: name in LEVELS["x86-64-v2"].features.split() for name in cpu._known()}
    monkeypatch.setattr(cpu, "_known", lambda: known)
    for cached in (cpu.host_features, cpu_for):
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in (cpu.host_features, cpu_for):
        cached.cache_clear()


def test_what_llvm_is_given_is_what_is_recorded() -> None:
    _, artifact = compile_module(module("llvm cores=1"))
    assert artifact.features == cpu_for("generic").features
    assert artifact.features[0] == cpu.architecture() and list(artifact.features[1:]) == sorted(artifact.features[1:])
    assert Artifact.from_bytes(artifact.to_bytes()) == artifact
    allowed = {flag[1:] for flag in cpu_for("generic").flags.split(",") if flag[0] == "+"}
    assert allowed == set(artifact.features[1:]) <= set(cpu.host_features())
    assert not allowed & {"sgx", "rdrnd", "xsaves", "amx-tile"}
    assert cpu.why_not_here(artifact.features) is None


@only_x86
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2"])
def test_halves_are_converted_without_instructions_for_it(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = te.placeholder((64,), "float16", name="x"), te.placeholder((64,), "float64", name="w")
    y = te.compute((64,), lambda i: (x[i].astype("float32") * 1.5 + te.exp(x[i])).astype("float16"), name="y")
    z = te.compute((64,), lambda i: (w[i] + x[i].astype("float64")).astype("float16"), name="z")
    module = te.create_module([x, w, y, z])
    random = np.random.default_rng(0)
    given = random.standard_normal(64).astype(np.float16), random.standard_normal(64)
    wanted = lw.build(module, target="llvm model=x86-64-v3 cores=1")(*given)
    for got, want in zip(lw.build(module, target=f"llvm model={level} cores=1")(*given), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    monkeypatch.setattr(half, "LIBRARY", "libgcc_of_long_ago.so.1")
    with pytest.raises(MissingConversions, match=r"float16 for a CPU without F16C takes .*llvm model=x86-64-v3"):
        lw.build(module, target=f"llvm model={level} cores=1")(*given)


@only_x86
@pytest.mark.parametrize(("level", "widest"), [("x86-64", "x"), ("x86-64-v2", "x"), ("x86-64-v3", "y")])
@pytest.mark.few(2)
def test_a_level_is_what_code_for_it_uses(level: str, widest: str) -> None:
    task = product(f"llvm model={level}")
    kernel = task.build(task.default_schedule)
    assert max(re.findall(r"%([xyz])mm", kernel.assembly)) == widest
    assert ("vfmadd" in kernel.assembly) == (level == "x86-64-v3")
    assert LEVELS[level].vector_bytes == {"x": 16, "y": 32}[widest]
    assert cpu_for(level).features == ("x86_64", *sorted(set(LEVELS[level].features.split()) - {"crc32", "xsave"}))
    a, b = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    np.testing.assert_allclose(kernel(a[:8], b), a[:8] @ b, rtol=1e-4, atol=1e-4)


@only_x86
def test_a_kernel_with_features_that_are_missing_is_refused(fake: None) -> None:
    built = compile_module(module("llvm model=x86-64-v3"))[1]
    with pytest.raises(MissingFeatures) as refused:
        LlvmExecutable(built)
    assert str(refused.value) == (
        f"kernel {built.name} uses avx, avx2, bmi, bmi2, f16c, fma and 2 more, which this CPU ({host_model()}) does "
        "not have: compile it on such a CPU, or for the target 'llvm model=x86-64-v2'"
    )
    LlvmExecutable(compile_module(module("llvm model=x86-64-v2"))[1])
    with pytest.raises(
        MissingFeatures, match=r"is compiled for aarch64, this CPU is x86_64: run it there, or compile it for this one"
    ):
        LlvmExecutable(replace(built, features=("aarch64", "neon", "sve")))


def small() -> lw.Network:
    net = lw.Network("small")
    net.output(net.relu(net.dense(net.input("x", (4, 32)), np.ones((16, 32), np.float32))))
    return net


@only_x86
def test_a_package_is_refused_where_features_are_missing(
    tmp_path: Path, own_cache: Path, request: pytest.FixtureRequest
) -> None:
    for name, target in (("three", "llvm model=x86-64-v3"), ("two", "llvm model=x86-64-v2"), ("any", "llvm cores=1")):
        lw.compile(small(), target, processes=1).save(tmp_path / name)
    for name in ("three", "two", "any"):
        result = lw.load_network(tmp_path / name).executor()(np.ones((4, 32), np.float32))
        assert np.asarray(result)[0, 0] == 32
    needs_more = set(cpu_for("generic").features[1:]) - set(LEVELS["x86-64-v2"].features.split())
    request.getfixturevalue("fake")
    sentence = rf"^network small uses avx, .* which this CPU \({host_model()}\) does not have: compile it on such a CPU"
    with pytest.raises(PackageError, match=sentence):
        lw.load_network(tmp_path / "three").executor()
    if needs_more:
        with pytest.raises(PackageError, match=r"^network small uses .* does not have: compile it"):
            lw.load_network(tmp_path / "any").executor()
    result = lw.load_network(tmp_path / "two").executor()(np.ones((4, 32), np.float32))
    assert np.asarray(result)[0, 0] == 32


def test_the_key_of_kept_kernels_has_the_features(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = "loopwright.backends.llvm.device"
    tasks, _ = lw.extract_tasks(small(), "llvm cores=1")
    jobs = [Job(task.name, str(task.module), None) for task in tasks]
    first = build_all(backend, jobs, processes=1)
    monkeypatch.setattr("loopwright.graph.builders.build", None)
    assert build_all(backend, jobs, processes=1) == first
    other = CpuFeatures("other", cpu_for("").features[:-1])
    monkeypatch.setattr(device, "cpu_for", lambda: other)
    device.machine.cache_clear()
    try:
        with pytest.raises(Exception, match="does not compile: 'NoneType' object is not callable"):
            build_all(backend, jobs, processes=1)
    finally:
        device.machine.cache_clear()


UNROLLED = ",".join(
    f'lw-unroll{{block="compute" loop="{loop}"}}' for loop in ("rc1", "ry2", "rx2", "ff2", "yy2", "xx2")
)
WIDE_WINDOW = f"""lw-lower-te-to-loop,lw-split{{block="compute" loop="xx" factors=0,2,1,16}},
lw-split{{block="compute" loop="ff" factors=0,8,8}},lw-split{{block="compute" loop="yy" factors=0,4,2}},
lw-split{{block="compute" loop="rc" factors=0,1}},lw-split{{block="compute" loop="ry" factors=0,3,4}},
lw-split{{block="compute" loop="rx" factors=0,3,4}},
lw-reorder{{block="compute" loops="nn","ff0","yy0","xx0","ry0","rx0","xx1","ff1","yy1","rc0","ry1","rx1",
"rc1","ry2","rx2","ff2","yy2","xx2","xx3"}},
lw-fuse{{block="compute" loops="ff0","yy0","xx0"}},lw-vectorize{{block="compute" loop="xx3"}},{UNROLLED},
lw-set-scope{{block="compute" scope="local"}},lw-reverse-compute-at{{block="T_relu" loop="ff0_yy0_xx0"}}"""
"""Tiles of 8 filters by 2 rows of a vector, of 4 x 4 taps at a time."""


@only_x86
def test_no_vector_of_a_wide_window_goes_to_the_stack_on_a_zen_4() -> None:
    """By the latencies that LLVM has for it 61 did, in the innermost loop."""
    assert cpu_for("znver5").tune == cpu_for("znver4").tune == "znver3"
    data, kernel = te.placeholder((1, 3, 40, 40), name="data"), te.placeholder((64, 3, 9, 9), name="kernel")
    tensors = [data, kernel, topi.nn.relu(topi.nn.conv2d_nchw(data, kernel))]
    made = lw.SearchTask(tensors, target="llvm model=znver4 cores=1").build(WIDE_WINDOW.replace("\n", ""))
    assert not re.findall(r"vmov\w+\s+%zmm\d+, -?\d*\(%rsp\)", made.assembly)
