"""A region of a graph on the CPU: compiled when it is first called, and run on the memory of PyTorch's tensors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...backends.missing import MissingRequirement
from ...graph.builders import BuildError
from ...graph.chosen_schedules import UntunedWarning
from ...graph.compiler import compile
from ...graph.layout import in_layout
from ...graph.network import Network, Value
from ...graph.runtime.network import CompiledNetwork
from ...graph.runtime.on_llvm import LlvmFrame, LlvmNetwork
from .importer import FxNode, GraphImport, constant_of
from .options import TorchOptions
from .tuning import tune_network
from .types import Tensor, kind_of, memory_order

_MOST_UPDATES = 2
"""Parameters that were written so often since they were packed are inputs from then on."""
_MOST_MODULES = 64
"""So many modules that share a graph have constants of their own: what is packed for each is memory."""


class RegionWarning(UserWarning):
    """A region of a graph cannot be compiled, and runs in PyTorch."""


@dataclass
class RegionStatistics:
    """Counts of a region's life."""

    compilations: int = 0
    updates: int = 0
    """Times that parameters were found to be written since they were packed."""
    copied_inputs: int = 0
    """Inputs that were not in memory as the graph says, and were copied."""


@dataclass(frozen=True)
class _Port:
    """A tensor of a region: its shape and strides in PyTorch, and its axes from the outermost in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    order: tuple[int, ...]
    dtype: Any

    @staticmethod
    def of(node: FxNode) -> _Port:
        """Return the port of a node; one that is not dense in memory is made contiguous."""
        value = node.meta["val"]
        shape, strides = tuple(value.shape), tuple(value.stride())
        order = memory_order(shape, strides)
        if order is None:
            order, strides = tuple(range(len(shape))), _contiguous(shape)
        return _Port(shape, strides, order, value.dtype)

    @property
    def is_plain(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    @property
    def physical(self) -> tuple[int, ...]:
        """The shape of the elements as they lie in memory."""
        return tuple(self.shape[d] for d in self.order)

    def value(self, value: Value) -> Value:
        """From a tensor as it lies in memory to the one that PyTorch sees."""
        if self.is_plain:
            return value
        made: Value = value.net.transpose(value, axes=[self.order.index(d) for d in range(len(self.order))])
        return made

    def in_memory(self, value: Value) -> Value:
        """From a tensor that PyTorch sees to its elements as they lie in memory."""
        if self.is_plain:
            return value
        made: Value = value.net.transpose(value, axes=self.order)
        return made


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


@dataclass
class _Bound:
    """A compiled region, with the parameters that its constants were made of."""

    network: CompiledNetwork
    loaded: LlvmNetwork
    frozen: tuple[int, ...]
    parameters: list[Tensor]
    """Kept alive, as constants may lie in their memory."""
    addresses: list[int]
    versions: list[int]
    given: list[tuple[int, _Port]]
    """The inputs, by their places among the region's arguments."""
    made: list[_Port]
    frames: list[LlvmFrame] = field(default_factory=list)

    def holds(self, arguments: Sequence[Tensor]) -> bool:
        """True where the parameters are those that were packed, and nobody has written them since."""
        found = [arguments[place] for place in self.frozen]
        return self.addresses == [t.data_ptr() for t in found] and self.versions == [t._version for t in found]


