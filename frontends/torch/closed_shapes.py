"""Programs of torch.export whose shapes are open, traced again where their extents are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .types import Tensor

ExportedProgram = Any
Shapes = Mapping[str, Sequence[int]]


def with_closed_shapes(program: ExportedProgram, shapes: Shapes) -> ExportedProgram:
    """Return a program with numbers for the extents that it leaves open: of `shapes`, else of its own example.

    Extents that are one in the program are so in all of its inputs. ValueError says what does not fit the program.
    """
    import torch
    from torch.utils import _pytree as pytree

    inputs = _inputs(program)
    for name in shapes:
        if name not in inputs:
            raise ValueError(f"the program has no input '{name}' that is a tensor; it has {', '.join(inputs)}")
    if all(isinstance(extent, int) for value in inputs.values() for extent in value.shape) and not shapes:
        return program
    examples = program.example_inputs
    leaves, spec = pytree.tree_flatten(examples) if examples else ([], program.call_spec.in_spec)
    given = dict(zip(program.graph_signature.user_inputs, leaves, strict=False))
    known = _extents(program, inputs, shapes, {name: each for name, each in given.items() if name in inputs})
    made = [
        _example(inputs[name], given.get(name), tuple(_number(extent, known) for extent in inputs[name].shape))
        if name in inputs
        else given.get(name)
        for name in program.graph_signature.user_inputs
    ]
    args, kwargs = pytree.tree_unflatten(made, spec)
    with torch.no_grad():
        return torch.export.export(program.module(), args, kwargs)


def _inputs(program: ExportedProgram) -> dict[str, Tensor]:
    """The inputs that are tensors, as the program was traced with them, by name."""
    names = set(program.graph_signature.user_inputs)
    placeholders = (node for node in program.graph.nodes if node.op == "placeholder" and node.name in names)
    return {node.name: node.meta["val"] for node in placeholders if hasattr(node.meta.get("val"), "shape")}


def _extents(
    program: ExportedProgram, inputs: Mapping[str, Tensor], shapes: Shapes, examples: Mapping[str, Tensor]
) -> dict[Any, int]:
    """Return numbers for the symbols that stand for open extents; what is given comes before the example."""
    known: dict[Any, int] = {}
    for name, shape in shapes.items():
        if len(shape) != len(inputs[name].shape):
            raise ValueError(f"input '{name}' has {len(inputs[name].shape)} axes, {tuple(shape)} are given")
        for extent, number in zip(inputs[name].shape, shape, strict=True):
            if _symbol(extent) is not None and known.setdefault(_symbol(extent), number) != number:
                raise ValueError(
                    f"input '{name}': an extent that is {known[_symbol(extent)]} elsewhere is given {number}"
                )
    for name, example in examples.items():
        for extent, number in zip(inputs[name].shape, example.shape, strict=True):
            if _symbol(extent) is not None:
                known.setdefault(_symbol(extent), int(number))
    for name, shape in shapes.items():
        fits = tuple(_number(extent, known) for extent in inputs[name].shape)
        if fits != tuple(shape):
            raise ValueError(f"input '{name}' of the program is {_shown(inputs[name])}, {tuple(shape)} does not fit")
    for symbol, bounds in program.range_constraints.items():
        if symbol in known and not bounds.lower <= known[symbol] <= bounds.upper:
            raise ValueError(f"an extent of the program is from {bounds.lower} to {bounds.upper}, got {known[symbol]}")
    return known


def _symbol(extent: Any) -> Any:
    """The symbol that an open extent is; None for a number, and for what is computed of others."""
    found = None if isinstance(extent, int) else extent.node.expr
    return found if getattr(found, "is_Symbol", False) else None


def _number(extent: Any, known: Mapping[Any, int]) -> int:
    if isinstance(extent, int):
        return extent
    found = extent.node.expr.subs(known)
    if not found.is_Integer:
        raise ValueError(f"the program leaves the extent {extent} open, and keeps no example: give its inputs' shapes")
    return int(found)


def _example(value: Tensor, given: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    """Return the example that there is, or zeros of a shape."""
    import torch

    if given is not None and tuple(given.shape) == shape:
        return given
    return torch.zeros(shape, dtype=value.dtype, device=value.device)


def _shown(value: Tensor) -> str:
    return f"({', '.join(map(str, value.shape))})"
