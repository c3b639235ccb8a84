"""Kernels of a function that are compiled each alone: their code, the cache, how they travel and are loaded."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_pycuda import FakeDriver, installed
from gpu_programs import parse
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.c_family.executable import DeviceExecutable
from loopwright.backends.cuda import device
from loopwright.backends.cuda.compile import compile_apart, compile_module
from loopwright.backends.cuda.cubins import joined_cubins, of_each_launch, separate_cubins
from loopwright.backends.cuda.nvrtc_library import Library
from loopwright.backends.cuda.runtime import CudaRuntime
from loopwright.graph.build_process import build
from loopwright.passes.pipeline_text import schedule_text
from loopwright.schedule import Schedule
from loopwright.search.measure.backend_api import load_backend
from loopwright.search.measure.worker import BuilderServer

TEXT = """
builtin.module attributes {{lw.target = #lw.target<"cuda compute_capability=90">}} {{
func.func @f(%x : memref<64xf32> {{lw.name = "x"}}, %y : memref<64xf32> {{lw.name = "y", lw.output}}) {{
  %ws = lw_kernel.alloc "ws" : memref<64xf32>
  lw_kernel.launch grid [2, 1, 1] block [32, 1, 1] {{
    %b = lw_kernel.thread "blockIdx.x" : index
    %t = lw_kernel.thread "threadIdx.x" : index
    %n = arith.constant 32 : index
    %p = arith.muli %b, %n : index
    %i = arith.addi %p, %t : index
    %v = lw_kernel.load %x[%i] stride 0 : memref<64xf32> -> f32
    %w = arith.addf %v, %v : f32
    lw_kernel.store %w, %ws[%i] stride 0 : f32, memref<64xf32>
  }}
  lw_kernel.launch grid [{grid}, 1, 1] block [{block}, 1, 1] {{
    %b = lw_kernel.thread "blockIdx.x" : index
    %t = lw_kernel.thread "threadIdx.x" : index
    %n = arith.constant {block} : index
    %p = arith.muli %b, %n : index
    %i = arith.addi %p, %t : index
    %v = lw_kernel.load %ws[%i] stride 0 : memref<64xf32> -> f32
    %w = arith.maximumf %v, %v : f32
    lw_kernel.store %w, %y[%i] stride 0 : f32, memref<64xf32>
  }}
  func.return
}}
}}
"""


def module_of(block: int) -> ModuleOp:
    return parse(TEXT.format(grid=64 // block, block=block))


def code_of(cubin: bytes) -> dict[str, bytes]:
    """The machine code of each kernel, from the sections of an ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + size * n) for n in range(count)]
    found = {}
    for header in headers:
        start = headers[names][4] + header[0]
        name = cubin[start : cubin.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[name] = cubin[header[4] : header[4] + header[5]]
    return found


def test_the_code_is_that_of_kernels_compiled_together(own_cache: Path) -> None:
    together, apart = compile_module(module_of(16)), compile_apart(module_of(16))
    assert apart.kernel == together.kernel and apart.resources == together.resources
    first, second = separate_cubins(apart.binary)
    assert [*code_of(first), *code_of(second)] == [".text.f_k0", ".text.f_k1"]
    assert code_of(first) | code_of(second) == code_of(together.binary)
    assert Artifact.from_bytes(apart.to_bytes(), "cuda") == apart


def test_a_kernel_of_an_earlier_candidate_is_not_compiled_again(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    original = Library.compile

    def noted(library: Library, source: str, options: tuple[str, ...], ptx: bool = False) -> tuple[bytes, str]:
        compiled.append(source)
        return original(library, source, options, ptx)

    monkeypatch.setattr(Library, "compile", noted)
    one = compile_apart(module_of(16))
    other = compile_apart(module_of(32))
    assert ["f_k0" in source for source in compiled] == [True, False, False]
    assert ["maximum" in source for source in compiled] == [False, True, True], "each has what it needs alone"
    assert separate_cubins(one.binary)[0] == separate_cubins(other.binary)[0]
    assert one.identity() != other.identity()


def test_candidates_alone_have_kernels_that_are_compiled_apart(own_cache: Path) -> None:
    """A network is compiled to one module to load."""
    a = te.placeholder((64,), name="a")
    y = te.compute((64,), lambda i: a[i] + 1.0, name="y")
    sch = Schedule([a, y, te.compute((64,), lambda i: y[63 - i] * 2.0, name="z")], target="cuda compute_capability=90")
    for name in ("y", "z"):
        sch.bind(name, sch.get_loops(name)[0], "threadIdx.x")
    workload, schedule = str(sch.workload), schedule_text(sch.steps)
    builder = BuilderServer(load_backend(device.__name__))
    builder.task({"workload": workload})
    _, candidate = builder.work({"schedule": schedule}, b"", None)  # type: ignore[arg-type]  # which it leaves alone
    apart = Artifact.from_bytes(candidate, "cuda")
    whole = Artifact.from_bytes(build(device.__name__, workload, schedule).artifact, "cuda")
    assert apart.kernel == whole.kernel and len(whole.kernel.launches) == 2
    assert len(separate_cubins(apart.binary)) == 2 and whole.binary[:4] == b"\x7fELF"


def test_cubins_are_loaded_each_for_its_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(x: np.ndarray, ws: np.ndarray) -> None:
        ws.view(np.float32)[:64] = 2 * x.view(np.float32)[:64]

    def copy(y: np.ndarray, ws: np.ndarray) -> None:
        y.view(np.float32)[:64] = ws.view(np.float32)[:64]

    driver = FakeDriver({"f_k0": double, "f_k1": copy})
    plain: Any = driver.module_from_buffer

    class Loaded:
        """A cubin that has its own kernels alone."""

        def __init__(self, cubin: bytes) -> None:
            self.names, self.module = [*code_of(cubin)], plain(cubin)

        def get_function(self, name: str) -> Any:
            assert self.names == [f".text.{name}"]
            return self.module.get_function(name)

    monkeypatch.setattr(driver, "module_from_buffer", Loaded)
    artifact = compile_apart(module_of(16))
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with installed(driver):
        DeviceExecutable(artifact, CudaRuntime(artifact)).run([x, y])
    np.testing.assert_array_equal(y, 2 * x)


def test_a_binary_that_is_cut_off_is_one_sentence() -> None:
    assert separate_cubins(joined_cubins([b"one"])) == [b"one"]
    several = joined_cubins([b"one", b"", b"three"])
    assert separate_cubins(several) == [b"one", b"", b"three"]
    for end in (20, 30, 50, len(several) - 1):
        with pytest.raises(ValueError, match="cut off"):
            separate_cubins(several[:end])
    assert of_each_launch([1], 3) == [1, 1, 1] and of_each_launch([1, 2], 2) == [1, 2]
    with pytest.raises(ValueError, match="3 launches has 2 cubins"):
        of_each_launch([1, 2], 3)
