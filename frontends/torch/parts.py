"""Parts of graphs that are compiled: what is known of one without its graph, and the graph for who asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...dialects.cached_property import cached_property
from ...dialects.strides import row_major
from .fx import FxNode, devices_of, inputs_of
from .model_key import rows_of
from .types import memory_order, own_name

if TYPE_CHECKING:
    from ...graph.network import Value

GraphModule = Any


@dataclass(frozen=True)
class Port:
    """A tensor of a part: its shape and strides in PyTorch, and its axes from the outermost in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    order: tuple[int, ...]
    dtype: Any

    @staticmethod
    def of(node: FxNode) -> Port:
        """Return the port of a node; one that is not dense in memory is made contiguous."""
        value = node.meta["val"]
        shape, strides = tuple(value.shape), tuple(value.stride())
        order = memory_order(shape, strides)
        if order is None:
            order, strides = tuple(range(len(shape))), tuple(row_major([max(n, 1) for n in shape]))
        return Port(shape, strides, order, value.dtype)

    @property
    def is_plain(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    @property
    def physical(self) -> tuple[int, ...]:
        """The shape of the elements as they lie in memory."""
        return tuple(self.shape[d] for d in self.order)

    def value(self, value: Value) -> Value:
        """From a tensor as it lies in memory to the one that PyTorch sees."""
        from .importer import as_seen

        return as_seen(value, self.order)

    def in_memory(self, value: Value) -> Value:
        """From a tensor that PyTorch sees to its elements as they lie in memory."""
        if self.is_plain:
            return value
        made: Value = value.net.transpose(value, axes=self.order)
        return made

    def to_json(self) -> list[Any]:
        """Return lists and a name."""
        return [self.shape, self.strides, self.order, own_name(self.dtype)]

    @staticmethod
    def from_json(given: Sequence[Any]) -> Port:
        """Return the port that `to_json` wrote."""
        import torch

        shape, strides, order = map(tuple, given[:3])
        return Port(shape, strides, order, getattr(torch, given[3]))


@dataclass(frozen=True)
class PartForm:
    """All of a part that is asked for where its network is there: its device, its ports, and what tells it apart.

    Inputs that nothing reads have none; `rows` are those of `model_key.rows_of`.
    """

    device: Any
    inputs: tuple[Port | None, ...]
    outputs: tuple[Port, ...]
    rows: tuple[str, ...]

    @staticmethod
    def of(gm: GraphModule) -> PartForm:
        """Return the form of a part whose operators are on one device."""
        given = inputs_of(gm)
        inputs = tuple(Port.of(node) if node.users else None for node in given)
        return PartForm(_device_of(gm), inputs, tuple(map(Port.of, returned(gm))), tuple(rows_of(gm.graph)))

    def to_json(self) -> dict[str, Any]:
        """Return what JSON knows."""
        return {
            "device": str(self.device),
            "inputs": [None if port is None else port.to_json() for port in self.inputs],
            "outputs": [port.to_json() for port in self.outputs],
            "rows": self.rows,
        }

    @staticmethod
    def from_json(given: Mapping[str, Any]) -> PartForm:
        """Return the form that `to_json` wrote."""
        import torch

        return PartForm(
            torch.device(given["device"]),
            tuple(None if port is None else Port.from_json(port) for port in given["inputs"]),
            tuple(map(Port.from_json, given["outputs"])),
            tuple(given["rows"]),
        )


def _device_of(gm: GraphModule) -> Any:
    (device,) = {device for node in gm.graph.nodes for device in devices_of(node)}
    return device


def returned(gm: GraphModule) -> list[FxNode]:
    """Return the nodes that a part returns."""
    found = gm.graph.output_node().args[0]
    return list(found) if isinstance(found, list | tuple) else [found]


class Part:
    """A part of a graph; one whose form was kept by another process is traced when its graph is asked for."""

    def __init__(self, trace: Callable[[], GraphModule], form: PartForm | None = None) -> None:
        self._trace, self._form = trace, form

    @staticmethod
    def of(gm: GraphModule) -> Part:
        """Return the part of a graph that is there."""
        return Part(lambda: gm)

    @cached_property
    def graph(self) -> GraphModule:
        return self._trace()

    @property
    def device(self) -> Any:
        return _device_of(self.graph) if self._form is None else self._form.device

    @cached_property
    def form(self) -> PartForm:
        return self._form or PartForm.of(self.graph)
