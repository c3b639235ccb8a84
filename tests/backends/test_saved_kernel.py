"""Saved kernels: their files run without this package, from C and from Python."""

import ctypes.util
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from c_programs import CC, only_with_gcc
from cpu_products import named, scheduled
from cuda_on_cpu import GXX, make_driver
from gpu_programs import opencl_device

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.c_family.kernel_source import TensorMap
from loopwright.backends.cuda.nvrtc import compile_cubin, include_folder
from loopwright.backends.cuda.nvrtc_library import libraries
from loopwright.backends.device_kernel import DeviceKernel
from loopwright.backends.kernel_function import Kernel
from loopwright.dialects.pixel_walk import Walk

SIZE = 1000
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
HEADERS = Path(__file__).resolve().parent.parent / "support" / "opencl_header"
ALONE = """
import runpy, sys
sys.modules["loopwright"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script where this package cannot be imported."""
A = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
WEIGHT = np.random.default_rng(1).standard_normal(SIZE).astype(np.float32)
PRODUCT = A * WEIGHT
EXPECTED = PRODUCT + PRODUCT[::-1], (PRODUCT > 0).astype(np.int8)


def built(target: str) -> Kernel:
    """A product by constants, in a buffer of its own, then two outputs; on GPUs three launches of several blocks."""
    a, w = te.placeholder((SIZE,), name="a"), te.placeholder((SIZE,), name="weight", constant=True)
    b = te.compute((SIZE,), lambda i: a[i] * w[i], name="b")
    c = te.compute((SIZE,), lambda i: b[i] + b[SIZE - 1 - i], name="float")
    d = te.compute((SIZE,), lambda i: (b[i] > 0.0).astype("int8"), name="signs")
    schedule = lw.Schedule(te.create_module([a, w, c, d], name="mirrored"), target=target)
    for block in ("b", "float", "signs"):
        (i,) = schedule.get_loops(block)
        outer, inner = schedule.split(block, i, [None, 128])
        if target.startswith("llvm"):
            schedule.parallel(block, outer)
        else:
            schedule.bind(block, outer, "blockIdx.x")
            schedule.bind(block, inner, "threadIdx.x")
    return lw.build(schedule, target, {"weight": WEIGHT})


def saved(target: str, path: Path) -> list[str]:
    """Save the kernel, and leave its input beside it; returns the names of the files."""
    (path.parent / "a.bin").write_bytes(A.tobytes())
    written = built(target).save(path)
    assert all(file.parent == path.parent and file.is_file() for file in written)
    return [file.name for file in written]


def check_outputs(folder: Path) -> None:
    """Compare what a program wrote with NumPy, and remove it."""
    for name, wanted in zip(("c.bin", "d.bin"), EXPECTED, strict=True):
        got: npt.NDArray[Any] = np.fromfile(folder / name, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)
        (folder / name).unlink()


def run_alone(folder: Path, **environment: str) -> None:
    command = [sys.executable, "-W", "error::SyntaxWarning", "-c", ALONE, "k_run.py", "a.bin", "c.bin", "d.bin"]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, **environment})
    check_outputs(folder)


