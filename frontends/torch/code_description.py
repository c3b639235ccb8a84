"""Descriptions of Python objects with the code that they run: equal ones compute the same, by whatever they hold.

A module of PyTorch's is described by its attributes and those of its submodules, by the code of its classes, and by all
functions, classes and values that this code can name, however far. PyTorch's own code, NumPy's and Python's are named,
as their versions say what they are; of parameters and buffers values do not count. What cannot be described (objects
of code that is not Python, open files, locks) is said, and nothing is known of the whole then.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .dynamo_key import functions_by_name

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range)
_SEQUENCES = (list, tuple)
_MAPPINGS = (dict, OrderedDict)
_VERSIONED = ("torch", "numpy")
_UNTOLD = frozenset(
    {
        "__module__",
        "__qualname__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__annotations__",
        "__annotate__",
        "__annotations_cache__",
        "__annotate_func__",
        "__firstlineno__",
        "__static_attributes__",
        "__abstractmethods__",
        "__parameters__",
        "__orig_bases__",
        "__type_params__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__match_args__",
        "_abc_impl",
    }
)
"""Attributes of classes that say nothing of what their instances compute."""
_MAKERS = frozenset({"__init__", "__repr__", "extra_repr", "__del__"})
"""Methods that instances which are there have behind them, or are shown by."""
_MOST_CONSTANT_BYTES = 1 << 16
"""Tensors and arrays beside parameters and buffers count by their values up to so many bytes: tables of places."""


class _Plain:
    """A class whose objects are their attributes: those of others take more memory where they hold anything else."""


class Undescribed(Exception):
    """Something that no description says all of."""


def description(*objects: Any) -> str:
    """Return a text that is equal for objects of equal values and code; Undescribed names what has none."""
    known = _Descriptions()
    shown = [known.of(each) for each in objects]
    return "\n".join([*known.rows, *shown])


class _Descriptions:
    """Rows of text for objects, each once, by number: objects refer to others, and to themselves."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self._numbers: dict[tuple[int, bool], int] = {}
        self._alive: list[Any] = []

    def of(self, given: Any, is_made: bool = True) -> str:
        """Return what stands for an object; of a class that is not `is_made`, all instances are there already."""
        if type(given) in _PLAIN:
            return repr(given)
        key = (id(given), is_made)
        if key not in self._numbers:
            self._numbers[key] = number = len(self.rows)
            self._alive.append(given)
            self.rows.append("")
            self.rows[number] = self._described(given, is_made)
        return f"#{self._numbers[key]}"

    def _described(self, given: Any, is_made: bool) -> str:
        if isinstance(given, type):
            return self._class(given, is_made)
        for kinds, describe in self._kinds():
            if isinstance(given, kinds):
                return describe(given)
        if (name := _versioned_name(given)) is not None:
            return name
        return self._instance(given)

    def _kinds(self) -> Iterable[tuple[Any, Callable[[Any], str]]]:
        import torch

        return (
            ((torch.dtype, torch.device, torch.layout, torch.memory_format, np.dtype), repr),
            (torch.Size, lambda size: self._items("Size", size)),
            (torch.Tensor, self._tensor),
            (np.ndarray, _array),
            (enum.Enum, lambda each: f"{self.of(type(each))} {each.name} {self.of(each.value)}"),
            (types.FunctionType, self._function),
            (types.MethodType, lambda method: f"method {self.of(method.__func__)} {self.of(method.__self__)}"),
            ((staticmethod, classmethod), lambda each: f"{type(each).__name__} {self.of(each.__func__)}"),
            (property, lambda each: self._items("property", (each.fget, each.fset, each.fdel))),
            (functools.cached_property, lambda each: f"cached_property {self.of(each.func)}"),
            (functools.partial, lambda each: self._items("partial", (each.func, each.args, each.keywords))),
            (types.CodeType, self._code),
            (types.CellType, self._cell),
            (types.ModuleType, _module),
            (types.BuiltinFunctionType, _builtin),
            (torch.nn.Module, self._network),
        )

    def _items(self, name: str, items: Iterable[Any]) -> str:
        return f"{name}({', '.join(map(self.of, items))})"

    def _named(self, items: Iterable[tuple[Any, Any]]) -> str:
        return ", ".join(f"{self.of(name)}: {self.of(value)}" for name, value in items)

    def _tensor(self, tensor: Any) -> str:
        if tensor.nbytes > _MOST_CONSTANT_BYTES or tensor.is_sparse or tensor.device.type != "cpu":
            raise Undescribed("a large tensor that is no parameter or buffer")
        return f"{tensor_kind(tensor)} {tensor.detach().tolist()!r}"

    def _cell(self, cell: types.CellType) -> str:
        try:
            return f"cell {self.of(cell.cell_contents)}"
        except ValueError:  # nothing is in it
            return "cell"

    def _network(self, module: Any) -> str:
        """A module: values of its parameters and buffers do not count, but which of them are one does."""
        state = {name: value for name, value in vars(module).items() if name not in ("_parameters", "_buffers")}
        tensors = [
            (name, self._state(each))
            for kind in ("_parameters", "_buffers")
            for name, each in vars(module)[kind].items()
        ]
        return f"{self.of(type(module), False)} {tensors} {self._named(state.items())}"

    def _state(self, tensor: Any) -> str:
        if tensor is None:
            return "None"
        key = (id(tensor), False)
        self._alive.append(tensor)
        return f"{tensor_kind(tensor)} {self._numbers.setdefault(key, len(self._alive))}"

    def _instance(self, given: Any) -> str:
        if type(given) in _SEQUENCES:
            return self._items(type(given).__name__, given)
        if type(given) in _MAPPINGS:
            return f"{type(given).__name__}({self._named(given.items())})"
        if type(given) in (set, frozenset):
            return f"{type(given).__name__}({sorted(map(self.of, given))})"
        if not hasattr(given, "__dict__") or type(given).__basicsize__ > _Plain.__basicsize__:
            raise Undescribed(f"an object of {type(given).__name__}, which has more than attributes")
        return f"{self.of(type(given), False)} {self._named(vars(given).items())}"

    def _class(self, given: type, is_made: bool) -> str:
        name = _versioned_name(given)
        if name is not None:
            return name
        if type(given) is not type and _versioned_name(type(given)) is None:
            raise Undescribed(f"the class {given.__name__} of a metaclass")
        left_out = _UNTOLD if is_made else _UNTOLD | _MAKERS
        bases = [self.of(base, is_made) for base in given.__bases__]
        told = [(name, value) for name, value in vars(given).items() if name not in left_out]
        return f"class {given.__name__} {bases} {self._named(told)}"

    def _function(self, function: types.FunctionType) -> str:
        name = _versioned_name(function)
        if name is not None:
            return name
        defaults = (function.__defaults__, function.__kwdefaults__, function.__closure__, vars(function))
        parts = [self.of(function.__code__), *map(self.of, defaults)]
        names = sorted(set(_names(function.__code__)))
        known = function.__globals__
        parts += [f"{name}={self._global(known[name], names)}" for name in names if name in known]
        return f"function {' '.join(parts)}"

    def _global(self, value: Any, names: list[str]) -> str:
        """Describe the value of a global name; of a module, those of the names in it."""
        if not isinstance(value, types.ModuleType) or _is_versioned(value.__name__):
            return self.of(value)
        inside = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
        return f"{value.__name__} {[f'{name}={self._global(each, names)}' for name, each in inside]}"

    def _code(self, code: types.CodeType) -> str:
        said = (code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable.hex())
        return f"code {said} {counts} {self._items('', code.co_consts)}"


