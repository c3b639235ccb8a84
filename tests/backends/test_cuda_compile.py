"""CUDA C to cubins without a GPU: the compiler, its cache, what it says, and what is missing where it is not."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gpu_programs import parse

from loopwright.backends.build import build
from loopwright.backends.c_family.artifact import Artifact, CompileError
from loopwright.backends.cuda import device, nvrtc, nvrtc_library
from loopwright.backends.cuda.compile import compile_module
from loopwright.backends.cuda.driver import MissingCuda, model_name, pycuda_driver
from loopwright.backends.cuda.nvrtc_library import Library, libraries
from loopwright.dialects.presets import PRESETS, preset_target
from loopwright.dialects.target import parse_target

SOURCE = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] += 1.0f; }'
COPY = """
builtin.module attributes {lw.target = #lw.target<"cuda compute_capability=80">} {
func.func @copy(%x : memref<64xf32> {lw.name = "x"}, %y : memref<64xf32> {lw.name = "y", lw.output}) {
  lw_kernel.launch grid [2, 1, 1] block [32, 1, 1] {
    %b = lw_kernel.thread "blockIdx.x" : index
    %t = lw_kernel.thread "threadIdx.x" : index
    %n = arith.constant 32 : index
    %p = arith.muli %b, %n : index
    %i = arith.addi %p, %t : index
    %v = lw_kernel.load %x[%i] stride 0 : memref<64xf32> -> f32
    lw_kernel.store %v, %y[%i] stride 0 : f32, memref<64xf32>
  }
  func.return
}
}
"""


@pytest.fixture
def cache_folder(own_cache: Path) -> Path:
    return own_cache / "cubin"


def test_one_file_an_architecture_and_source(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = nvrtc.compile_cubin(SOURCE, 80)
    assert first.code[:4] == b"\x7fELF"
    assert [file.stat().st_size > len(first.code) for file in cache_folder.glob("*/*.bin")] == [True]

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(Library, "compile", refuse)
    assert nvrtc.compile_cubin(SOURCE, 80) == first
    for source, capability in ((SOURCE, 90), (SOURCE + "\n", 80)):
        with pytest.raises(AssertionError, match="compiled again"):
            nvrtc.compile_cubin(source, capability)


def test_errors_hold_the_log(cache_folder: Path) -> None:
    with pytest.raises(
        CompileError, match=r"(?s)NVRTC_ERROR_COMPILATION \(--gpu-architecture=sm_80.*error: expected a"
    ):
        nvrtc.compile_cubin(SOURCE.replace(";", "", 1), 80)
    assert not list(cache_folder.glob("*/*.bin"))


@pytest.fixture
def newest_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the newest NVRTC as the only compiler."""
    monkeypatch.setattr(nvrtc, "libraries", lambda: libraries()[:1])
    monkeypatch.setattr(nvrtc.shutil, "which", lambda *_, **__: None)
    nvrtc._compiler.cache_clear()
    yield
    nvrtc._compiler.cache_clear()


def test_an_architecture_that_no_compiler_knows_is_one_sentence(newest_alone: None) -> None:
    with pytest.raises(nvrtc.MissingCompiler, match=r"sm_61 \(NVRTC 13.*pip install nvidia-cuda-nvrtc-cu12 nvidia-"):
        nvrtc.compile_cubin(SOURCE, 61, use_cache=False)
    with pytest.raises(nvrtc.MissingCompiler, match=r"makes code for sm_30 \(NVRTC 13.*another architecture$"):
        nvrtc.compile_cubin(SOURCE, 30, use_cache=False)


def test_headers_of_another_version_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "toolkit_folders", list)
    lonely = Library(tmp_path / "cuda_nvrtc" / "lib" / "libnvrtc.so.12", (12, 9), (61,))
    compiler = nvrtc._Compiler("nvrtc 12.9", lonely)
    assert compiler.includes(SOURCE) == ()
    with pytest.raises(nvrtc.MissingCompiler, match=r"cuda_fp16\.h, .*pip install nvidia-cuda-runtime-cu12$"):
        compiler.includes("#include <cuda_fp16.h>")


def test_what_kernels_have_nothing_of_is_left_out_of_nvrtcs_headers(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, ...]] = []
    compile_ = Library.compile

    def compiled(self: Library, source: str, options: tuple[str, ...]) -> tuple[bytes, str]:
        given.append(options)
        return compile_(self, source, options)

    monkeypatch.setattr(Library, "compile", compiled)
    brief = nvrtc.compile_cubin(SOURCE, 90, use_cache=False)
    monkeypatch.setattr(nvrtc, "KNOWS_MINIMAL", (99, 0))
    assert nvrtc.compile_cubin(SOURCE, 90, use_cache=False).code == brief.code
    assert [nvrtc.MINIMAL in options for options in given] == [True, False]


