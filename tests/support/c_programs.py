"""C programs that call exported functions, and the compilers and emulators that they take."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.backends.arrays import aligned_empty

CC = shutil.which("gcc")
only_with_gcc = pytest.mark.skipif(CC is None, reason="calling exported code from C needs gcc: apt-get install gcc")
_STRICT = ["-Wall", "-Wextra", "-Werror"]


@dataclass(frozen=True)
class Machine:
    """A compiler, and what runs its programs."""

    compiler: str
    runner: tuple[str, ...] = ()

    def build(self, folder: Path, program: str, libraries: Sequence[str], options: Sequence[str] = ()) -> None:
        """Make `main` of a C program and libraries that lie in a folder."""
        (folder / "main.c").write_text(program)
        command = [self.compiler, "-std=c11", *_STRICT, *options, "-o", "main", "main.c", *libraries, "-lm"]
        subprocess.run(command, cwd=folder, check=True)

    def run(self, folder: Path) -> None:
        """Run `main` on the files `in` and `out`, without what Python would find in its environment."""
        subprocess.run([*self.runner, "./main", "in", "out"], cwd=folder, check=True, env={})


HERE = Machine(str(CC))


def emulated(target: str, arch: str, name: str = "") -> Any:
    """A case of `machine` and `target`: this target's programs under QEMU, skipped without it or a compiler."""
    compiler = shutil.which(f"{arch}-linux-gnu-gcc")
    emulator = shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")
    missing = compiler is None or emulator is None
    machine = Machine(str(compiler), (str(emulator), "-L", f"/usr/{arch}-linux-gnu"))
    reason = f"needs gcc-{arch.replace('_', '-')}-linux-gnu and qemu-user"
    return pytest.param(machine, target, id=name or arch, marks=pytest.mark.skipif(missing, reason=reason))


ELSEWHERE = [emulated("llvm model=cortex-a72", "aarch64"), emulated("llvm model=sifive-u74", "riscv64")]
"""Machines of other architectures than that of most of this project's tests, with a target for each."""


def header_is_strict(header: Path) -> None:
    """Compile a header alone, as C and as C++."""
    for language in (["c", "-std=c99", "-pedantic"], ["c++", "-std=c++11"]):
        check = [str(CC), "-x", *language, "-fsyntax-only", *_STRICT, header.name]
        subprocess.run(check, cwd=header.parent, check=True)


def pointers(*arrays: Any) -> list[ctypes.c_void_p]:
    """Return where arrays lie, as C takes it."""
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


def workspace_bytes(header: Path) -> int:
    """Read from a header how large a workspace is."""
    (line,) = (line for line in header.read_text().splitlines() if "_WORKSPACE_BYTES " in line and "define" in line)
    return int(line.split()[2])


def exported_outputs(compiled: lw.CompiledNetwork, inputs: Sequence[Any], folder: Path) -> list[Any]:
    """Export a network as a shared library, call it here, and return what it writes."""
    library = folder / "net.so"
    header = compiled.export_library(library, "net")
    outputs = [np.empty(port.shape, port.dtype) for port in compiled.plan.outputs]
    arrays = [*map(np.ascontiguousarray, inputs), *outputs, aligned_empty((workspace_bytes(header),), np.uint8)]
    code = ctypes.CDLL(str(library)).lw_net(*pointers(*arrays))
    assert code == 0, f"the library returns {code}"
    return outputs


def split(data: bytes, arrays: Sequence[Any]) -> list[Any]:
    """Return arrays like others, one after the other in bytes."""
    found = []
    for array in arrays:
        found.append(np.frombuffer(data[: array.nbytes], array.dtype).reshape(array.shape))
        data = data[array.nbytes :]
    assert not data
    return found
