"""Kernels as object files and shared libraries with a C header, to be called where there is no Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ..c_parameters import c_name
from ..constants import Constants
from ..kernel_function import Executable, Kernel
from ..saved.cpu_programs import run_from_c, run_from_python
from ..saved.files import beside, checked_path, require_own, write_files
from ..signature import Argument
from .bound_calls import Call, Slot
from .c_function import CFunction, require_reach
from .cpu import CpuFeatures
from .emit import KernelText
from .library import check_path, write_ir, write_library


class CpuKernel(Kernel):
    """A kernel for a CPU, which can be taken elsewhere."""

    def __init__(
        self,
        text: KernelText,
        cpu: CpuFeatures,
        params: Mapping[str, Any] | None,
        executable: Executable,
        arguments: tuple[Argument, ...],
        assembly: Callable[[bool], str],
    ) -> None:
        super().__init__(text.name, arguments, executable, text.source, assembly)
        self._text, self._cpu, self._params = text, cpu, params

    def export_library(self, path: str | Path, name: str | None = None) -> Path:
        """Write the kernel as an object file (`.o`) or a shared library (`.so`), and a C header beside it.

        Returns the header's path. The function is `lw_<name>`, of the kernel's name unless another one is given.
        Constants that were given as `params` are part of the file. ValueError for a kernel that needs more than C has:
        checked addresses, constants that it packs at each call.
        """
        check_path(f"kernel {self.name}", Path(path))
        return write_library(self._function(name), path, self._cpu)

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, ...]:
        target = checked_path(self.name, "llvm", (".ll", ".so"), path)
        function = self._function(None)
        if any(feature.startswith("amx") for feature in self._text.features):
            raise ValueError(
                f"kernel {self.name} uses tiles, which its program asks Linux for: it is not saved; export_library "
                "makes a library for a program that does"
            )
        cpu = self._cpu.using(self._text.features)
        texts = {
            beside(target, "_host.c"): run_from_c(target, function),
            beside(target, "_run.py"): run_from_python(target, function, cpu),
        }
        require_own(texts)
        header = (write_library if target.suffix == ".so" else write_ir)(function, target, self._cpu)
        return (target, header, *write_files(texts))

    def _function(self, name: str | None) -> CFunction:
        """Return the kernel as a function for C; ValueError where it needs more than C has."""
        constants = Constants(self.name, self._text.arguments, self._params)
        require_reach(f"kernel {self.name}", constants.fixed.values())
        _require_plain(self._text, constants)
        given, held = count(), count()
        slots = [
            Slot("constant", next(held)) if position in constants.fixed else Slot("argument", next(given))
            for position, _ in enumerate(self._text.arguments)
        ]
        return CFunction(
            what="kernel",
            name=c_name(self.name if name is None else name),
            arguments=constants.open,
            kernels=(self._text,),
            steps=(Call(0, (*slots, Slot("workspace", 0)) if self._text.workspace_bytes else tuple(slots)),),
            constants=tuple(constants.fixed.values()),
            workspace_bytes=self._text.workspace_bytes,
        )


def _require_plain(text: KernelText, constants: Constants) -> None:
    if text.accesses:
        raise ValueError(f"kernel {text.name} checks its addresses: to export it build it without check_addresses")
    constants.require_packed("export")
