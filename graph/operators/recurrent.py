"""Gates of recurrent cells: what is left of a step once inputs and state are multiplied by their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import te
from ...dialects.numpy_types import working_type
from ...te import ShapeError, Tensor, compute
from ...te.errors import format_shape
from ...te.expr import Expr
from ..operator import Kind, Operator, elementwise

_ACTIVATIONS: dict[str, Callable[[Expr, float, float], Expr]] = {
    "sigmoid": lambda x, a, b: te.sigmoid(x),
    "tanh": lambda x, a, b: te.tanh(x),
    "relu": lambda x, a, b: te.maximum(x, 0),
    "affine": lambda x, a, b: x * a + b,
    "leakyrelu": lambda x, a, b: te.select(x < 0, x * a, x),
    "thresholdedrelu": lambda x, a, b: te.select(x > a, x, 0),
    "scaledtanh": lambda x, a, b: te.tanh(x * b) * a,
    "hardsigmoid": lambda x, a, b: te.maximum(te.minimum(x * a + b, 1), 0),
    "elu": lambda x, a, b: te.select(x < 0, (te.exp(te.minimum(x, 0)) - 1) * a, x),
    "softsign": lambda x, a, b: x / (te.abs(x) + 1),
    "softplus": lambda x, a, b: te.maximum(x, 0) + te.log(te.exp(-te.abs(x)) + 1),
}
"""Activations by ONNX's names in small letters, of x and the numbers alpha and beta."""


def _function(name: str, alpha: float, beta: float, limit: float | None = None) -> Callable[[Expr], Expr]:
    """Return an activation, of x clipped to [-limit, limit] where there is a limit."""
    if name not in _ACTIVATIONS:
        raise ShapeError(f"activation '{name}' is none of {', '.join(_ACTIVATIONS)}")

    def activated(x: Expr) -> Expr:
        inside = x if limit is None else te.maximum(te.minimum(x, limit), -limit)
        return _ACTIVATIONS[name](inside, alpha, beta)

    return activated


def _gate(
    data: Tensor, *, function: str = "sigmoid", alpha: float = 0.0, beta: float = 0.0, limit: float | None = None
) -> Tensor:
    """Apply the activation of a gate, to data that is clipped to [-limit, limit] before."""
    kind, activated = working_type(data.dtype), _function(function, alpha, beta, limit)
    return te.elementwise(data, lambda x: activated(x.astype(kind)).astype(data.dtype), "T_gate")


def _lstm_gates(
    sums: Tensor,
    cell: Tensor,
    peepholes: Tensor | None = None,
    *,
    functions: Sequence[str] = ("sigmoid", "tanh", "tanh"),
    alphas: Sequence[float] = (0.0, 0.0, 0.0),
    betas: Sequence[float] = (0.0, 0.0, 0.0),
    limit: float | None = None,
    coupled: bool = False,
) -> list[Tensor]:
    """The sums of the gates i, o, f and of the new cell (batch, 4 * hidden), and the old cell -> the state, the cell.

    cell' = f * cell + i * new and state = o * h(cell'); `coupled` takes 1 - i for f. `peepholes` are (3 * hidden,)
    weights by which i, o and f look at the cell, o at the new one.
    """
    batch, size = cell.shape
    _require("lstm_gates", sums, (batch, 4 * size))
    kind, dtype = working_type(sums.dtype), sums.dtype
    gate, new = (_function(functions[k], alphas[k], betas[k], limit) for k in range(2))
    last = _function(functions[2], alphas[2], betas[2])

    def summed(b: Expr, j: Expr, number: int, looked_at: Tensor) -> Expr:
        given = sums[b, j + number * size].astype(kind)
        if peepholes is None:
            return given
        return given + looked_at[b, j].astype(kind) * peepholes[j + number * size].astype(kind)

    def kept(b: Expr, j: Expr) -> Expr:
        i = gate(summed(b, j, 0, cell))
        f = 1.0 - i if coupled else gate(summed(b, j, 2, cell))
        fresh = new(sums[b, j + 3 * size].astype(kind))
        return (f * cell[b, j].astype(kind) + i * fresh).astype(dtype)

    after: Tensor = compute((batch, size), kept, "T_lstm_cell")

    def state(b: Expr, j: Expr) -> Expr:
        return (gate(summed(b, j, 1, after)) * last(after[b, j].astype(kind))).astype(dtype)

    return [compute((batch, size), state, "T_lstm_state"), after]


def _gru_gates(
    inputs: Tensor,
    products: Tensor,
    state: Tensor,
    *,
    functions: Sequence[str] = ("sigmoid", "tanh"),
    alphas: Sequence[float] = (0.0, 0.0),
    betas: Sequence[float] = (0.0, 0.0),
    limit: float | None = None,
) -> Tensor:
    """The products of inputs and the state for the gates z, r and the new state (batch, 3 * hidden each) -> the state.

    state' = (1 - z) * g(inputs + r * products) + z * state: r scales the product, not what is multiplied.
    """
    batch, size = state.shape
    _require("gru_gates", inputs, (batch, 3 * size))
    _require("gru_gates", products, (batch, 3 * size))
    kind = working_type(inputs.dtype)
    gate, new = (_function(functions[k], alphas[k], betas[k], limit) for k in range(2))

    def element(b: Expr, j: Expr) -> Expr:
        given, made = ([t[b, j + k * size].astype(kind) for k in range(3)] for t in (inputs, products))
        z, r = (gate(given[k] + made[k]) for k in range(2))
        fresh = new(given[2] + r * made[2])
        return (fresh + z * (state[b, j].astype(kind) - fresh)).astype(inputs.dtype)

    result: Tensor = compute((batch, size), element, "T_gru_state")
    return result


def _require(name: str, tensor: Any, shape: tuple[int, ...]) -> None:
    if tensor.shape != shape:
        raise ShapeError(
            f"{name}: sums of gates have the shape {format_shape(shape)}, got {format_shape(tensor.shape)}"
        )


gate = elementwise(_gate)
lstm_gates = Operator(_lstm_gates, Kind.OPAQUE)
gru_gates = Operator(_gru_gates, Kind.OPAQUE)
