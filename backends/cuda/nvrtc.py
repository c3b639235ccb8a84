"""CUDA C to cubin for one architecture: by NVRTC, which needs neither a GPU nor a driver, else by nvcc."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..c_family.artifact import CompileError, Resources
from .cache import BinaryCache

INSTALL = "pip install 'loopwright[cuda]'"
OPTIONS = ("--std=c++17", "--ptxas-options=-v")


class MissingCompiler(RuntimeError):
    """Neither NVRTC nor nvcc is there."""


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and what the assembler said about it."""

    code: bytes
    log: str

    @property
    def resources(self) -> tuple[Resources, ...]:
        """What each kernel takes, by the assembler's log."""
        return tuple(_resources(self.log))


def compile_cubin(source: str, compute_capability: int, use_cache: bool = True) -> Cubin:
    """Compile CUDA C for `sm_<compute_capability>`.

    Results are kept on disk, by source, options and compiler version. Raises CompileError with the compiler's log,
    MissingCompiler where there is no compiler.
    """
    compiler = _compiler()
    options = (f"--gpu-architecture=sm_{compute_capability}", *OPTIONS, *_includes(source))
    store = BinaryCache() if use_cache else None
    key = (source, *options, compiler.version)
    known = store.get(key) if store else None
    if known is not None:
        return Cubin(known[1], known[0])
    cubin = compiler.compile(source, options)
    if store:
        store.put(key, cubin.log, cubin.code)
    return cubin


def compile_ptx(source: str, compute_capability: int) -> str:
    """Compile CUDA C to PTX, to be read; raises CompileError, or MissingCompiler without NVRTC."""
    compiler = _compiler()
    if compiler.nvcc is not None:
        raise MissingCompiler(f"PTX is made by NVRTC, which is not here: {INSTALL}")
    options = (f"--gpu-architecture=compute_{compute_capability}", "--std=c++17", *_includes(source))
    return _by_nvrtc(source, options, ptx=True).code.rstrip(b"\0").decode()


def compiler_version() -> str:
    """Return the compiler's name and version."""
    return _compiler().version


@dataclass(frozen=True)
class _Compiler:
    version: str
    nvcc: str | None

    def compile(self, source: str, options: tuple[str, ...]) -> Cubin:
        return _by_nvrtc(source, options) if self.nvcc is None else _by_nvcc(self.nvcc, source, options)


@cache
def _compiler() -> _Compiler:
    if importlib.util.find_spec("cuda") is not None:
        try:
            from cuda.bindings import nvrtc

            status, major, minor = nvrtc.nvrtcVersion()
            if status == nvrtc.nvrtcResult.NVRTC_SUCCESS:
                return _Compiler(f"nvrtc {_package_version() or f'{major}.{minor}'}", None)
        except (ImportError, RuntimeError, OSError):
            pass
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        raise MissingCompiler(f"compiling for CUDA needs NVRTC or nvcc, and neither is here: {INSTALL}")
    shown = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return _Compiler(f"nvcc {shown.strip().splitlines()[-1]}", nvcc)


def _package_version() -> str | None:
    try:
        return importlib.metadata.version("nvidia-cuda-nvrtc")
    except importlib.metadata.PackageNotFoundError:
        return None


def _includes(source: str) -> tuple[str, ...]:
    if "#include" not in source:
        return ()
    folder = include_folder()
    if folder is None:
        raise MissingCompiler(f"half precision needs cuda_fp16.h, which is not here: {INSTALL}")
    return (f"--include-path={folder}",)


@cache
def include_folder() -> Path | None:
    """Return the folder of CUDA's headers: of NVIDIA's packages, or of a toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    folders = [folder for root in roots for folder in sorted(root.glob("*/include"), reverse=True)]
    folders += [Path(os.environ[name]) / "include" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    folders.append(Path("/usr/local/cuda/include"))
    return next((folder for folder in folders if (folder / "cuda_fp16.h").exists()), None)


def _by_nvrtc(source: str, options: tuple[str, ...], ptx: bool = False) -> Cubin:
    from cuda.bindings import nvrtc

    def checked(result: tuple[Any, ...]) -> Any:
        if result[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"NVRTC: {nvrtc.nvrtcGetErrorString(result[0])[1].decode()}")
        return result[1] if len(result) == 2 else None

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])[0]
        log = _filled(checked(nvrtc.nvrtcGetProgramLogSize(program)), nvrtc.nvrtcGetProgramLog, program)
        text = log.rstrip(b"\0").decode(errors="replace").strip()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            reason = nvrtc.nvrtcGetErrorString(status)[1].decode()
            raise CompileError(f"{reason} ({' '.join(options)}):\n{text}")
        size, get = (
            (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX) if ptx else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        )
        return Cubin(_filled(checked(size(program)), get, program), text)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _filled(size: int, get: Any, program: Any) -> bytes:
    buffer = b" " * size
    get(program, buffer)
    return buffer


def _by_nvcc(nvcc: str, source: str, options: tuple[str, ...]) -> Cubin:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "kernel.cu"), Path(folder, "kernel.cubin")
        given.write_text(source)
        command = [nvcc, "-cubin", "-o", str(made), *options, str(given)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        log = f"{done.stdout}{done.stderr}".strip()
        if done.returncode:
            raise CompileError(f"nvcc failed ({' '.join(options)}):\n{log}")
        return Cubin(made.read_bytes(), log)


def _resources(log: str) -> list[Resources]:
    """Read `ptxas -v` output: one paragraph a kernel."""
    found = []
    for part in re.split(r"Compiling entry function '", log)[1:]:
        name = part.partition("'")[0]
        numbers = {
            field: int(match.group(1)) if (match := re.search(pattern, part)) else 0
            for field, pattern in (
                ("registers", r"Used (\d+) registers"),
                ("shared_bytes", r"(\d+) bytes smem"),
                ("stack_bytes", r"(\d+) bytes stack frame"),
                ("spill_store_bytes", r"(\d+) bytes spill stores"),
                ("spill_load_bytes", r"(\d+) bytes spill loads"),
            )
        }
        found.append(Resources(name, **numbers))
    return found