def run_host(folder: Path, options: list[str], **environment: str) -> None:
    subprocess.run([str(CC), *STRICT, "-o", "k_host", "k_host.c", *options], cwd=folder, check=True)
    subprocess.run(["./k_host", "a.bin", "c.bin", "d.bin"], cwd=folder, check=True, env=environment)
    check_outputs(folder)
    done = subprocess.run(["./k_host"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "a: float32[1000]" in done.stderr
    done = subprocess.run(
        ["./k_host", "k.no", "c.bin", "d.bin"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "k.no: no file of 4000 bytes" in done.stderr and not (folder / "c.bin").exists()


@only_with_gcc
@pytest.mark.parametrize("target", ["llvm cores=1", "llvm cores=2"])
def test_a_library_runs(target: str, tmp_path: Path) -> None:
    assert saved(target, tmp_path / "k.so") == ["k.so", "k.h", "k_host.c", "k_run.py"]
    run_alone(tmp_path)
    run_host(tmp_path, ["./k.so", "-lm"])


@only_with_gcc
@pytest.mark.parametrize("target", ["llvm cores=1", "llvm cores=2"])
@pytest.mark.few(1)
def test_llvm_ir_runs(target: str, tmp_path: Path) -> None:
    import llvmlite.binding as llvm

    assert saved(target, tmp_path / "k.ll") == ["k.ll", "k.h", "k_host.c", "k_run.py"]
    run_alone(tmp_path)
    module = llvm.parse_assembly((tmp_path / "k.ll").read_text())
    machine = llvm.Target.from_triple(module.triple).create_target_machine(
        llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), reloc="pic"
    )
    (tmp_path / "k.o").write_bytes(machine.emit_object(module))
    run_host(tmp_path, ["./k.o", "-lm", "-fopenmp"])


def test_opencl_runs_from_python(tmp_path: Path) -> None:
    opencl_device()
    assert saved("opencl", tmp_path / "k.cl") == ["k.cl", "k_constants.bin", "k_host.c", "k_run.py"]
    run_alone(tmp_path)


@only_with_gcc
def test_opencl_runs_from_c(tmp_path: Path) -> None:
    saved("opencl model=pocl", tmp_path / "k.cl")
    check = [str(CC), *STRICT, "-fsyntax-only", "-I", str(HEADERS), "k_host.c"]
    subprocess.run(check, cwd=tmp_path, check=True)
    library = ctypes.util.find_library("OpenCL")
    if library is None:
        pytest.skip("running needs libOpenCL")
    opencl_device()
    run_host(tmp_path, ["-I", str(HEADERS), f"-l:{library}"], **os.environ)


@pytest.fixture
def cuda(tmp_path: Path) -> dict[str, str]:
    """An environment with a driver and a compiler that stand in for CUDA's; the kernel is saved as `k.cu`."""
    if GXX is None:
        pytest.skip("needs g++")
    assert saved("cuda model=h200", tmp_path / "k.cu") == ["k.cu", "k_constants.bin", "k_host.c", "k_run.py"]
    folder = tmp_path / "driver"
    folder.mkdir()
    make_driver(folder, tmp_path / "k.cu", [f"mirrored_k{n}" for n in range(3)], "mirrored_k0")
    compiler = folder / "nvcc"
    compiler.write_text('#!/bin/sh\ntest "$1 $2 $3 $4" = "-cubin -arch=sm_90 -std=c++17 -o" && cp "$6" "$5"\n')
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    return {"LD_LIBRARY_PATH": str(folder), "PATH": f"{folder}:{os.environ['PATH']}"}


def cuda_headers() -> list[str]:
    """The compiler's options for CUDA's headers."""
    headers = include_folder(libraries()[0]) if libraries() else None
    if headers is None or not (headers / "cuda.h").exists():
        pytest.skip("needs cuda.h")
    return ["-isystem", str(headers)]


def test_cuda_runs_from_python(cuda: dict[str, str], tmp_path: Path) -> None:
    assert compile_cubin((tmp_path / "k.cu").read_text(), 90, use_cache=False).code
    run_alone(tmp_path, **cuda)


def test_shared_memory_above_the_static_limit_is_asked_for(cuda: dict[str, str], tmp_path: Path) -> None:
    kernel = built("cuda model=h200")
    assert isinstance(kernel, DeviceKernel)
    source = kernel._executable.artifact.kernel
    object.__setattr__(
        source, "launches", tuple(replace(each, dynamic_shared_bytes=100_000) for each in source.launches)
    )
    kernel.save(tmp_path / "k.cu")
    run_alone(tmp_path, **cuda)
    script = (tmp_path / "k_run.py").read_text()
    (tmp_path / "k_run.py").write_text(script.replace("STATIC_SHARED_BYTES = 49152", "STATIC_SHARED_BYTES = 200000"))
    with pytest.raises(subprocess.CalledProcessError):
        run_alone(tmp_path, **cuda)


def test_ptx_runs_from_python(cuda: dict[str, str], tmp_path: Path) -> None:
    assert saved("cuda model=h200", tmp_path / "k.ptx") == ["k.ptx", "k_constants.bin", "k_host.c", "k_run.py"]
    text = (tmp_path / "k.ptx").read_text()
    assert ".target sm_90" in text and ".visible .entry mirrored_k2(" in text
    run_alone(tmp_path, LD_LIBRARY_PATH=cuda["LD_LIBRARY_PATH"])


@only_with_gcc
@pytest.mark.parametrize("suffix", [".cu", ".ptx"])
def test_cuda_runs_from_c(suffix: str, cuda: dict[str, str], tmp_path: Path) -> None:
    headers = cuda_headers()
    if suffix == ".ptx":
        saved("cuda model=h200", tmp_path / "k.ptx")
    assert f'LW_FOLDER "/k.{"cubin" if suffix == ".cu" else "ptx"}"' in (tmp_path / "k_host.c").read_text()
    run_host(tmp_path, [*headers, f"-L{cuda['LD_LIBRARY_PATH']}", "-lcuda"], **cuda)


_WITH_MAPS = """struct __align__(64) TensorMap { unsigned long long opaque[16]; };
#include <cstdlib>
static void is(const TensorMap& map, const void* address, unsigned long long inner, unsigned long long swizzle) {
    const unsigned long long* said = map.opaque;
    if (said[0] != (unsigned long long)address || said[1] != 7 || said[2] != 2 || said[3] != swizzle) abort();
    if (said[4] != inner || said[5] != 1000 / inner || said[8] != 8 || said[9] != 4 || said[12] != 4 * inner) abort();
}
static void walks(const TensorMap& map, const void* address) {
    const unsigned long long* said = map.opaque;
    if (said[0] != (unsigned long long)address || said[1] != 7 || said[2] != 3 || said[3] != 0) abort();
    if (said[4] != 10 || said[5] != 50 || said[6] != 2 || said[13] != 40 || said[14] != 2000) abort();
    if (said[8] != 4 || said[9] != 32 || said[10] != 99 || said[11] != 98 || said[12] != 2) abort();
}
"""
"""Aborts where a tensor map of floats was not made of these: of boxes, and of a walk over two rows of 50 pixels."""


def save_with_maps(folder: Path, environment: dict[str, str]) -> None:
    """Save a kernel, the last launch of which takes two tensor maps, with a driver that runs it."""
    kernel = built("cuda model=h200")
    assert isinstance(kernel, DeviceKernel)
    source = kernel._executable.artifact.kernel
    *others, last = source.launches
    first, *_, second = last.buffers
    maps = (
        TensorMap(first, "f32", (50, 20), (4, 8), 128),
        TensorMap(second, "f32", (25, 40), (4, 8), 0),
        TensorMap(second, "f32", (2, 50, 10), (32, 4), 0, Walk((-1,), (47,), (2,))),
    )
    object.__setattr__(source, "launches", (*others, replace(last, maps=maps)))
    before, _, after = source.source.partition(f"{last.name}(")
    parameters, _, body = after.partition("{")
    names = [each.split()[-1] for each in parameters.rpartition(")")[0].split(",")]
    checks = f"is(first, {names[0]}, 20, 3); is(second, {names[-1]}, 40, 0);"
    given = "const TensorMap first, const TensorMap second, const TensorMap third"
    checks += f" walks(third, {names[-1]});"
    text = f"{_WITH_MAPS}{before}{last.name}({given}, {parameters}{{{checks}{body}"
    object.__setattr__(source, "source", text)
    kernel.save(folder / "k.cu")
    make_driver(Path(environment["LD_LIBRARY_PATH"]), folder / "k.cu", [x.name for x in source.launches], "mirrored_k0")


def test_tensor_maps_are_made_once_and_given_first(cuda: dict[str, str], tmp_path: Path) -> None:
    save_with_maps(tmp_path, cuda)
    run_alone(tmp_path, **cuda)


@only_with_gcc
def test_tensor_maps_are_made_in_c(cuda: dict[str, str], tmp_path: Path) -> None:
    save_with_maps(tmp_path, cuda)
    run_host(tmp_path, [*cuda_headers(), f"-L{cuda['LD_LIBRARY_PATH']}", "-lcuda"], **cuda)


@only_with_gcc
def test_a_product_that_copies_in_bulk_is_saved(tmp_path: Path) -> None:
    """For the device's own code, sm_90a; its host programs compile."""
    a, b = (te.placeholder((256, 256), "float16", name=name) for name in "ab")
    task = lw.SearchTask([a, b, topi.nn.matmul(a, b, out_dtype="float32")], target="cuda model=h200")
    (sketch,) = [each for each in task.sketches if each.name.endswith("_bulk")]
    schedule = lw.Schedule(task.module)
    schedule.apply(sketch.schedule(sketch.default))
    lw.build(schedule).save(tmp_path / "k.cu")
    assert "const __grid_constant__ TensorMap a_boxes" in (tmp_path / "k.cu").read_text()
    assert "-arch=sm_90a" in (tmp_path / "k_host.c").read_text()
    assert "'sm_90a'" in (tmp_path / "k_run.py").read_text()
    subprocess.run([str(CC), *STRICT, *cuda_headers(), "-c", "k_host.c"], cwd=tmp_path, check=True)
    compile((tmp_path / "k_run.py").read_text(), "k_run.py", "exec")


def test_a_run_is_told_what_it_must_be_given(tmp_path: Path) -> None:
    saved("llvm cores=1", tmp_path / "k.so")
    script = """
import k_run, numpy as np
for given in ([], [np.zeros(5, np.float32)], [np.zeros(1000)]):
    try:
        k_run.run(*given)
    except TypeError as error:
        print(error)
"""
    said = subprocess.check_output([sys.executable, "-c", script], cwd=tmp_path, text=True)
    assert said.splitlines() == [
        "mirrored takes 1 arrays, got 0",
        "mirrored: 'a' must be float32 of shape (1000,), got float32 of (5,)",
        "mirrored: 'a' must be float32 of shape (1000,), got float64 of (1000,)",
    ]


def test_scalars_and_bfloat16_run(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, s = te.placeholder((4,), name="x", dtype="bfloat16"), te.placeholder((), name="s")
    kernel = lw.build([x, s, te.compute((4,), lambda i: x[i].astype("float32") * s[()], name="y")], "llvm cores=1")
    kernel.save(tmp_path / "k.so")
    script = "import k_run, numpy as np; np.save('y', k_run.run(np.load('x.npy').view('bfloat16'), np.float32(3)))"
    values = np.array([1, -2, 0.5, 3]).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x", values.view(np.uint16))
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), 3 * values.astype(np.float32))


def refusal(kernel: Kernel, path: Path) -> str:
    """The sentence for a kernel that is not saved; nothing is written."""
    with pytest.raises(ValueError, match=r"^kernel mirrored\b") as refused:
        kernel.save(path)
    assert not list(path.parent.iterdir())
    return str(refused.value).removeprefix("kernel mirrored")


def test_kernels_that_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, cpu = built("opencl model=pocl"), built("llvm cores=1")
    assert refusal(gpu, tmp_path / "k.cu") == f" is for opencl: it is saved as .cl, not as {tmp_path / 'k.cu'}"
    assert " is for llvm: it is saved as .ll or .so, not as " in refusal(cpu, tmp_path / "k.o")
    assert refusal(cpu, tmp_path / "a b.so").endswith("'.', '_', '+' and '-', not 'a b.so'")
    for suffix in (".ll", ".so"):
        with pytest.raises(FileNotFoundError, match=r"No such file or directory: .*missing"):
            cpu.save(tmp_path / "missing" / f"k{suffix}")
    monkeypatch.setattr("loopwright.backends.llvm.library._MOST_TEXT_BYTES", 100)
    assert "constants, LLVM IR takes at most 100 as text" in refusal(cpu, tmp_path / "k.ll")
    other = Kernel("mirrored", (), gpu._executable, "", str)
    assert (
        refusal(other, tmp_path / "k.so")
        == ": only kernels for llvm, cuda and opencl are saved, not those of other backends"
    )


def test_files_that_are_not_ours_stay(tmp_path: Path) -> None:
    gpu, cpu = built("opencl model=pocl"), built("llvm cores=1")
    cases = [(cpu, f"k{end}", (".so", "_host.c", "_run.py", ".h")) for end in (".so", ".ll")]
    for kernel, name, endings in (*cases, (gpu, "k.cl", (".cl", "_host.c", "_run.py", "_constants.bin"))):
        for ending in endings:
            path = tmp_path / (name if ending == ".so" else f"k{ending}")
            path.write_text("mine")
            with pytest.raises(FileExistsError, match="so it is left alone: give another name"):
                kernel.save(tmp_path / name)
            assert path.read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
            path.unlink()
        first = {path: path.read_bytes() for path in kernel.save(tmp_path / name)}
        assert {path: path.read_bytes() for path in kernel.save(tmp_path / name)} == first
        for path in first:
            path.unlink()


@pytest.mark.parametrize("target", ["llvm cores=1", "opencl model=pocl"])
def test_constants_that_are_packed_come_with_the_kernel(target: str, tmp_path: Path) -> None:
    a = te.placeholder((8, 64), name="a")
    b = te.placeholder((64, 8), name="b", constant=True)
    schedule = lw.Schedule(te.create_module([a, b, topi.matmul(a, b)], name="mirrored"), target=target)
    schedule.transform_layout("T_matmul", "b", layout=["j/4", "k", "j%4"])
    path = tmp_path / ("k.so" if target.startswith("llvm") else "k.cl")
    sentence = refusal(lw.build(schedule), path)
    assert re.search(
        r": constant 'b' has a layout of its own: to \w+ the kernel build it with params={'b': ...}", sentence
    )
    x, weight = (
        np.random.default_rng(n).standard_normal(s).astype(np.float32) for n, s in ((0, (8, 64)), (1, (64, 8)))
    )
    if path.suffix == ".cl":
        opencl_device()
    lw.build(schedule, params={"b": weight}).save(path)
    script = "import k_run, numpy as np; np.save('y', k_run.run(np.load('x.npy')))"
    np.save(tmp_path / "x", x)
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), x @ weight, rtol=1e-4, atol=1e-4)


def test_kernels_that_ask_linux_for_tiles_are_not_saved(tmp_path: Path) -> None:
    for suffix in (".so", ".ll"):
        with pytest.raises(ValueError, match=r"uses tiles, which its program asks Linux for: it is not saved;"):
            lw.build(scheduled(named("amx.m16n16k32.bf16"))).save(tmp_path / f"k{suffix}")
    assert not list(tmp_path.iterdir())
