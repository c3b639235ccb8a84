"""Fourier transforms of real numbers in a graph as products with a table, where complex numbers are only looked at."""

from __future__ import annotations

from typing import Any

from .importer import FxNode, name_of

GraphModule = Any
Tensor = Any
_MOST_TERMS = 4096
"""Terms of a transform, at most: the table has as many rows, and twice the bins as columns (64 MiB of float32). Not
measured: frames of sounds have 200 to 2,048."""
_READERS = ("permute.default", "view_as_real.default", "abs.default")
"""Operators on complex numbers that have a form on their real and imaginary parts."""


def take_transforms_apart(gm: GraphModule) -> None:
    """Replace transforms `_fft_r2c` along the last axis, and what reads them, by operators on real numbers.

    A complex tensor is one with real and imaginary parts along a further axis, as `torch.view_as_real` shows it. One
    that is read otherwise, or returned, stays as it is.
    """
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and name_of(node) == "_fft_r2c.default" and _is_plain(node):
            _take_apart(gm, node)
    gm.graph.eliminate_dead_code()
    gm.recompile()


def _is_plain(node: FxNode) -> bool:
    """True for a transform along the last axis whose complex numbers end up as real ones."""
    given, axes, _, _ = node.args
    value = given.meta["val"]
    last = [axis % value.ndim for axis in axes] == [value.ndim - 1]
    return last and value.shape[-1] <= _MOST_TERMS and not value.is_complex() and _ends_in_real_numbers(node)


def _ends_in_real_numbers(node: FxNode) -> bool:
    for user in node.users:
        if user.op != "call_function" or name_of(user) not in _READERS:
            return False
        if name_of(user) == "permute.default" and not _ends_in_real_numbers(user):
            return False
    return True


def _take_apart(gm: GraphModule, node: FxNode) -> None:
    import torch

    aten: Any = torch.ops.aten
    given, _, normalization, _ = node.args
    value = given.meta["val"]
    terms, bins = value.shape[-1], node.meta["val"].shape[-1]
    name = f"{node.name}_table"
    gm.register_buffer(name, _table(terms, bins, normalization).to(value.dtype), persistent=False)
    with gm.graph.inserting_before(node):
        table = gm.graph.get_attr(name)
        table.meta["val"] = value.new_empty((terms, 2 * bins))
        rows = _call(gm, aten.reshape.default, given, [-1, terms])
        made = _call(gm, aten.mm.default, rows, table)
        parts = _call(gm, aten.reshape.default, made, [*value.shape[:-1], bins, 2])
    _replace(gm, node, parts)


def _replace(gm: GraphModule, node: FxNode, parts: FxNode) -> None:
    """Have what reads complex numbers read their real and imaginary parts."""
    import torch

    aten: Any = torch.ops.aten
    for user in list(node.users):
        with gm.graph.inserting_before(user):
            if name_of(user) == "permute.default":
                rank = parts.meta["val"].ndim - 1
                axes = [axis % rank for axis in user.args[1]]
                _replace(gm, user, _call(gm, aten.permute.default, parts, [*axes, rank]))
            elif name_of(user) == "view_as_real.default":
                user.replace_all_uses_with(parts)
            else:
                squares = _call(gm, aten.mul.Tensor, parts, parts)
                power = _call(gm, aten.sum.dim_IntList, squares, [-1])
                user.replace_all_uses_with(_call(gm, aten.sqrt.default, power))


def _call(gm: GraphModule, operator: Any, *arguments: Any) -> FxNode:
    """Add a node, with what PyTorch says of its result."""
    made = gm.graph.call_function(operator, arguments)
    made.meta["val"] = operator(*(a.meta["val"] if hasattr(a, "meta") else a for a in arguments))
    return made


def _table(terms: int, bins: int, normalization: int) -> Tensor:
    """Tabulate a transform in double precision, (terms, bins and parts): exp(-2 pi i j k / terms), scaled.

    `normalization` is ATen's: 0 for none, 1 by the root of the terms, 2 by the terms.
    """
    import torch

    places = torch.arange(terms).unsqueeze(1) * torch.arange(bins) % terms
    angles = places.double() * (-2 * torch.pi / terms)
    scale = (1.0, terms**-0.5, 1 / terms)[normalization]
    return (torch.stack((torch.cos(angles), torch.sin(angles)), dim=-1) * scale).reshape(terms, 2 * bins)
