"""Workloads: a function that builds tensors from plain arguments, the DAG it gives, and the key that names both."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from typing import Any, overload

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from ..dialects.cached_property import cached_property
from ..dialects.classic_words import attributes_know_classic_words
from ..dialects.element import dtype_name, element_bytes
from ..dialects.target import Target, TargetAttr
from ..dialects.workload import verify_workload
from ..te import ExpressionError, Tensor, create_module
from ..te.dag import format_dag
from ..te.flops import count_flops

_BARE = "builtin.module {\n"
"""First line of the text of a module without attributes."""
HASH_DIGITS = 16
"""Hexadecimal digits of the hash in a workload key (64 bits)."""


def workload_hash(text: str) -> str:
    """The first digits of the SHA-256 of a workload's text, under which its records are found."""
    return sha256(text.encode()).hexdigest()[:HASH_DIGITS]


@attributes_know_classic_words
@dataclass(frozen=True, eq=False)
class ComputeDAG:
    """A workload: a te-level module, without schedule and without target; `print` shows its expressions.

    `module` holds one function of `lw_te` stages on tensors; make one with `from_tensors` or `from_module`. TypeError
    for what is no module.
    """

    module: ModuleOp

    def __post_init__(self) -> None:
        if not isinstance(self.module, ModuleOp):
            what = type(self.module).__name__
            raise TypeError(f"ComputeDAG is of a module: of tensors it is ComputeDAG.from_tensors(...), got {what}")

    @classmethod
    def from_tensors(cls, tensors: Tensor | Sequence[Tensor]) -> ComputeDAG:
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
        """The hash of the IR text, under which its records are found."""
        return workload_hash(self.text)

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations on elements; a multiply-add is 2."""
        return count_flops(self.func)

    @cached_property
    def dtype(self) -> str | None:
        """The element type of all inputs; None where they have several."""
        found = {tensor.get_element_type() for tensor in self._tensors(inputs_only=True)}
        return dtype_name(found.pop()) if len(found) == 1 else None

    @cached_property
    def moved_bytes(self) -> int:
        """Bytes of all inputs and outputs: what moves at least where nothing is in a cache."""
        return sum(prod(t.get_shape()) * element_bytes(t.get_element_type()) for t in self._tensors())

    def _tensors(self, inputs_only: bool = False) -> list[TensorType[Attribute]]:
        kind = self.func.function_type
        found = [*kind.inputs, *([] if inputs_only else kind.outputs)]
        return [tensor for tensor in found if isa(tensor, TensorType[Attribute])]

    def for_target(self, target: Target) -> ModuleOp:
        """A copy of the module that carries `target`."""
        module = self.module.clone()
        module.attributes["lw.target"] = TargetAttr(target)
        return module

    def text_for(self, target: Target) -> str:
        """The text of `for_target`, without printing the module again, which takes half as long as to make it."""
        if self.module.attributes:
            return str(self.for_target(target))
        empty = ModuleOp([], {"lw.target": TargetAttr(target)})
        return str(empty).removesuffix("}") + self.text.removeprefix(_BARE)

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
        """The DAG for these arguments; TypeError or ValueError names what is wrong with them, or with the result."""
        try:
            inspect.signature(self.function).bind(*args)
        except TypeError as error:
            raise TypeError(f"workload '{self.name}': {error}; it is called with {_shown(args)}") from None
        tensors = self._checked(self.function(*args))
        try:
            return ComputeDAG.from_tensors(tensors)
        except ExpressionError as error:
            names = ", ".join(tensor.name for tensor in tensors)
            raise ExpressionError(f"workload '{self.name}' returns [{names}]: {error}") from None

    def _checked(self, found: object) -> Sequence[Tensor]:
        """Return what the function returned; TypeError unless that is a list of tensors."""
        wanted = "the list of its inputs and outputs, as in `return [data, weight, out]`"
        if isinstance(found, Tensor):
            raise TypeError(f"workload '{self.name}' must return {wanted}, and returns one tensor, '{found.name}'")
        if not isinstance(found, list | tuple):
            raise TypeError(f"workload '{self.name}' must return {wanted}, and returns {type(found).__name__}")
        wrong = next((item for item in found if not isinstance(item, Tensor)), None)
        if wrong is not None or not found:
            held = f"a list with {type(wrong).__name__}" if found else "an empty list"
            raise TypeError(f"workload '{self.name}' must return {wanted}, and returns {held}")
        return found

    def key(self, *args: Any) -> str:
        """The workload key for these arguments."""
        return self.dag(*args).workload_key(self.name, args)


Function = Callable[..., Sequence[Tensor]]

_REGISTERED: dict[str, Workload] = {}
"""Filled by the decorator: a workload is found by its name, or by a key that names it."""


@overload
def register_workload(function: Function, *, override: bool = False) -> Workload: ...
@overload
def register_workload(function: str, *, override: bool = False) -> Callable[[Function], Workload]: ...
@overload
def register_workload(function: str, implementation: Function, *, override: bool = False) -> Workload: ...
def register_workload(
    function: Function | str, implementation: Function | None = None, *, override: bool = False
) -> Workload | Callable[[Function], Workload]:
    """Make a workload of a function, which is found by its name from then on: `lw.SearchTask(name, args)`.

    The name is the function's own, or that of `@register_workload("name")` and `register_workload("name", function)`.
    ValueError where another function has the name, unless `override`; the same one may be defined again. TypeError for
    what is no function.
    """
    if not isinstance(function, str):
        if implementation is not None:
            raise TypeError("register_workload takes a name before the function, as in register_workload('name', f)")
        return _register(getattr(function, "__name__", ""), function, override)
    if implementation is not None:
        return _register(function, implementation, override)
    return lambda decorated: _register(function, decorated, override)


def _register(name: str, function: Function, override: bool) -> Workload:
    if isinstance(function, Workload):
        raise TypeError(f"workload '{function.name}' is registered already; give its `function` for another name")
    if not callable(function) or isinstance(function, type):
        raise TypeError(
            f"a workload is a function that returns tensors, got {type(function).__name__} {function!r:.40}"
        )
    if not name or name == "<lambda>":
        raise TypeError("a lambda has no name to be registered by: register_workload('name', function)")
    made, known = Workload(name, function), _REGISTERED.get(name)
    if known is not None and not override and _origin(known) != _origin(made):
        where = ".".join(_origin(known))
        raise ValueError(
            f"workload '{name}' is registered already, of {where}; override=True puts this one in its place"
        )
    _REGISTERED[name] = made
    return made


def _origin(workload: Workload) -> tuple[str, str]:
    function = workload.function
    return str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", type(function).__name__))


def registered_workloads() -> dict[str, Workload]:
    """The workloads that were registered in this process, by name."""
    return dict(_REGISTERED)


def as_workload(function: Workload | Function) -> Workload:
    """The workload itself, or one of a plain function; TypeError for what is neither."""
    if isinstance(function, Workload):
        return function
    if not callable(function) or isinstance(function, type):
        raise TypeError(
            "a workload is a function that returns tensors, its registered name, or a te-level module, "
            f"got {type(function).__name__}"
        )
    return Workload(getattr(function, "__name__", type(function).__name__), function)


def _shown(args: Sequence[Any]) -> str:
    return f"({', '.join(map(repr, args))})"


def _plain(value: Any) -> Any:
    """Arguments as JSON knows them: tuples as lists, NumPy numbers as Python ones."""
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value.item() if hasattr(value, "item") else value
