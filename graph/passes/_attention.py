"""Attention in a network: a product, elementwise steps on its result, a softmax, and a product with that."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.graph import ApplyOp
from ..types import dtype_of, shape_of
from ._product_axes import product_axes
from ._rewrite import is_constant, is_elementwise, producer, used_once
from ._units import is_on_units

PRODUCTS = ("batch_matmul", "einsum")
"""Operators that products of attention are."""
MOST_ELEMENTS = 128
"""Elements of a key, or of a value, at most, where lanes have all of a value: four of each."""


@dataclass(frozen=True)
class Form:
    """Attention that is one kernel: of these types, with so many queries at least, and `tile` dividing its elements.

    With `lanes` queries are lanes, and what differs from one to the next in the steps is constant: that of other
    tensors is loaded one by one (12 heads of 512 x 512 x 64 with such a mask take 16.9 ms in one kernel, 16.0 in three;
    of a constant 14.1 and 14.7). With `most_keys` all keys of a query are in shared memory, a `tile` of them at least.
    """

    dtypes: tuple[str, ...]
    least_rows: int = 1
    tile: int = 1
    lanes: bool = False
    most_keys: int = 0


def attention_before(op: ApplyOp, form: Form) -> list[ApplyOp]:
    """Return the operators of attention of a form that ends in `op`, in order; none where `op` ends no such.

    Nobody else reads what is between its products.
    """
    softmax = producer(op.inputs[0], "softmax") if op.operator.data in PRODUCTS else None
    if softmax is None or not _sums_last(op) or not used_once(softmax.outputs[0]):
        return []
    shape = shape_of(softmax.outputs[0])
    if softmax.options.values.get("axis", -1) not in (-1, len(shape) - 1) or shape[-2] < form.least_rows:
        return []
    if any(dtype_of(v) not in form.dtypes for v in (*op.inputs, *op.outputs)):
        return []
    scored = _scores(softmax, form)
    if not scored:
        return []
    (of_keys, _), (_, of_values) = _extents(scored[0]), _extents(op)
    sizes = (*of_keys, *of_values)
    if any(n % form.tile for n in sizes):
        return []
    fits = form.tile <= shape[-1] <= form.most_keys and max(sizes) <= MOST_ELEMENTS
    if form.most_keys and not (fits and _is_in_rows(scored[0], op) and _has_keys_of_its_own(scored[0])):
        return []
    return [*scored, softmax, op]


def _scores(reader: ApplyOp, form: Form) -> list[ApplyOp]:
    """Return the product, and the elementwise operators behind it, that lead to what `reader` reads in its shape."""
    shape = shape_of(reader.outputs[0])
    for value in reader.inputs:
        owner = value.owner
        if not isinstance(owner, ApplyOp) or not used_once(value) or shape_of(value) != shape:
            continue
        if owner.operator.data in PRODUCTS and product_axes(owner) is not None and dtype_of(value) in form.dtypes:
            return [owner]
        if is_elementwise(owner) and (found := _scores(owner, form)):
            masks = [v for v in owner.inputs if v.owner is not found[-1]]
            return [*found, owner] if not form.lanes or all(map(_is_cheap, masks)) else []
    return []


def _is_cheap(mask: SSAValue) -> bool:
    """True for a tensor that is constant, or the same for all queries."""
    shape = shape_of(mask)
    return len(shape) < 2 or shape[-2] == 1 or is_constant(mask)


# -- axes of products -------------------------------------------------------------------------------------------------


def _sums_last(op: ApplyOp) -> bool:
    """True for a product that sums over the last axis of its first factor, and keeps all others of that."""
    axes = product_axes(op)
    if axes is None:
        return False
    first, second, result = axes
    return first[-1] in second and first[-1] not in result and set(first[:-1]) <= set(result)


def _is_in_rows(scores: ApplyOp, total: ApplyOp) -> bool:
    """True where elements of queries, of keys and of values lie side by side, each in a tensor of its own.

    Products that round their factors are for matrix units, one by one.
    """
    of_scores, of_total = product_axes(scores), product_axes(total)
    assert of_scores is not None and of_total is not None
    (queries, keys, scored), (_, values, results) = of_scores, of_total
    is_value = values[-1] in results and values[-1] not in of_total[0]
    given = {*scores.inputs, total.inputs[1]}
    if is_on_units(scores) or is_on_units(total):
        return False
    return queries[-1] == keys[-1] and keys[-1] not in scored and is_value and len(given) == 3


def _has_keys_of_its_own(scores: ApplyOp) -> bool:
    """True where queries differ from row to row alone: no rule has heads that share keys in one kernel of float32."""
    axes = product_axes(scores)
    assert axes is not None
    _, keys, scored = axes
    return len(set(scored) - set(keys)) == 1


def _extents(op: ApplyOp) -> tuple[list[int], list[int]]:
    """Extents of the axes that a product sums over, and of those of its result that its second factor alone has."""
    axes = product_axes(op)
    assert axes is not None
    first, second, result = axes
    known = dict(zip(second, shape_of(op.inputs[1]), strict=True))
    summed = [n for x, n in known.items() if x in first and x not in result]
    return summed, [n for x, n in known.items() if x in result and x not in first]
