"""The module of the graph dialect that is a network, with the values of its constants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp

from ..dialects.graph import ConstantOp
from .types import dtype_of, shape_of

Array = npt.NDArray[Any]


class NetworkModule:
    """A module that holds a network as its first function, and `params`, the values of its constants by name."""

    def __init__(self, module: ModuleOp, params: Mapping[str, Array] | None = None) -> None:
        self.module = module
        self.function = next(op for op in module.ops if isinstance(op, FuncOp))
        self.name = self.function.sym_name.data
        self.params = dict(params or {})

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return _names(self.function.arg_attrs, len(self.function.body.block.args), "input")

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        last = self.function.body.block.last_op
        return _names(self.function.res_attrs, len(last.operands) if last else 0, "output")

    def constant_values(self, op: ConstantOp) -> Array:
        """Return the values of a constant; ValueError where they were not given."""
        if op.values is not None:
            return _array(op.values)
        if op.value is not None:
            return np.full(shape_of(op.result), op.value, dtype_of(op.result))
        if op.label.data not in self.params:
            raise ValueError(f"network '{self.name}': the values of constant '{op.label.data}' are not known")
        return self.params[op.label.data]

    @property
    def parameter_count(self) -> int:
        """Count the numbers that its constants hold."""
        return sum(math.prod(a.shape) for a in self.params.values())

    def __str__(self) -> str:
        return str(self.module)


def dense_values(kind: TensorType[Any], array: Array) -> DenseIntOrFPElementsAttr[Any]:
    """Return an array as values that a constant of the IR holds."""
    plain = np.ascontiguousarray(array)
    raw = np.where(plain, 0xFF, 0).astype(np.uint8) if plain.dtype == np.bool_ else plain
    return DenseIntOrFPElementsAttr(kind, BytesAttr(raw.tobytes()))


def _array(values: DenseIntOrFPElementsAttr[Any]) -> Array:
    kind = dtype_of(values.type)
    raw = np.frombuffer(values.data.data, np.uint8 if kind == "bool" else np.dtype(kind))
    return (raw != 0 if kind == "bool" else raw).reshape(shape_of(values.type))


def _names(attributes: ArrayAttr[DictionaryAttr] | None, count: int, kind: str) -> list[str]:
    found = [] if attributes is None else [a.data.get("lw.name") for a in attributes.data]
    found += [None] * (count - len(found))
    return [n.data if isinstance(n, StringAttr) else f"{kind}{k}" for k, n in enumerate(found)]
