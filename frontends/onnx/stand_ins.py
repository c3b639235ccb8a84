"""Placeholders for the results of nodes that were refused, so that the nodes after them are checked too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.cached_property import cached_property
from ...dialects.numpy_types import ELEMENT_TYPES
from ...graph.network import Network, Value
from .model import PreparedModel, inferred_types
from .sizes import TensorSize


class StandIns:
    """Makes them, as inputs of a network that is thrown away; `names` are tensors that depend on one."""

    def __init__(self, net: Network, prepared: PreparedModel) -> None:
        self._net, self._prepared = net, prepared
        self._shapes: dict[str, Sequence[int]] = {}
        self.names: set[str] = set()

    def know_inputs(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Take the shapes of the model's inputs, which are constant from now on."""
        self._shapes.update(shapes)

    def make(self, name: str, size: TensorSize | None = None) -> Value | None:
        """Return a tensor of this size, else of the type that onnx infers; None where networks do not have such."""
        self.names.add(name)
        dtype, shape = (size.dtype, size.shape) if size is not None else self._types.get(name, ("", None))
        if dtype not in ELEMENT_TYPES or shape is None:
            return None
        extents = [n for n in shape if isinstance(n, int) and n > 0]
        return self._net.input(name, extents, dtype) if len(extents) == len(shape) else None

    @cached_property
    def _types(self) -> dict[str, tuple[str, list[int | str] | None]]:
        return inferred_types(self._prepared, self._shapes)