def tensor_kind(tensor: Any) -> str:
    """Return the class of a tensor, its type, its shape and strides, its device, and if it has gradients."""
    import torch

    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or tensor.layout is not torch.strided:
        raise Undescribed(f"a tensor of class {type(tensor).__name__}")
    kind = (type(tensor).__name__, tensor.dtype, tensor.device, tensor.requires_grad, tensor.is_inference())
    return f"{kind} {tuple(tensor.shape)} {tensor.stride()}"


def _array(array: Any) -> str:
    if array.nbytes > _MOST_CONSTANT_BYTES or array.dtype.hasobject:
        raise Undescribed("a large array")
    return f"array {array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _module(module: types.ModuleType) -> str:
    if not _is_versioned(module.__name__):
        raise Undescribed(f"the module {module.__name__} as a value")
    return f"module {module.__name__}"


def _builtin(function: types.BuiltinFunctionType) -> str:
    """A function that is not Python's, of a module or a class."""
    known = functions_by_name().get(id(function))
    if known is not None:
        return known
    owner = function.__self__
    module = owner.__module__ if isinstance(owner, type) else getattr(owner, "__name__", None)
    if not isinstance(owner, types.ModuleType | type) or not isinstance(module, str) or not _is_versioned(module):
        raise Undescribed(f"the function {function.__name__}")
    return f"{module}.{function.__qualname__}"


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names in code, and in what is defined inside of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_versioned(module: str | None) -> bool:
    root = (module or "").partition(".")[0]
    return root in _VERSIONED or (root in sys.stdlib_module_names and root != "__main__") or root == "builtins"


def _versioned_name(given: Any) -> str | None:
    """Return the name of a class or function of PyTorch's, NumPy's or Python's; None for what is not found by one."""
    known = functions_by_name().get(id(given))
    if known is not None:
        return known
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not _is_versioned(module):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is given else None
