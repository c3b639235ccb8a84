"""NVRTC's shared library as Python: whichever versions are installed, several in one process."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..c_family.artifact import CompileError


@dataclass(frozen=True)
class Library:
    """One NVRTC: where it is, its version as (major, minor), and the compute capabilities that it compiles for."""

    path: Path
    version: tuple[int, int]
    capabilities: tuple[int, ...]

    def compile(self, source: str, options: tuple[str, ...], ptx: bool = False) -> tuple[bytes, str]:
        """Return the cubin, or the PTX, and the log; raises CompileError with the log."""
        library = _opened(self.path)
        program = ctypes.c_void_p()
        texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        _checked(library, library.nvrtcCreateProgram(_at(program), source.encode(), b"kernel.cu", 0, None, None))
        try:
            status = library.nvrtcCompileProgram(program, len(options), texts)
            log = _filled(library, "ProgramLog", program).rstrip(b"\0").decode(errors="replace").strip()
            if status:
                raise CompileError(f"{_reason(library, status)} ({' '.join(options)}):\n{log}")
            return _filled(library, "PTX" if ptx else "CUBIN", program), log
        finally:
            library.nvrtcDestroyProgram(_at(program))


@cache
def libraries() -> tuple[Library, ...]:
    """Return the NVRTCs of NVIDIA's packages and of a toolkit, newest first, one of each version."""
    found: dict[tuple[int, int], Library] = {}
    for path in _paths():
        library = _described(path)
        if library is not None:
            found.setdefault(library.version, library)
    return tuple(found[version] for version in sorted(found, reverse=True))


def package_folders() -> list[Path]:
    """Return the folders of NVIDIA's packages: `cu13`, or one for each part of CUDA 12."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return [folder for root in roots for folder in sorted(root.iterdir()) if folder.is_dir()]


def toolkit_folders() -> list[Path]:
    """Return where CUDA toolkits are, by CUDA's own variables or where its installers put them."""
    named = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    return [*named, Path("/usr/local/cuda")]


def _paths() -> list[Path]:
    folders = [folder / "lib" for folder in package_folders()]
    folders += [folder / "lib64" for folder in toolkit_folders()]
    return [path for folder in folders for path in sorted(folder.glob("libnvrtc.so.*")) if path.suffix[1:].isdigit()]


def _described(path: Path) -> Library | None:
    """Return what a library says of itself; None where it does not load."""
    try:
        library = _opened(path)
    except OSError:
        return None
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if library.nvrtcVersion(_at(major), _at(minor)) or library.nvrtcGetNumSupportedArchs(_at(count)):
        return None
    capabilities = (ctypes.c_int * count.value)()
    if library.nvrtcGetSupportedArchs(capabilities):
        return None
    return Library(path, (major.value, minor.value), tuple(capabilities))


@cache
def _opened(path: Path) -> ctypes.CDLL:
    for part in path.parent.glob(f"libnvrtc-builtins{path.name.removeprefix('libnvrtc')}.*"):
        ctypes.CDLL(str(part))  # NVRTC opens it by its name alone, which finds what is open already
    library = ctypes.CDLL(str(path))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _at(value: object) -> object:
    return ctypes.byref(value)  # type: ignore[arg-type]


def _filled(library: ctypes.CDLL, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _checked(library, getattr(library, f"nvrtcGet{what}Size")(program, _at(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _checked(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _checked(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise CompileError(f"NVRTC: {_reason(library, status)}")


def _reason(library: ctypes.CDLL, status: int) -> str:
    text: bytes = library.nvrtcGetErrorString(status)
    return text.decode()
