"""A network under construction: inputs, constants, operators by name, outputs; shapes are inferred as it grows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ..dialects.classic_words import subscript_knows_classic_word
from ..dialects.element import element_type
from ..dialects.graph import ApplyOp, ConstantOp, hint
from ..dialects.shown_text import one_line
from ..te import ExpressionError
from ..te.expr import DType
from .evaluate import evaluate
from .module import Array, NetworkModule
from .network_operators import NetworkOperators
from .operator import Kind, operator
from .pipeline import transform
from .types import dtype_of, infer, shape_of, tensor_type


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor of a network; arithmetic on it adds operators."""

    net: Network
    ssa: SSAValue

    __array_ufunc__ = None
    """Arrays of NumPy do not take a tensor for an element of theirs."""

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.ssa)

    @property
    def dtype(self) -> str:
        return dtype_of(self.ssa)

    @property
    def name(self) -> str:
        return self.ssa.name_hint or "value"

    @property
    def constant(self) -> Array | None:
        """The values of a constant; None for any other tensor."""
        owner = self.ssa.owner
        return self.net.constant_values(owner) if isinstance(owner, ConstantOp) else None

    def __repr__(self) -> str:
        return f"<{one_line(self.name)}: {self.dtype}{list(self.shape)}>"

    def _with(self, operator: str, other: Value | Array | float) -> Value:
        result: Value = self.net.apply(operator, self, other)
        return result

    def __add__(self, other: Value | float) -> Value:
        return self._with("add", other)

    def __sub__(self, other: Value | float) -> Value:
        return self._with("subtract", other)

    def __mul__(self, other: Value | float) -> Value:
        return self._with("multiply", other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._with("divide", other)

    def __matmul__(self, other: Value | Array) -> Value:
        return self._with("matmul", other)


@subscript_knows_classic_word('mod["main"]')
class Network(NetworkModule, NetworkOperators[Value]):
    """A graph of operators, as a module of the graph dialect, and the values of its constants by name.

    `net.apply("conv2d", x, w, stride=2)` adds an operator, `net.conv2d(x, w, stride=2)` is the same. Operators are in
    `graph/operators`.
    """

    def __init__(self, name: str = "main") -> None:
        if not isinstance(name, str):
            raise TypeError(f"a network is named by a text, got {type(name).__name__}")
        function = FuncOp(name, ((), ()), Region(Block()))
        function.body.block.add_op(ReturnOp())
        super().__init__(ModuleOp([function]))
        self._constants: dict[str, ConstantOp] = {}
        self._counts: dict[str, int] = {}

    @classmethod
    def from_module(cls, module: ModuleOp, params: Mapping[str, Array] | None = None) -> Network:
        """Wrap a module of the graph dialect as a network; `params` are its constants by name."""
        net = cls()
        NetworkModule.__init__(net, module, params)
        net._constants = {op.label.data: op for op in module.walk() if isinstance(op, ConstantOp)}
        return net

    # -- building -----------------------------------------------------------------------------------------------------

    def input(self, name: str, shape: Sequence[int], dtype: DType = "float32", empty: bool = False) -> Value:
        """Add an input, a tensor that is given in every run; inputs keep their order.

        ValueError where it has no elements, unless that is said, as for one that no operator reads.
        """
        names = self.input_names
        if name in names:
            raise ValueError(f"network '{self.name}' has an input '{name}' already")
        dtype = element_type(dtype)
        if any(int(n) < (0 if empty else 1) for n in shape):
            raise ValueError(f"input '{name}': extents are numbers of at least 1, got {tuple(shape)}")
        block = self.function.body.block
        argument = block.insert_arg(tensor_type(shape, dtype), len(block.args))
        argument.name_hint = hint(name)
        self.function.properties["arg_attrs"] = ArrayAttr(
            [DictionaryAttr({"lw.name": StringAttr(n)}) for n in (*names, name)]
        )
        self._update_type()
        return Value(self, argument)

    def constant(self, values: Any, name: str | None = None, dtype: str | None = None, empty: bool = False) -> Value:
        """Add a constant, a tensor that is the same in every run; its name is made unique.

        ValueError where it has no elements, unless that is said, as for one that is an output and nothing else.
        """
        array = np.asarray(values, dtype=dtype)
        if dtype is None and isinstance(values, float):
            array = array.astype("float32")
        if not array.size and not empty:
            raise ValueError(f"constant '{name or ''}': tensors have extents of at least 1, got shape {array.shape}")
        label = self._unique(name or "constant")
        number = array.reshape(()).item() if array.size == 1 else None
        op = ConstantOp(label, tensor_type(array.shape, array.dtype.name), number)
        if number is None:
            self.params[label] = array
        self._constants[label] = op
        self._add(op)
        return Value(self, op.result)

    def apply(self, name: str, *tensors: Any, label: str | None = None, **options: Any) -> Any:
        """Add an operator; returns its result, or a tuple of several.

        Numbers and arrays among the tensors become constants, numbers of the type of the first tensor that is no bool.
        ValueError where operator, options or shapes do not fit.
        """
        found = operator(name)
        if found.kind is Kind.JOIN:
            raise ValueError(
                f"operator '{name}' is memory that a pass lays out, lw-graph-place-joins: concatenate does"
            )
        kept = found.options(name, options)
        like = next((t.dtype for t in tensors if isinstance(t, Value) and t.dtype != "bool"), None)
        values = [self._own(t) if isinstance(t, Value) else self._as_constant(t, like) for t in tensors]
        try:
            kinds = infer(name, [v.ssa.type for v in values], kept)
        except ExpressionError as error:
            where = f"{name} '{label}'" if label else name
            raise ValueError(f"network '{self.name}', operator {where}: {error}") from error
        op = ApplyOp(name, [v.ssa for v in values], kept, kinds, label or name)
        self._add(op)
        results = tuple(Value(self, r) for r in op.outputs)
        return results[0] if len(results) == 1 else results

    def _operator(self, name: str) -> Callable[..., Any]:
        """`net.relu(x)` is `net.apply("relu", x)`."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            operator(name)
        except ValueError as error:
            raise AttributeError(str(error)) from None
        return lambda *tensors, **options: self.apply(name, *tensors, **options)

    if not TYPE_CHECKING:  # which know the operators by NetworkOperators, and a misspelt one for an error
        __getattr__ = _operator

    def output(self, *values: Value, names: Sequence[str] | None = None) -> None:
        """Make tensors outputs, behind those there are; named as the tensors are unless told otherwise."""
        last = self.function.body.block.last_op
        assert isinstance(last, ReturnOp)
        for value in values:
            self._own(value)
        taken = list(self.output_names) if last.operands else []
        for position, value in enumerate(values):
            wanted = names[position] if names is not None else value.name
            unique, count = wanted, 0
            while unique in taken:
                count += 1
                unique = f"{wanted}_{count}"
            taken.append(unique)
        results = [*last.operands, *(v.ssa for v in values)]
        self.function.body.block.detach_op(last)
        self.function.body.block.add_op(ReturnOp(*results))
        self.function.properties["res_attrs"] = ArrayAttr([DictionaryAttr({"lw.name": StringAttr(n)}) for n in taken])
        self._update_type()

    def _update_type(self) -> None:
        block = self.function.body.block
        assert block.last_op is not None
        kinds = [[v.type for v in values] for values in (block.args, block.last_op.operands)]
        self.function.properties["function_type"] = FunctionType.from_lists(*kinds)

    def _own(self, value: Value) -> Value:
        """The value, ValueError where it is another network's: no operator of this one could read it."""
        if not isinstance(value, Value):
            raise TypeError(f"network '{self.name}': a tensor of the network is wanted, got {type(value).__name__}")
        if value.net is not self:
            raise ValueError(f"network '{self.name}': tensor '{value.name}' is of another network, '{value.net.name}'")
        return value

    def _as_constant(self, value: Any, like: str | None) -> Value:
        if isinstance(value, bool | int | float):
            kind = "float32" if isinstance(value, float) else None
            return self.constant(np.asarray(value, dtype=like or kind), "number")
        return self.constant(value)

    def _unique(self, name: str) -> str:
        if name not in self._constants:
            return name
        count = self._counts.get(name, 0) + 1
        while f"{name}_{count}" in self._constants:
            count += 1
        self._counts[name] = count
        return f"{name}_{count}"

    def _add(self, op: ConstantOp | ApplyOp) -> None:
        block = self.function.body.block
        assert block.last_op is not None
        block.insert_op_before(op, block.last_op)

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> dict[str, Value]:
        """The inputs by name."""
        return {n: Value(self, a) for n, a in zip(self.input_names, self.function.body.block.args, strict=True)}

    @property
    def outputs(self) -> dict[str, Value]:
        """The outputs by name."""
        last = self.function.body.block.last_op
        assert last is not None
        return {n: Value(self, v) for n, v in zip(self.output_names, last.operands, strict=True)}

    @property
    def dtypes(self) -> list[str]:
        """The element types of all tensors."""
        block = self.function.body.block
        return sorted({dtype_of(v) for v in (*block.args, *(r for op in block.ops for r in op.results))})

    def evaluate(self, **feeds: Any) -> list[Array]:
        """Evaluate the network on inputs by the meaning of its operators: slow, to check others against."""
        return evaluate(self, feeds)

    def transform(self, pipeline: str) -> Network:
        """Apply passes to a copy, as `xdsl-opt -p` takes them: `lw-graph-simplify,cse,dce,lw-graph-fuse`."""
        after = transform(self, pipeline)
        return Network.from_module(after.module, after.params)

    def __repr__(self) -> str:
        count = sum(isinstance(op, ApplyOp) for op in self.module.walk())
        return f"<network {one_line(self.name)}: {count} operators, {self.parameter_count} parameters>"
