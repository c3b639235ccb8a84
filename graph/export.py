"""Networks as object files and shared libraries with a C header, to be called where there is no Python."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends.c_parameters import c_name
from ..backends.llvm.host import cpu_of
from ..backends.signature import Argument
from ..dialects.target import Target
from .runtime.binding import bound
from .runtime.network import CompiledNetwork
from .runtime.package import Package
from .runtime.plan import Port
from .runtime.signature import Signature, signature_of

if TYPE_CHECKING:
    from ..backends.llvm.c_function import CFunction
    from ..backends.llvm.emit import KernelText


class CpuNetwork(CompiledNetwork):
    """A network compiled here for a CPU, which can be taken elsewhere: `workloads` are its kernels as te-level IR."""

    def __init__(self, package: Package, target: Target, workloads: Sequence[str]) -> None:
        super().__init__(package)
        self._target = target
        self.workloads = tuple(workloads)

    def export_library(self, path: str | PathLike[str], name: str | None = None) -> Path:
        """Write the network as an object file (`.o`) or a shared library (`.so`), and a C header beside it.

        Returns the header's path. The function is `lw_<name>`, of the network's name unless another one is given: two
        in one program need two names. It takes pointers to inputs and outputs, which it uses where they are, and to a
        workspace for what lies between them; constants are part of the file. ValueError for one that has more of
        these than code can reach.
        """
        from ..backends.llvm.c_function import require_reach
        from ..backends.llvm.library import check_path, write_library

        who = f"network {self.plan.name}"
        check_path(who, Path(path))
        require_reach(who, self.package.constants)
        function = self._function(c_name(self.plan.name if name is None else name))
        return write_library(function, path, cpu_of(self._target))

    def _function(self, name: str) -> CFunction:
        from ..backends.llvm.c_function import CFunction

        plan, kernels = self.plan, self._texts()
        binding = bound(plan, [Signature(kernel.arguments, (kernel.workspace_bytes,)) for kernel in kernels])
        return CFunction(
            what="network",
            name=name,
            arguments=(*(_argument(p, False) for p in plan.inputs), *(_argument(p, True) for p in plan.outputs)),
            kernels=tuple(kernels),
            steps=binding.steps,
            constants=self.package.constants,
            workspace_bytes=binding.workspace_bytes,
        )

    def _texts(self) -> list[KernelText]:
        """Lower the kernels again: their artifacts are machine code for a process that loads it."""
        from ..backends.llvm.emit import emit
        from ..backends.scheduled import scheduled_kernel

        texts = [
            emit(scheduled_kernel(workload, kernel.schedule))
            for workload, kernel in zip(self.workloads, self.plan.kernels, strict=True)
        ]
        for text, artifact in zip(texts, self.package.kernels, strict=True):
            assert Signature(text.arguments, (text.workspace_bytes,)) == signature_of("llvm", artifact)
        return texts


def _argument(port: Port, is_output: bool) -> Argument:
    return Argument(port.name, port.dtype, port.shape, is_output)