@pytest.mark.skipif(
    not any(61 in library.capabilities for library in libraries()), reason="NVRTC of CUDA 12 is not installed"
)
@pytest.mark.parametrize("capability", [61, 70])
def test_older_architectures_by_the_compiler_of_cuda_12(capability: int) -> None:
    half = "#include <cuda_fp16.h>\n" + SOURCE.replace("float", "__half").replace("1.0f", "__float2half(1.0f)")
    for source in (SOURCE, half):
        cubin = nvrtc.compile_cubin(source, capability, use_cache=False)
        assert cubin.code[:4] == b"\x7fELF" and cubin.resources[0].registers > 0
    assert f".target sm_{capability}" in nvrtc.compile_ptx(SOURCE, capability)
    assert nvrtc._compiler(capability).version.startswith("nvrtc 12.")
    assert nvrtc._compiler(90).version.startswith("nvrtc 13.")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_stands_in() -> None:
    nvcc = shutil.which("nvcc")
    assert nvcc is not None
    cubin = nvrtc._by_nvcc(nvcc, SOURCE, ("--gpu-architecture=sm_80", *nvrtc.OPTIONS))
    assert cubin.code[:4] == b"\x7fELF"
    (resources,) = cubin.resources
    assert resources.name == "k" and resources.registers > 0
    with pytest.raises(CompileError, match="nvcc failed"):
        nvrtc._by_nvcc(nvcc, "no C", ("--gpu-architecture=sm_80",))


def test_nvcc_without_room_for_its_files_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc.tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(
        CompileError, match=r"nvcc works in temporary files, and these cannot be: No such file .*nowhere"
    ):
        nvrtc._by_nvcc("nvcc", SOURCE, ("--gpu-architecture=sm_80",))


def test_spills_are_seen() -> None:
    lines = "".join(f"float a{n} = x[{n} * threadIdx.x];" for n in range(90))
    uses = "".join(f"x[{n} * threadIdx.x + 1] = a{n} + a{(n * 7) % 90};" for n in range(90))
    source = f'extern "C" __global__ void __launch_bounds__(1024, 2) k(volatile float* x) {{ {lines} {uses} }}'
    (resources,) = nvrtc.compile_cubin(source, 90).resources
    assert resources.registers == 32
    assert resources.spill_store_bytes > 0 and resources.spill_load_bytes > 0


def test_artifacts_travel() -> None:
    artifact = compile_module(parse(COPY))
    back = Artifact.from_bytes(artifact.to_bytes(), "cuda")
    assert back == artifact
    assert back.architecture == "sm_80"
    assert back.kernel.launches[0].grid == (2, 1, 1)
    with pytest.raises(ValueError, match="this artifact is for 'cuda', not for opencl"):
        Artifact.from_bytes(artifact.to_bytes(), "opencl")
    with pytest.raises(ValueError, match="no GPU kernel artifact"):
        Artifact.from_bytes(b"something", "cuda")


def test_build_needs_no_device() -> None:
    kernel = build(parse(COPY))
    assert "copy_k0" in kernel.source
    assert ".target sm_80" in kernel.assembly
    assert kernel.resources[0].name == "copy_k0"  # type: ignore[attr-defined]


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc_library.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(nvrtc_library, "toolkit_folders", list)
    monkeypatch.setattr(nvrtc.shutil, "which", lambda *_, **__: None)
    libraries.cache_clear()
    nvrtc._compiler.cache_clear()
    try:
        with pytest.raises(nvrtc.MissingCompiler, match=r"NVRTC or nvcc, .* pip install 'loopwright\[cuda\]'"):
            nvrtc.compile_cubin(SOURCE, 80)
    finally:
        libraries.cache_clear()
        nvrtc._compiler.cache_clear()


def test_versions_name_the_compiler() -> None:
    versions = device.versions()
    assert versions["cuda-compiler"].startswith("nvrtc 13.")
    assert versions["lw-split"]


@pytest.mark.parametrize(("kind", "model"), PRESETS)
def test_presets(kind: str, model: str) -> None:
    target = PRESETS[kind, model]
    assert (target.kind, target.model) == (kind, model)
    assert preset_target(f"{kind} model={model}") == target
    assert parse_target(str(target)) == target
    assert target.max_threads_per_block and target.max_shared_bytes


def test_options_beside_a_preset() -> None:
    target = preset_target("cuda model=h200 max_shared_bytes=49152")
    assert target.max_shared_bytes == 49152 and target.compute_capability == 90
    assert preset_target("opencl model=rk3399").model == "mali-t860"
    with pytest.raises(ValueError, match="unknown option"):
        preset_target("cuda modell=h200")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce GTX 1080 Ti", "gtx1080ti"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA RTX A6000", "rtxa6000"),
    ],
)
def test_device_names(name: str, model: str) -> None:
    assert model_name(name) == model
    assert ("cuda", model) in PRESETS


def test_running_without_a_driver_is_one_sentence() -> None:
    kernel = build(parse(COPY))
    try:
        pycuda_driver()
    except MissingCuda as error:
        assert "\n" not in str(error)
        with pytest.raises(MissingCuda, match=r"pycuda|driver"):
            kernel(np.zeros(64, np.float32))
    else:
        x = np.arange(64, dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), x)
