"""Kernels as object files and shared libraries with a C header, to be called where there is no Python."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...storage.whole_file import write_whole
from ..constants import Constants
from ..kernel_function import Executable, Kernel
from ..missing import MissingRequirement
from ..signature import Argument
from .cpu import CpuFeatures, architecture
from .emit import KernelText
from .jit import compile_text
from .symbols import RUN_SYMBOL, TIME_SYMBOL

_C_TYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}
"""Others are passed as unsigned integers of their size, which hold their bits."""
_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while workspace "
    "bool true false class new delete this template typename namespace using operator public private protected "
)
"""Of C and C++, and the parameter of our own."""


class CpuKernel(Kernel):
    """A kernel for a CPU, which can be taken elsewhere."""

    def __init__(
        self,
        text: KernelText,
        cpu: CpuFeatures,
        params: Mapping[str, Any] | None,
        executable: Executable,
        arguments: tuple[Argument, ...],
        assembly: Callable[[], str],
    ) -> None:
        super().__init__(text.name, arguments, executable, text.source, assembly)
        self._text, self._cpu, self._params = text, cpu, params

    def export_library(self, path: str | Path) -> Path:
        """Write the kernel as an object file (`.o`) or a shared library (`.so`), and a C header beside it.

        Returns the header's path. Constants that were given as `params` are part of the file. ValueError for a kernel
        that needs more than C has: threads, checked addresses, constants that it packs at each call.
        """
        target = Path(path)
        if target.suffix not in (".o", ".so"):
            raise ValueError(
                f"kernel {self.name}: a library is an object file (.o) or a shared one (.so), not {target}"
            )
        constants = Constants(self.name, self._text.arguments, self._params)
        _require_plain(self._text, constants)
        source = _with_entry(self._text, constants)
        object_code = compile_text(source, cpu=self._cpu, loaded=False).object_code
        made = object_code if target.suffix == ".o" else _linked(object_code, self._cpu.arch)
        write_whole(target, made)
        header = target.with_suffix(".h")
        write_whole(header, _header(self._text, constants, self._cpu))
        return header


def _require_plain(text: KernelText, constants: Constants) -> None:
    if text.threads > 1:
        raise ValueError(
            f"kernel {text.name} runs on {text.threads} threads of OpenMP's: to export it build it for one, cores=1"
        )
    if text.accesses:
        raise ValueError(f"kernel {text.name} checks its addresses: to export it build it without check_addresses")
    for argument in constants.open:
        if argument.packing is not None:
            raise ValueError(
                f"kernel {text.name}: constant '{argument.name}' has a layout of its own: to export the kernel "
                f"build it with params={{'{argument.name}': ...}}"
            )


def _symbol(name: str) -> str:
    return f"lw_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"


def _with_entry(text: KernelText, constants: Constants) -> str:
    """Return the kernel's text with a function that takes its arrays one by one as the only one that is seen."""
    source = text.source
    for symbol in (RUN_SYMBOL, TIME_SYMBOL):
        source = source.replace(f"define void @{symbol}(", f"define internal void @{symbol}(")
    held, given, stores = [], [], []
    for position, _ in enumerate(text.arguments):
        if position in constants.fixed:
            data = constants.fixed[position].tobytes()
            quoted = "".join(f"\\{byte:02x}" for byte in data)
            held.append(f'@lw.constant{position} = internal constant [{len(data)} x i8] c"{quoted}", align 64')
            place = f"@lw.constant{position}"
        else:
            place = f"%a{position}"
            given.append(f"ptr {place}")
        stores += _store(position, place)
    if text.workspace_bytes:
        given.append("ptr %workspace")
        stores += _store(len(text.arguments), "%workspace")
    entry = [
        f"define void @{_symbol(text.name)}({', '.join(given)}) #0 {{",
        f"  %pointers = alloca [{len(text.arguments) + 1} x ptr], align 8",
        *stores,
        f"  call void @{RUN_SYMBOL}(ptr %pointers)",
        *("  ret void", "}"),
    ]
    return "\n".join([source, *held, *entry, ""])


def _store(position: int, place: str) -> list[str]:
    at = f"%at{position}"
    return [f"  {at} = getelementptr ptr, ptr %pointers, i64 {position}", f"  store ptr {place}, ptr {at}, align 8"]


def _header(text: KernelText, constants: Constants, cpu: CpuFeatures) -> str:
    """Return the declaration of a kernel's function in C, for C++ too."""
    symbol, used = _symbol(text.name), set[str]()
    parameters = [_parameter(argument, used) for argument in constants.open]
    space = f"{symbol.upper()}_WORKSPACE_BYTES"
    if text.workspace_bytes:
        parameters.append((f"void *workspace /* {space} bytes */", ""))
    listed = [p + ("," if n < len(parameters) - 1 else ");") + note for n, (p, note) in enumerate(parameters)]
    return "\n".join(
        [
            f"/* Kernel {text.name} for {cpu.arch} with {' '.join(cpu.features[1:])}, made by loopwright.",
            " * Arrays are contiguous, in C's order, and do not overlap; the workspace is aligned to 64 bytes. */",
            *(f"#ifndef {symbol.upper()}_H", f"#define {symbol.upper()}_H", "", "#include <stdint.h>", ""),
            *(f"#define {space} {text.workspace_bytes}", ""),
            *("#ifdef __cplusplus", 'extern "C" {', "#endif", ""),
            *(f"void {symbol}(", *(f"    {line}" for line in listed), ""),
            *("#ifdef __cplusplus", "}", "#endif", "", "#endif", ""),
        ]
    )


def _parameter(argument: Argument, used: set[str]) -> tuple[str, str]:
    """Return an argument's declaration, and a comment that says its shape."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", argument.name)
    while name in used or name in _KEYWORDS.split():
        name += "_"
    used.add(name)
    element = _C_TYPES.get(argument.dtype, f"uint{8 * np.dtype(argument.dtype).itemsize}_t")
    return f"{'' if argument.is_output else 'const '}{element} *{name}", f" /* {argument} */"


def _linked(object_code: bytes, arch: str) -> bytes:
    """Return a shared library of an object file; MissingRequirement without a linker for its architecture."""
    compilers = ("cc", "gcc", "clang") if arch == architecture() else (f"{arch}-linux-gnu-gcc",)
    compiler, lld = next(filter(None, map(shutil.which, compilers)), None), shutil.which("ld.lld")
    if compiler is None and lld is None:
        install = "gcc" if arch == architecture() else f"gcc-{arch.replace('_', '-')}-linux-gnu"
        raise MissingRequirement(
            f"linking for {arch} needs {compilers[0]} or ld.lld, and neither is here: apt-get install {install}; an "
            "object file (.o) needs no linker"
        )
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        given.write_bytes(object_code)
        _run([compiler, "-shared", "-o", made, given, "-lm"] if compiler else [str(lld), "-shared", "-o", made, given])
        return made.read_bytes()


def _run(command: Sequence[Any]) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        log = " ".join(done.stderr.split())[:300]
        raise RuntimeError(f"{Path(str(command[0])).name} does not link the kernel: {log}")
