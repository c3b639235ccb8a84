"""Backends of installed packages: modules that compile the kernel dialect, completed to ones that build and measure."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..dialects.errors import Error
from ..dialects.target import KINDS
from ..dialects.target_kinds import installed_kind
from ..storage.typed_json import parse_json, read_as
from .constants import Array, Constants
from .function_arguments import arguments_of
from .kernel_function import Executable, Kernel
from .signature import Argument

_OF_ARTIFACTS = ("identity", "resources")
"""Optional functions of a backend that take an artifact."""


class BackendError(Error):
    """A backend module cannot be imported or lacks a function."""


class CompilingBackend(Protocol):
    """A backend of another package: a module with these functions, the rest of `lw.Backend` is the same for all.

    It may have the optional functions of `lw.Backend` too, and `source(artifact) -> str`, the code as people read it.
    """

    def compile(self, module: ModuleOp) -> bytes:
        """Compile a module of one function at the kernel level, which carries its target (`lw.target`)."""

    def load(self, artifact: bytes) -> Executable:
        """Load what `compile` returned: it runs on contiguous arrays in the order and shape of the function's."""

    def device_name(self) -> str:
        """Return the device's name; may create the device context."""

    def versions(self) -> dict[str, str]:
        """Return versions of the packages that make the code; never touches the device."""


@dataclass(frozen=True)
class _Header:
    """A kernel's first line on its way between processes; the module's own artifact follows."""

    name: str
    arguments: tuple[Argument, ...]


class InstalledExecutable:
    """A loaded kernel of another package's backend, which is given constants packed as its code takes them."""

    def __init__(self, executable: Executable, constants: Constants) -> None:
        self._executable, self._constants = executable, constants
        self.arguments = constants.open

    def run(self, args: Sequence[Array]) -> None:
        """Run once on `args`, inputs then outputs; outputs are written in place and complete on return."""
        self._executable.run(self._constants.complete(args))

    def time(self, args: Sequence[Array], number: int) -> float:
        """Return the seconds that `number` runs, back to back, take."""
        return self._executable.time(self._constants.complete(args, again=True), number)


@dataclass(frozen=True)
class InstalledBackend:
    """A `lw.Backend` around a module that only compiles; what is optional is the module's own."""

    module: CompilingBackend

    def build(self, workload: str, schedule: str) -> bytes:
        """Compile te-level IR text, with its target, under a pass pipeline; raises ScheduleError if it is illegal."""
        from .scheduled import scheduled_kernel

        return self.compile(scheduled_kernel(workload, schedule))

    def compile(self, module: ModuleOp) -> bytes:
        """Compile a kernel-level module."""
        function = next(op for op in module.ops if isinstance(op, FuncOp))
        header = _Header(function.sym_name.data, arguments_of(function))
        return json.dumps(asdict(header)).encode() + b"\n" + self.module.compile(module)

    def load(self, artifact: bytes, params: Mapping[str, Any] | None = None) -> InstalledExecutable:
        """Load what `build` returned, with constants that are given now."""
        header, own = _parts(artifact)
        for argument in header.arguments:
            argument.check()
        return InstalledExecutable(self.module.load(own), Constants(header.name, header.arguments, params))

    def device_name(self) -> str:
        """Return the device's name."""
        return self.module.device_name()

    def versions(self) -> dict[str, str]:
        """Return the module's versions, ours, and those of the primitives."""
        from .scheduled import code_versions

        return {**self.module.versions(), **code_versions(())}

    def kernel(self, module: ModuleOp, params: Mapping[str, Any] | None = None) -> Kernel:
        """Compile a kernel-level module into a callable."""
        artifact = self.compile(module)
        header, own = _parts(artifact)
        executable = self.load(artifact, params)
        source: Callable[[bytes], str] = getattr(self.module, "source", lambda artifact: str(module))
        return Kernel(header.name, executable.arguments, executable, source(own), lambda lines: "")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        return (lambda artifact: found(_parts(artifact)[1])) if name in _OF_ARTIFACTS else found


def _parts(artifact: bytes) -> tuple[_Header, bytes]:
    """Split an artifact; ValueError where it is none."""
    line, _, own = artifact.partition(b"\n")
    return read_as(_Header, parse_json(line), "the kernel"), own


def backend_path(kind: str) -> str:
    """The module of the backend for a kind of target: ours, or the one that the package of the kind names."""
    found = None if kind in KINDS else installed_kind(kind)
    return f"{__package__}.{kind}.device" if found is None else found.backend


def backend_module(path: str) -> Any:
    """Import a backend by its dotted path; one that only compiles is completed. BackendError says what is missing."""
    try:
        module = importlib.import_module(path)
    except ImportError as error:
        raise BackendError(f"backend {path!r} cannot be imported: {error}") from error
    compiles = hasattr(module, "compile") and not hasattr(module, "build")
    wanted = ("compile" if compiles else "build", "load", "device_name", "versions")
    missing = [name for name in wanted if not callable(getattr(module, name, None))]
    if missing:
        raise BackendError(f"backend {path!r} lacks the function(s) {', '.join(missing)}")
    return InstalledBackend(cast(CompilingBackend, module)) if compiles else module


def build_installed(module: ModuleOp, kind: str, params: Mapping[str, Any] | None = None) -> Kernel:
    """Compile a kernel-level module by another package's backend; BackendError where that cannot compile one."""
    backend = backend_module(backend_path(kind))
    if not isinstance(backend, InstalledBackend):
        raise BackendError(f"backend {backend_path(kind)!r} has no compile(module), which builds one kernel")
    return backend.kernel(module, params)