class Region:
    """A part of a graph as a function of tensors; `graph` is the part, which is run where it cannot be compiled.

    `static` are the places of arguments that are parameters or buffers. Where they are frozen they are constants:
    folded, packed as schedules ask for it, and otherwise left in PyTorch's memory. Writing them is noticed by PyTorch's
    count of their versions, and they are packed again.
    """

    def __init__(self, name: str, graph: Any, static: frozenset[int], options: TorchOptions) -> None:
        self.name, self.graph, self.static, self.options = name, graph, static, options
        self.statistics = RegionStatistics()
        self.failure: str | None = None
        self._bound: _Bound | None = None
        self._of_modules: dict[tuple[int, ...], _Bound] = {}
        """By the parameters themselves: modules of one class share a graph under torch.compile."""
        self._lock = threading.Lock()

    @property
    def compiled(self) -> CompiledNetwork | None:
        """The compiled network, once it was called."""
        return None if self._bound is None else self._bound.network

    def __call__(self, *arguments: Tensor) -> Any:
        bound = self._bound
        if bound is None or not bound.holds(arguments):
            bound = self._bind(arguments)
            if bound is None:
                return self.graph(*arguments)
        return self._run(bound, arguments)

    def _run(self, bound: _Bound, arguments: Sequence[Tensor]) -> Any:
        import torch

        addresses, alive = [], []
        for place, port in bound.given:
            tensor = arguments[place]
            if tensor.stride() != port.strides:
                tensor = self._in_order(tensor, port)
                alive.append(tensor)
            addresses.append(tensor.data_ptr())
        results = [torch.empty_strided(port.shape, port.strides, dtype=port.dtype) for port in bound.made]
        addresses += [result.data_ptr() for result in results]
        frame = bound.frames.pop() if bound.frames else bound.loaded.frame()
        frame.run(addresses)
        bound.frames.append(frame)
        return results[0] if len(results) == 1 else tuple(results)

    def _in_order(self, tensor: Tensor, port: _Port) -> Tensor:
        """Return a tensor in memory as the port says: a copy, but where only axes of extent 1 differ."""
        import torch

        if memory_order(port.shape, tensor.stride()) == port.order:
            return tensor
        self.statistics.copied_inputs += 1
        return torch.empty_strided(port.shape, port.strides, dtype=port.dtype).copy_(tensor)

    def _bind(self, arguments: Sequence[Tensor]) -> _Bound | None:
        with self._lock:
            if self.failure is not None:
                return None
            found = self._of_modules.get(self._parameters(arguments))
            if found is not None and found.holds(arguments):
                self._bound = found
                return found
            self.statistics.updates += found is not None
            if self.statistics.updates > _MOST_UPDATES or len(self._of_modules) >= _MOST_MODULES:
                self.static = frozenset()
                self._of_modules.clear()
            try:
                self._bound = self._of_modules[self._parameters(arguments)] = self._compiled(arguments)
            except (BuildError, MissingRequirement, ValueError, MemoryError) as error:
                self.failure = str(error)
                warnings.warn(f"{self.name} runs in PyTorch: {error}", RegionWarning, stacklevel=4)
            return self._bound if self.failure is None else None

    def _parameters(self, arguments: Sequence[Tensor]) -> tuple[int, ...]:
        """The identities of the parameters, which are kept alive as long as they stand for a compiled region."""
        return tuple(id(arguments[place]) for place in sorted(self.static))

    def _compiled(self, arguments: Sequence[Tensor]) -> _Bound:
        frozen = tuple(
            place for place in sorted(self.static) if self.options.freeze and not arguments[place].is_inference()
        )
        parameters = [arguments[place] for place in frozen]
        addresses, versions = [t.data_ptr() for t in parameters], [t._version for t in parameters]
        net, given, made = self.network(dict(zip(frozen, parameters, strict=True)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UntunedWarning)
            compiled = self._tuned(in_layout(net, "auto"))
        self.statistics.compilations += 1
        loaded = compiled.loaded()
        assert isinstance(loaded, LlvmNetwork)
        return _Bound(compiled, loaded, frozen, parameters, addresses, versions, given, made)

    def _tuned(self, net: Network) -> CompiledNetwork:
        options = self.options
        if options.tune and not self.statistics.compilations:
            tune_network(net, options)
        return compile(net, options.target, options.records, check=options.check, copy_constants=False)

    def network(self, parameters: dict[int, Tensor]) -> tuple[Network, list[tuple[int, _Port]], list[_Port]]:
        """Import the region, with some arguments as constants; returns also its inputs by place, and its outputs."""
        nodes = list(self.graph.graph.nodes)
        places = {node: k for k, node in enumerate(n for n in nodes if n.op == "placeholder")}
        net, given = Network(self.name), []

        def value_of(node: FxNode) -> Value:
            place, port = places[node], _Port.of(node)
            if place in parameters:
                return constant_of(net, node.name, parameters[place])
            given.append((place, port))
            return port.value(net.input(node.name, port.physical, kind_of(node.meta["val"]).dtype))

        importer = GraphImport(net, value_of)
        values = importer.run(self.graph.graph)
        if importer.reasons:
            raise ValueError("; ".join(importer.reasons))
        returned = nodes[-1].args[0]
        outputs = list(returned) if isinstance(returned, list | tuple) else [returned]
        made = [_Port.of(node) for node in outputs]
        net.output(*(port.in_memory(values[node]) for node, port in zip(outputs, made, strict=True)))
        return net, given, made
