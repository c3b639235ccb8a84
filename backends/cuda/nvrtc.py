"""CUDA C to cubin for one architecture: by NVRTC, which needs neither a GPU nor a driver, else by nvcc."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...storage.binary_cache import BinaryCache
from ...storage.folders import cache_folder
from ..c_family.artifact import CompileError, Resources
from ..missing import MissingRequirement
from .architecture import Architecture
from .nvrtc_library import Library, libraries, toolkit_folders

INSTALL = "pip install 'loopwright[cuda]'"
OPTIONS = ("--std=c++17", "--ptxas-options=-v")
MINIMAL, KNOWS_MINIMAL = "--minimal", (13, 0)
"""The option of NVRTC that leaves out of its own headers what our kernels have nothing of (textures, surfaces, launches
by kernels), and the version from which on it is given.

NVRTC 13.5 takes 33 instead of 39 ms for an empty kernel, 44 instead of 52 with cuda_fp16.h, 49 instead of 65 with
cuda_bf16.h too (AMD EPYC, one core), and makes the same machine code of 32 candidates of 16 spaces."""
OLDEST, OLDEST_OF_CUDA_13 = 50, 75
"""CUDA 12 compiles down to sm_50, CUDA 13 to sm_75 (release notes of 12.0 and 13.0)."""
_PACKAGES = {
    13: ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"),
    12: ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12"),
}
"""NVIDIA's packages of a major version: the compiler, and CUDA's headers."""


class MissingCompiler(MissingRequirement):
    """No compiler for the architecture is there."""


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and what the assembler said about it."""

    code: bytes
    log: str

    @property
    def resources(self) -> tuple[Resources, ...]:
        """Parse the assembler's log: registers, shared bytes and spills of each kernel."""
        return tuple(_resources(self.log))


def compile_cubin(source: str, compute_capability: int, use_cache: bool = True, exact: bool = False) -> Cubin:
    """Compile CUDA C for `sm_<compute_capability>`, or with `exact` for `sm_<compute_capability>a`.

    Results are kept on disk, by source, options and compiler version. Raises CompileError with the compiler's log,
    MissingCompiler where there is no compiler for the architecture.
    """
    compiler = _compiler(compute_capability)
    architecture = f"--gpu-architecture={Architecture(compute_capability, exact)}"
    options = (architecture, *OPTIONS, *compiler.brevity, *compiler.includes(source))
    store = BinaryCache(cache_folder("cubin")) if use_cache else None
    key = (source, *options, compiler.version)
    known = store.get(key) if store else None
    if known is not None:
        return Cubin(known[1], known[0])
    cubin = compiler.compile(source, options)
    if store:
        store.put(key, cubin.log, cubin.code)
    return cubin


def compile_ptx(source: str, compute_capability: int, exact: bool = False, lines: bool = False) -> str:
    """Compile CUDA C to PTX, to be read; raises CompileError, or MissingCompiler without NVRTC.

    With `lines`, `.loc` directives say which line of the source an instruction is from.
    """
    compiler = _compiler(compute_capability)
    if compiler.library is None:
        raise MissingCompiler(f"PTX is made by NVRTC, which is not here: {INSTALL}")
    number = Architecture(compute_capability, exact).number
    options = (f"--gpu-architecture=compute_{number}", "--std=c++17", *compiler.includes(source))
    options += ("--generate-line-info",) if lines else ()
    return compiler.library.compile(source, options, ptx=True)[0].rstrip(b"\0").decode()


def compiler_version() -> str:
    """Return the name and version of the newest compiler; raises MissingCompiler where there is none."""
    return _compiler(None).version


@dataclass(frozen=True)
class _Compiler:
    """NVRTC by its library, or nvcc by its path."""

    version: str
    library: Library | None
    nvcc: str = ""

    def compile(self, source: str, options: tuple[str, ...]) -> Cubin:
        if self.library is None:
            return _by_nvcc(self.nvcc, source, options)
        return Cubin(*self.library.compile(source, options))

    @property
    def brevity(self) -> tuple[str, ...]:
        """The option that makes it read less of its own headers, where it has that."""
        return (MINIMAL,) if self.library is not None and self.library.version >= KNOWS_MINIMAL else ()

    def includes(self, source: str) -> tuple[str, ...]:
        """Return the option that names CUDA's headers, where the source needs any."""
        if "#include" not in source or self.library is None:
            return ()
        folder = include_folder(self.library)
        if folder is None:
            _, headers = _PACKAGES.get(self.library.version[0], _PACKAGES[13])
            raise MissingCompiler(f"half precision needs cuda_fp16.h, which is not here: pip install {headers}")
        return (f"--include-path={folder}",)


@cache
def _compiler(compute_capability: int | None) -> _Compiler:
    """Return the newest compiler for an architecture, or for any."""
    found = libraries()
    for library in found:
        if compute_capability is None or compute_capability in library.capabilities:
            return _Compiler(f"nvrtc {_package_version(library)}", library)
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is not None and _knows(nvcc, compute_capability):
        return _Compiler(f"nvcc {_shown(nvcc, '--version').strip().splitlines()[-1]}", None, nvcc)
    raise MissingCompiler(_missing(compute_capability, found, nvcc))


def _missing(compute_capability: int | None, found: tuple[Library, ...], nvcc: str | None) -> str:
    if not found and nvcc is None:
        return f"compiling for CUDA needs NVRTC or nvcc, and neither is here: {INSTALL}"
    names = [f"NVRTC {library.version[0]}.{library.version[1]}" for library in found] or ["nvcc"]
    here = f"no compiler here makes code for sm_{compute_capability} ({', '.join(names)})"
    if compute_capability in range(OLDEST, OLDEST_OF_CUDA_13):
        return f"{here}: CUDA 12's NVRTC does, pip install {' '.join(_PACKAGES[12])}"
    return f"{here}: install another one, or target another architecture"


def _knows(nvcc: str, compute_capability: int | None) -> bool:
    return compute_capability is None or f"compute_{compute_capability}" in _shown(nvcc, "--list-gpu-arch")


def _shown(nvcc: str, option: str) -> str:
    return subprocess.run([nvcc, option], capture_output=True, text=True, check=True).stdout


def _package_version(library: Library) -> str:
    """Return the version of the package that a library is from, which says more than the library does."""
    major, minor = library.version
    try:
        version = importlib.metadata.version(_PACKAGES[major][0])
    except (KeyError, importlib.metadata.PackageNotFoundError):
        return f"{major}.{minor}"
    return version if version.startswith(f"{major}.{minor}.") else f"{major}.{minor}"


@cache
def include_folder(library: Library) -> Path | None:
    """Return the folder of CUDA's headers that go with a library: beside it, in a package of its version, a toolkit."""
    home = library.path.parent.parent
    part = home.parent / "cuda_runtime" if home.name == "cuda_nvrtc" else home
    folders = [place / "include" for place in (home, part, *toolkit_folders())]
    return next((folder for folder in folders if (folder / "cuda_fp16.h").exists()), None)


def _by_nvcc(nvcc: str, source: str, options: tuple[str, ...]) -> Cubin:
    try:
        return _in_temporary_files(nvcc, source, options)
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename or tempfile.gettempdir()})"
        raise CompileError(f"nvcc works in temporary files, and these cannot be: {reason}") from error


def _in_temporary_files(nvcc: str, source: str, options: tuple[str, ...]) -> Cubin:
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
