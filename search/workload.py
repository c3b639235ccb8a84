"""Workloads: a function that builds tensors from plain arguments, the DAG it gives, and the key that names both."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..dialects.target import Target, TargetAttr
from ..dialects.workload import verify_workload
from ..te import Tensor, create_module
from ..te.dag import format_dag
from ..te.flops import count_flops

HASH_DIGITS = 16
"""Hexadecimal digits of the hash in a workload key (64 bits)."""


@dataclass(frozen=True, eq=False)
class ComputeDAG:
    """A workload: a te-level module, without schedule and without target."""

    module: ModuleOp

    @classmethod
    def from_tensors(cls, tensors: Sequence[Tensor]) -> ComputeDAG:
        """The DAG of a list of inputs and outputs, as `te.create_module` takes it."""
        return cls(create_module(tensors))

    @classmethod
    def from_module(cls, module: ModuleOp) -> ComputeDAG:
        """The DAG of a te-level module; a target on it is left off. VerifyException where it is no workload."""
        verify_workload(module)
        bare = module.clone()
        bare.attributes.pop("lw.target", None)
        return cls(bare)

    @property
    def func(self) -> FuncOp:
        """The function that holds the stages."""
        return next(op for op in self.module.ops if isinstance(op, FuncOp))

    @cached_property
    def text(self) -> str:
        """The te-level IR; equal text means equal workload."""
        return str(self.module)

    @cached_property
    def hash(self) -> str:
        """The first digits of the SHA-256 of the IR text."""
        return sha256(self.text.encode()).hexdigest()[:HASH_DIGITS]

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations on elements; a multiply-add is 2."""
        return count_flops(self.func)

    def for_target(self, target: Target) -> ModuleOp:
        """A copy of the module that carries `target`."""
        module = self.module.clone()
        module.attributes["lw.target"] = TargetAttr(target)
        return module

    def workload_key(self, name: str, args: Sequence[Any] = ()) -> str:
        """JSON `[name, args, hash]`, the same in every process and on every machine."""
        try:
            return json.dumps([name, _plain(list(args)), self.hash])
        except TypeError as error:
            raise TypeError(
                f"workload '{name}': arguments must be numbers, strings and sequences of them: {error}"
            ) from None

    def __str__(self) -> str:
        return format_dag(self.func)


@dataclass(frozen=True)
class Workload:
    """A function from plain arguments to a list of input and output tensors, under a name."""

    name: str
    function: Callable[..., Sequence[Tensor]]

    def __call__(self, *args: Any) -> Sequence[Tensor]:
        return self.function(*args)

    def dag(self, *args: Any) -> ComputeDAG:
        """The DAG for these arguments."""
        return ComputeDAG.from_tensors(self.function(*args))

    def key(self, *args: Any) -> str:
        """The workload key for these arguments."""
        return self.dag(*args).workload_key(self.name, args)


@overload
def register_workload(function: Callable[..., Sequence[Tensor]]) -> Workload: ...
@overload
def register_workload(function: str) -> Callable[[Callable[..., Sequence[Tensor]]], Workload]: ...
def register_workload(
    function: Callable[..., Sequence[Tensor]] | str,
) -> Workload | Callable[[Callable[..., Sequence[Tensor]]], Workload]:
    """Make a workload of a function, under the function's name, or as `@register_workload("name")` under that one."""
    if isinstance(function, str):
        name = function
        return lambda decorated: Workload(name, decorated)
    return Workload(function.__name__, function)


def as_workload(function: Workload | Callable[..., Sequence[Tensor]]) -> Workload:
    """The workload itself, or one of a plain function."""
    return function if isinstance(function, Workload) else Workload(function.__name__, function)


def _plain(value: Any) -> Any:
    """Arguments as JSON knows them: tuples as lists, NumPy numbers as Python ones."""
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value.item() if hasattr(value, "item") else value
