"""Inputs that a graph writes: in place, where only slices of them are new, and by a copy at the graph's end otherwise.

A cache of keys and values is one. Tracing makes of each write a new tensor, `new = slice_scatter(cache, ...)`, and
`copy_(cache, new)` at the end: all of the cache is moved twice for the few rows that are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .fx import FxNode, inputs_of, is_getitem, name_of
from .partition import is_view

GraphModule = Any
Tensor = Any
Piece = tuple[Any, ...]
"""A slice of a tensor, its axis, begin, end and step; or an element along an axis, its axis and index."""


def write_piece(data: Tensor, pieces: Sequence[Piece], values: Tensor) -> Tensor:
    """Write values into the slice of a slice of data; returns the data."""
    _piece_of(data, pieces).copy_(values)
    return data


def write_places(
    data: Tensor, pieces: Sequence[Piece], places: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> Tensor:
    """Write values at places, along axes, of the slice of a slice of data, or add them; returns the data."""
    import torch

    torch.ops.aten.index_put_.default(_piece_of(data, pieces), places, values, accumulate)
    return data


def _piece_of(data: Tensor, pieces: Sequence[Piece]) -> Tensor:
    import torch

    for piece in pieces:
        data = (torch.ops.aten.select.int if len(piece) == 2 else torch.ops.aten.slice.Tensor)(data, *piece)
    return data


WRITERS = (write_piece, write_places)
"""Functions in graphs that write their first argument and return it."""
LEAST_BYTES = 1 << 19
"""Smaller inputs are copied as a whole: to end a region for a write and begin another takes some 20 us, in which a core
moves so much twice (AMD EPYC)."""

IN_PLACE, COPIED = "it writes an input in place", "it copies a result into an input"
"""Reasons why writers and copies stay PyTorch's."""


def writes_otherwise(gm: GraphModule) -> bool:
    """True for a graph with an operator that writes an input, other than a copy into it."""
    return any(
        node.op == "call_function"
        and getattr(getattr(node.target, "_schema", None), "is_mutable", False)
        and any(given.op == "placeholder" for given in node.all_input_nodes)
        and name_of(node) != "copy_.default"
        for node in gm.graph.nodes
    )


class WrittenInputs:
    """The inputs of a graph that copies at its end write, as results of the graph until those are put back."""

    def __init__(self, gm: GraphModule) -> None:
        self._places: list[int] = []
        """Of the written inputs among the graph's; their new values are the graph's last results."""
        inputs = inputs_of(gm)
        copies = [n for n in gm.graph.nodes if n.op == "call_function" and name_of(n) == "copy_.default"]
        copies = [node for node in copies if node.args[0].op == "placeholder"]
        values = []
        for node in copies:
            written, value = node.args[:2]
            if _memory_of(value).op == "placeholder":
                value = _cloned(gm, value)
            self._places.append(inputs.index(written))
            values.append(value)
            node.replace_all_uses_with(written)
            gm.graph.erase_node(node)
        if copies:
            output = gm.graph.output_node()
            output.args = ((*output.args[0], *values),)
            gm.recompile()

    def __bool__(self) -> bool:
        return bool(self._places)

    def write_in_place(self, gm: GraphModule) -> None:
        """Have what only puts slices into a large input write these into its memory, where no one sees a difference.

        All that reads what was there must come before by what it gives to what is written, and no result of the graph
        may share memory with what is put together.
        """
        if not self:
            return
        inputs, output = inputs_of(gm), gm.graph.output_node()
        results = output.args[0][: -len(self._places)]
        for number, place in enumerate(self._places):
            value = output.args[0][len(results) + number]
            if self._places.count(place) > 1 or _shares(results, value) or not _is_large(inputs[place]):
                continue
            for write in _writes(inputs[place], value, results):
                _replace(gm, inputs[place], write)
        gm.graph.eliminate_dead_code()
        gm.recompile()

    def put_back(self, gm: GraphModule) -> list[FxNode]:
        """Have a graph copy its last results into inputs that it does not write in place, and not return them.

        Returns the copies.
        """
        import torch

        copies: list[FxNode] = []
        if not self:
            return copies
        inputs, output = inputs_of(gm), gm.graph.output_node()
        every = list(output.args[0])
        values = every[-len(self._places) :]
        with gm.graph.inserting_before(output):
            for place, value in zip(self._places, values, strict=True):
                if _memory_of(value) is not inputs[place]:
                    made = gm.graph.call_function(torch.ops.aten.copy_.default, (inputs[place], value))
                    made.meta["val"] = inputs[place].meta["val"]
                    copies.append(made)
        output.args = (tuple(every[: -len(self._places)]),)
        return copies


@dataclass(frozen=True)
class _Write:
    """An operator that puts values into data, at places or all over, in the slice of a slice of it."""

    node: FxNode
    data: FxNode
    pieces: tuple[Piece, ...]
    values: FxNode
    places: tuple[FxNode | None, ...] | None = None
    accumulate: bool = False


def _writes(data: FxNode, value: FxNode, results: Sequence[Any]) -> list[_Write]:
    """Return the writes that make a value of an input, the first first; none where they cannot be in place."""
    writes: list[_Write] = []
    while value is not data:
        write = _write(value)
        if write is None:
            return []
        writes.insert(0, write)
        value = write.data
    return writes if all(_may_be_in_place(write, data, results) for write in writes) else []


