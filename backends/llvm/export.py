"""Kernels as object files and shared libraries with a C header, to be called where there is no Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from ..constants import Constants
from ..kernel_function import Executable, Kernel
from ..signature import Argument
from .bound_calls import Call, Slot
from .c_function import CFunction, c_name, require_reach
from .cpu import CpuFeatures
from .emit import KernelText
from .library import check_path, write_library


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
        constants = Constants(self.name, self._text.arguments, self._params)
        require_reach(f"kernel {self.name}", constants.fixed.values())
        _require_plain(self._text, constants)
        given, held = count(), count()
        slots = [
            Slot("constant", next(held)) if position in constants.fixed else Slot("argument", next(given))
            for position, _ in enumerate(self._text.arguments)
        ]
        function = CFunction(
            what="kernel",
            name=c_name(self.name if name is None else name),
            arguments=constants.open,
            kernels=(self._text,),
            steps=(Call(0, (*slots, Slot("workspace", 0)) if self._text.workspace_bytes else tuple(slots)),),
            constants=tuple(constants.fixed.values()),
            workspace_bytes=self._text.workspace_bytes,
        )
        return write_library(function, path, self._cpu)


def _require_plain(text: KernelText, constants: Constants) -> None:
    if text.accesses:
        raise ValueError(f"kernel {text.name} checks its addresses: to export it build it without check_addresses")
    for argument in constants.open:
        if argument.packing is not None:
            raise ValueError(
                f"kernel {text.name}: constant '{argument.name}' has a layout of its own: to export the kernel "
                f"build it with params={{'{argument.name}': ...}}"
            )
