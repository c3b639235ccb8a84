"""The precision that a network is computed in: its own, or products and what lies between them in a 16-bit float."""

from __future__ import annotations

import numpy as np

from ..dialects.graph import ConstantOp
from ..dialects.numpy_types import PRECISIONS, ROUNDED_FLOATS, teach_numpy
from ..dialects.shown_text import one_line
from .network import Network
from .passes.lower_precision import plan_precision
from .pipeline import PREPARE
from .runtime.plan import KeptOperator
from .types import dtype_of

_SINGLE = "float32"


def in_precision(net: Network, precision: str | None) -> Network:
    """Bring what a network computes in float32 into float16 or bfloat16; inputs and outputs keep their types.

    With tf32 its products round their factors, and all is of float32 still. None leaves it as it is. ValueError for
    another word, and for a network that has nothing in float32.
    """
    return with_kept(net, precision)[0]


def with_kept(net: Network, precision: str | None) -> tuple[Network, tuple[KeptOperator, ...]]:
    """Return the network of `in_precision`, and its operators that compute in float32 nevertheless."""
    if precision is None:
        return net, ()
    require_precision(precision)
    if precision not in ROUNDED_FLOATS:
        teach_numpy(precision)
    prepared = net.transform(PREPARE)
    if _SINGLE not in prepared.dtypes:
        raise ValueError(
            f"network '{one_line(net.name)}' has nothing in float32 to compute in {precision}: its types are "
            f"{', '.join(prepared.dtypes)}"
        )
    beyond = [] if precision in ROUNDED_FLOATS else _beyond(prepared, precision)
    kept = tuple(
        KeptOperator(op.outputs[0].name_hint or op.operator.data, op.operator.data, reason)
        for op, reason in plan_precision(prepared.function, precision, beyond).reasons.items()
    )
    places = f" beyond={','.join(map(str, beyond))}" if beyond else ""
    lowered = f"lw-graph-lower-precision{{dtype={precision}{places}}}"
    return prepared.transform(f"{lowered},lw-graph-simplify,cse,dce,lw-graph-fold-constants,dce"), kept


def require_precision(precision: object) -> None:
    """ValueError for what is no precision that networks of float32 can be computed in."""
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision is {' or '.join(PRECISIONS)}, or None for the types that the network has, got {precision!r}"
        )


def _beyond(net: Network, dtype: str) -> list[int]:
    """Return the places, among a network's constants, of those with finite numbers that a type has not."""
    constants = [op for op in net.function.body.block.ops if isinstance(op, ConstantOp)]
    return [n for n, op in enumerate(constants) if op.value is None and _overflows(net, op, dtype)]


def _overflows(net: Network, op: ConstantOp, dtype: str) -> bool:
    if dtype_of(op.result) != _SINGLE:
        return False
    array = net.constant_values(op)
    largest = np.max(np.abs(array), initial=0, where=np.isfinite(array))
    with np.errstate(over="ignore"):
        return not np.isfinite(largest.astype(dtype))
