"""The target attribute: what kind of device the code is for, and the limits that legality and search need."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .attributes import AxesAttr, IndicesAttr
from .names import one_line

Kind = Literal["llvm", "cuda", "opencl"]

WARP = 32
"""Threads that run in step, on every GPU of NVIDIA's (CUDA C++ Programming Guide)."""

MOST_THREADS_Z = 64
"""Threads of a block along threadIdx.z, on every GPU of NVIDIA's (CUDA C++ Programming Guide) and many others."""

LINE_BYTES = 64
"""A cache line of a CPU."""


@dataclass(frozen=True)
class Target:
    """A device as the compiler sees it; sizes in bytes, 0 where a limit does not exist or is not known."""

    kind: str = "llvm"
    model: str = "generic"
    cores: int = 1
    vector_bytes: int = 32
    vector_registers: int = 16
    l1_bytes: int = 32768
    l2_bytes: int = 524288
    max_threads_per_block: int = 0
    max_shared_bytes: int = 0
    max_local_bytes: int = 0
    warp_size: int = 1
    max_vthreads: int = 0
    compute_capability: int = 0

    def __str__(self) -> str:
        shown = [f"{f.name}={getattr(self, f.name)}" for f in fields(self)[1:] if getattr(self, f.name) != f.default]
        return " ".join([self.kind, *shown])

    @property
    def is_gpu(self) -> bool:
        return self.kind in ("cuda", "opencl")

    def with_cores(self, cores: int) -> Target:
        """Return the same target restricted to `cores` threads."""
        return replace(self, cores=cores)


def parse_target(text: str) -> Target:
    """Parse `llvm cores=2 vector_bytes=64`; ValueError names what is wrong and what is allowed."""
    kind, *options = text.split() or [""]
    what = f"target '{one_line(text)}'"
    if kind not in ("llvm", "cuda", "opencl"):
        raise ValueError(f"{what}: kind must be llvm, cuda or opencl, got '{one_line(kind)}'")
    known = {f.name: f.type for f in fields(Target)}
    values: dict[str, str | int] = {}
    for option in options:
        name, _, value = option.partition("=")
        if name not in known or name == "kind":
            raise ValueError(f"{what}: unknown option '{one_line(name)}'; options are {', '.join(list(known)[1:])}")
        if name != "model" and not value.isdigit():
            raise ValueError(f"{what}: option '{name}' takes a non-negative integer, got '{one_line(value)}'")
        values[name] = value if name == "model" else int(value)
    return Target(kind=kind, **values)  # type: ignore[arg-type]


@irdl_attr_definition
class TargetAttr(Data[Target]):
    """`#lw.target<"llvm cores=2 vector_bytes=64">`, on the module as `lw.target`."""

    name = "lw.target"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Target:
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        try:
            return parse_target(text)
        except ValueError as error:
            parser.raise_error(str(error))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


def target_of(module: ModuleOp) -> Target:
    """Return the target the module carries, or a generic CPU."""
    attribute = module.attributes.get("lw.target")
    return attribute.data if isinstance(attribute, TargetAttr) else Target()


Lw = Dialect("lw", [], [IndicesAttr, AxesAttr, TargetAttr])
