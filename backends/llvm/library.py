"""Object files and shared libraries of a C function, with its header, to be called where there is no Python."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from os import PathLike
from pathlib import Path

from ...dialects.errors import Error
from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole
from ..missing import MissingRequirement
from ..saved.files import MADE_BY
from .c_function import CONSTANTS_SECTION, CFunction
from .c_header import header
from .cpu import CpuFeatures, architecture
from .jit import compile_library, library_text

_LONGEST_LOG = 300
"""Characters of what a linker says."""
_MOST_TEXT_BYTES = 1 << 24
"""Constants in LLVM IR, whose text is three times as long; reading it takes 85 ms a MiB (see `CFunction`)."""


class LinkError(Error, RuntimeError):
    """A linker refused a library."""


def write_library(function: CFunction, path: str | PathLike[str], cpu: CpuFeatures) -> Path:
    """Write an object file (`.o`) or a shared library (`.so`), and a header beside it, whose path is returned.

    MissingRequirement where there is no linker for a shared library, LinkError where it refuses.
    """
    target = Path(path)
    cpu = _cpu_of(function, cpu)
    object_code = bytearray(compile_library(function.texts(), function.symbol, cpu))
    if function.constant_bytes:
        room = _section(object_code, CONSTANTS_SECTION)
        for start, data in function.constant_parts():
            object_code[room + start : room + start + len(data)] = data
    made = object_code if target.suffix == ".o" else _linked(object_code, cpu.arch, function)
    written = target.with_suffix(".h")
    require_ours(target, "library", [b"\x7fELF"])
    require_ours(written, "header of a library of ours", [MADE_BY.encode()])
    write_whole(target, bytes(made))
    write_whole(written, header(function, cpu))
    return written


def write_ir(function: CFunction, path: Path, cpu: CpuFeatures) -> Path:
    """Write the LLVM IR of a library, with its constants, and a header beside it, whose path is returned.

    ValueError for more constants than text is for.
    """
    if function.constant_bytes > _MOST_TEXT_BYTES:
        raise ValueError(
            f"{function} holds {function.constant_bytes:,} bytes of constants, LLVM IR takes at most "
            f"{_MOST_TEXT_BYTES:,} as text: take a shared library (.so)"
        )
    cpu = _cpu_of(function, cpu)
    text, written = library_text(function.texts(), function.symbol, cpu), path.with_suffix(".h")
    if function.constant_bytes:
        text = function.with_constants(text)
    require_ours(path, "LLVM IR of ours", [MADE_BY.encode()])
    require_ours(written, "header of a library of ours", [MADE_BY.encode()])
    write_whole(path, f"; {function}, {MADE_BY} for {cpu.arch} with {' '.join(cpu.features[1:])}\n{text}")
    write_whole(written, header(function, cpu))
    return written


def _cpu_of(function: CFunction, cpu: CpuFeatures) -> CpuFeatures:
    return cpu.using(name for text in function.kernels for name in text.features)


def check_path(what: str, path: Path) -> None:
    """ValueError for a file that is no library by its name."""
    if path.suffix not in (".o", ".so"):
        raise ValueError(f"{what}: a library is an object file (.o) or a shared one (.so), not {path}")


def _section(object_code: bytearray, name: str) -> int:
    """Return the offset of a section's bytes in an ELF file of 64 bits, little-endian (System V ABI, chapter 4)."""
    (table,) = struct.unpack_from("<Q", object_code, 40)
    size, count, names = struct.unpack_from("<3H", object_code, 58)
    sections = [struct.unpack_from("<IIQQQQ", object_code, table + number * size) for number in range(count)]
    texts, wanted = int(sections[names][4]), name.encode() + b"\0"
    return next(int(section[4]) for section in sections if object_code.startswith(wanted, texts + section[0]))


def _linked(object_code: bytes | bytearray, arch: str, function: CFunction) -> bytes:
    """Return a shared library of an object file; MissingRequirement without a linker for its architecture."""
    compilers = ("cc", "gcc", "clang") if arch == architecture() else (f"{arch}-linux-gnu-gcc",)
    compiler, lld = next(filter(None, map(shutil.which, compilers)), None), shutil.which("ld.lld")
    if compiler is None and lld is None:
        install = "gcc" if arch == architecture() else f"gcc-{arch.replace('_', '-')}-linux-gnu"
        raise MissingRequirement(
            f"linking for {arch} needs {compilers[0]} or ld.lld, and neither is here: apt-get install {install}; an "
            "object file (.o) needs no linker"
        )
    libraries = ["-lm", *(["-fopenmp"] if function.threads > 1 else [])] if compiler else []
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "library.o"), Path(folder, "library.so")
        given.write_bytes(object_code)
        command = [str(compiler or lld), "-shared", "-o", str(made), str(given), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            log = " ".join(done.stderr.split())[:_LONGEST_LOG]
            raise LinkError(f"{function}: {Path(command[0]).name} does not link it for {arch}: {log}")
        return made.read_bytes()