def _write(node: FxNode) -> _Write | None:
    if node.op != "call_function" or node.kwargs:
        return None
    if name_of(node) == "index_put.default":
        data, places, values, *others = node.args
        return _Write(node, data, (), values, tuple(places), bool(others and others[0]))
    piece = _piece(node, "_scatter.default", 2)
    if piece is None:
        return None
    data, values = node.args[:2]
    inner = _write(values) if len(values.users) == 1 else None
    if inner is not None and _is_piece(inner.data, data, piece):
        return _Write(node, data, (piece, *inner.pieces), inner.values, inner.places, inner.accumulate)
    if values.op == "call_function" and name_of(values) == "copy.default" and not values.kwargs:
        before, after = values.args[:2]  # of the first, only the shape and the type are read
        if _is_piece(before, data, piece):
            values = after
    return _Write(node, data, (piece,), values)


_PIECES = {"slice": (0, None, None, 1), "select": None}
"""Operators that give pieces of data, with the defaults of their numbers."""


def _piece(node: FxNode, ending: str, first: int) -> Piece | None:
    """Return the piece that an operator is of, with an ending of its name, and numbers of it from an argument on."""
    if node.op != "call_function" or node.kwargs:
        return None
    kind = name_of(node).removesuffix(ending)
    if kind + ending != name_of(node) or kind not in _PIECES:
        return None
    given = tuple(node.args[first:])
    given += (_PIECES[kind] or given)[len(given) :]
    return given if all(each is None or isinstance(each, int) for each in given) else None


def _is_piece(node: FxNode, data: FxNode, piece: Piece) -> bool:
    """True for a view of a piece of data."""
    found = _piece(node, ".Tensor" if len(piece) == 4 else ".int", 1)
    return found == piece and _is_same(node.args[0], data)


def _is_same(one: FxNode, other: FxNode) -> bool:
    """True for one node, and for views of the same piece."""
    if one is other:
        return True
    piece = _piece(other, ".Tensor", 1) or _piece(other, ".int", 1)
    return piece is not None and _is_piece(one, other.args[0], piece)


def _may_be_in_place(write: _Write, data: FxNode, results: Sequence[Any]) -> bool:
    """True where all that reads what is written over comes before by what it gives to the write.

    What is written must be memory of its own: a copy between places of one tensor that overlap is not what was traced.
    """
    given = [write.values, *(each for each in write.places or () if each is not None)]
    if not {data, write.data}.isdisjoint(map(_memory_of, given)):
        return False
    readers = {node for node in _readers(write.data) if node is not write.node}
    if write.data is data and not _shares([each for each in results if each is not data], data):
        readers = {node for node in readers if node.op != "output"}  # it gives the same tensor back
    return readers <= _ancestors(write.node)


def _replace(gm: GraphModule, data: FxNode, write: _Write) -> None:
    """Put a call that writes in the place of an operator."""
    arguments: tuple[Any, ...] = (write.node.args[0], write.pieces)
    arguments += (write.values,) if write.places is None else (list(write.places), write.values, write.accumulate)
    with gm.graph.inserting_before(write.node):
        made = gm.graph.call_function(write_piece if write.places is None else write_places, arguments)
    made.meta["val"] = data.meta["val"]
    write.node.replace_all_uses_with(made)
    gm.graph.erase_node(write.node)


def _cloned(gm: GraphModule, value: FxNode) -> FxNode:
    """Return a copy of an input, or of a view of one, which another write of the graph must not change."""
    import torch

    with gm.graph.inserting_before(gm.graph.output_node()):
        made = gm.graph.call_function(torch.ops.aten.clone.default, (value,))
    made.meta["val"] = value.meta["val"].clone()
    return made


def _is_large(data: FxNode) -> bool:
    tensor = data.meta["val"]
    return bool(tensor.numel() * tensor.element_size() >= LEAST_BYTES)


def _shares(results: Sequence[Any], value: FxNode) -> bool:
    """True where results share memory with a value."""
    return any(hasattr(each, "op") and value in _chain(each) for each in results)


def _memory_of(node: FxNode) -> FxNode:
    """Return the node whose memory a node has, itself unless it is a view."""
    *_, last = _chain(node)
    return last


def _chain(node: FxNode) -> Iterator[FxNode]:
    """Yield a node, and what it is a view of, and so on."""
    yield node
    while _is_view(node):
        node = node.args[0]
        yield node


def _is_view(node: FxNode) -> bool:
    """True where a node gives the memory of its first argument, or may."""
    if is_getitem(node):
        return _is_view(node.args[0])
    if node.op != "call_function":
        return False
    returns = getattr(getattr(node.target, "_schema", None), "returns", ())
    return node.target in WRITERS or is_view(node) or any(each.alias_info is not None for each in returns)


def _readers(node: FxNode) -> Iterator[FxNode]:
    """Yield what reads a node's memory, views included."""
    for user in node.users:
        yield user
        if _is_view(user):
            yield from _readers(user)


def _ancestors(node: FxNode) -> set[FxNode]:
    left, found = [node], set[FxNode]()
    while left:
        for each in left.pop().all_input_nodes:
            if each not in found:
                found.add(each)
                left.append(each)
    return found
