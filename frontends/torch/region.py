"""A region of a graph on one device: compiled when it is first called, and run on the memory of PyTorch's tensors."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from ...backends.forkable import ForkableLock
from ...backends.missing import MissingRequirement
from ...backends.targets import resolve_target
from ...dialects.cached_property import cached_property
from ...dialects.target import Target
from ...graph.builders import BuildError
from ...graph.export import CpuNetwork
from ...graph.runtime.network import CompiledNetwork
from ...passes.collector import old_objects_spared
from .devices import Frame, Loaded, RegionDevice, region_device
from .fused_steps import count_fused_steps
from .fx import FxNode, inputs_of
from .kept_networks import Key, keep, kept, key_of
from .model_key import records_of
from .options import BACKGROUND, TorchOptions
from .packed_parameters import PackedParameters
from .parts import Part, Port, returned
from .types import Array, Tensor, array_of, memory_order, tensor_kind

if TYPE_CHECKING:
    from ...graph.network import Network, Value

Arguments = Sequence[Tensor] | Mapping[int, Tensor]
"""Arguments of a region, or some of them by their places."""
_FAILURES = (BuildError, MissingRequirement, ValueError, MemoryError)
"""Errors of compiling a region."""
_AT_THE_END = "interpreter shutdown"
"""In Python's refusal to start threads once the program has ended."""
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


@dataclass
class _Bound:
    """A compiled region, with the parameters that its constants were made of."""

    network: CompiledNetwork
    loaded: Loaded
    parameters: PackedParameters
    """Those that constants are made of."""
    watched: list[weakref.ref[Tensor]]
    """Of the parameters: what is compiled for some is dropped when one of them is gone."""
    ports: dict[int, Port]
    """The inputs, by their places among the region's arguments."""
    given: list[tuple[int, tuple[int, ...]]]
    """The places of the inputs, and their strides."""
    made: list[tuple[tuple[int, ...], tuple[int, ...], Any]]
    """The shapes, strides and types of the outputs."""
    frames: list[Frame] = field(default_factory=list)

    def taken_frame(self) -> Frame:
        """Return a frame that no other thread runs."""
        try:
            return self.frames.pop()
        except IndexError:
            return self.loaded.frame()


class Region:
    """A part of a graph as a function of tensors; PyTorch runs the part where it cannot be compiled.

    `static` are the places of arguments that are parameters or buffers. Where they are frozen they are constants:
    folded, packed as schedules ask for it, and otherwise left in PyTorch's memory. Writing them is noticed by PyTorch's
    count of their versions, and they are packed again.
    """

    def __init__(self, name: str, part: Part, static: frozenset[int], options: TorchOptions) -> None:
        self.name, self.part, self.static, self.options = name, part, static, options
        self.statistics = RegionStatistics()
        self.failure: str | None = None
        self.device = part.device
        self._bound: _Bound | None = None
        self._of_modules: dict[tuple[int, ...], _Bound] = {}
        """By the parameters themselves: modules of one class share a graph under torch.compile."""
        self._captured: list[_Bound] = []
        """Replaced ones that CUDA graphs read."""
        self._lock, self._thread = ForkableLock(), Thread()
        self._waits = options.wait or self.device.type != "cpu"
        """Elsewhere a stream must not be captured while kernels are loaded."""

    @property
    def graph(self) -> Any:
        """The part as an FX graph."""
        return self.part.graph

    @property
    def compiled(self) -> CompiledNetwork | None:
        """The compiled network, once it was called."""
        return None if self._bound is None else self._bound.network

    def __call__(self, *arguments: Tensor) -> Any:
        bound = self._bound
        if bound is None or not bound.parameters.hold(arguments):
            bound = self._bind(arguments) if self._waits else self._found(arguments)
            if bound is None:
                return self._in_pytorch(*arguments) if self._waits else self._meanwhile(arguments)
        return self._run(bound, arguments)

    def _found(self, arguments: tuple[Tensor, ...]) -> _Bound | None:
        """Return what is compiled for these parameters as they are now."""
        found = self._of_modules.get(self._parameters(arguments))
        if found is None or not found.parameters.hold(arguments):
            return None
        self._bound = found
        return found

    def _meanwhile(self, arguments: tuple[Tensor, ...]) -> Any:
        """Run in PyTorch, and have a thread compile for these parameters, unless one is at it.

        It begins when PyTorch is done, whose operators would each wait for Python's lock otherwise.
        """
        made = self._in_pytorch(*arguments)
        if self.failure is None and not self._thread.is_alive():
            parameters = tuple(each if place in self.static else None for place, each in enumerate(arguments))
            self._thread = Thread(target=self._bind_beside, args=(parameters,), name=f"compiling {self.name}")
            self._thread.start()
        return made

    def _bind_beside(self, parameters: tuple[Tensor, ...]) -> None:
        try:
            self._bind(parameters)
        except Exception as error:  # a bug of ours, which each call would run into
            if _AT_THE_END in str(error):
                return
            self.failure = f"{type(error).__name__}: {error}"
            raise

    @cached_property
    def _in_pytorch(self) -> Any:
        """The part as PyTorch runs it; the graph itself, by which records are found, stays as it was traced."""
        from .partition import copied, loosen_views

        return loosen_views(copied(self.graph))

    def _run(self, bound: _Bound, arguments: Sequence[Tensor]) -> Any:
        addresses, alive, loaded = [], [], bound.loaded
        alignment, empty = loaded.alignment, loaded.empty
        for place, strides in bound.given:
            tensor = arguments[place]
            address = tensor.data_ptr()
            if tensor.stride() != strides or address % alignment:
                tensor = self._in_order(tensor, bound.ports[place], loaded)
                alive.append(tensor)
                address = tensor.data_ptr()
            addresses.append(address)
        results = [empty(shape, strides, dtype) for shape, strides, dtype in bound.made]
        addresses += [result.data_ptr() for result in results]
        frame = bound.taken_frame()
        frame.run(addresses)
        bound.frames.append(frame)
        return results[0] if len(results) == 1 else tuple(results)

    def _in_order(self, tensor: Tensor, port: Port, loaded: Loaded) -> Tensor:
        """Return a tensor in memory as the port says: a copy, but where only axes of extent 1 differ."""
        if memory_order(port.shape, tensor.stride()) == port.order and tensor.data_ptr() % loaded.alignment == 0:
            return tensor
        self.statistics.copied_inputs += 1
        return loaded.empty(port.shape, port.strides, port.dtype).copy_(tensor)

    def _bind(self, arguments: tuple[Tensor, ...]) -> _Bound | None:
        with self._lock:
            if self.failure is not None:
                return None
            key = self._parameters(arguments)
            ready, found = self._found(arguments), self._of_modules.get(key)
            if ready is not None:
                return ready
            device = region_device(self.device)
            if device.must_wait():
                text = f"{self.name} runs in PyTorch in this CUDA graph: call it with these parameters before a capture"
                warnings.warn(text, RegionWarning, stacklevel=4)
                return None
            if found is not None:
                self.statistics.updates += 1
                self._retire(key)
            if self.statistics.updates > _MOST_UPDATES or len(self._of_modules) >= _MOST_MODULES:
                self.static = frozenset()
                for each in list(self._of_modules):
                    self._retire(each)
            try:
                self._bound = self._of_modules[self._parameters(arguments)] = self._compiled(arguments, device)
            except _FAILURES as error:
                self._fail(str(error))
            except Exception as error:  # a bug of ours is no reason not to run the model
                from ...search.measure.check import WrongKernelError
                from .importer import bug

                if isinstance(error, WrongKernelError) or _AT_THE_END in str(error):
                    raise
                self._fail(bug(error))
            return self._bound if self.failure is None else None

    def _fail(self, why: str) -> None:
        self.failure = why
        warnings.warn(f"{self.name} runs in PyTorch: {why}", RegionWarning, stacklevel=5)

    def _parameters(self, arguments: Arguments) -> tuple[int, ...]:
        """The identities of the parameters: nothing is kept of those that are gone, whose numbers others may get."""
        return tuple(id(arguments[place]) for place in sorted(self.static))

    def bind_kept(self, arguments: Mapping[int, Tensor]) -> bool:
        """Take the network that is kept for parameters, by their places; False where none is."""
        with self._lock:
            try:
                bound = self._bound_by(self._kept, arguments, region_device(self.device))
            except _FAILURES:
                return False
            if bound is not None:
                self._bound = self._of_modules[self._parameters(arguments)] = bound
            return bound is not None

    def _compiled(self, arguments: Arguments, device: RegionDevice) -> _Bound:
        bound = self._bound_by(self._kept_or_made, arguments, device)
        assert bound is not None
        return bound

    def _bound_by(
        self,
        found: Callable[[Mapping[int, Tensor], RegionDevice], CompiledNetwork | None],
        arguments: Arguments,
        device: RegionDevice,
    ) -> _Bound | None:
        frozen = tuple(
            place for place in sorted(self.static) if self.options.freeze and not arguments[place].is_inference()
        )
        count_fused_steps()
        parameters, constants = PackedParameters(arguments, frozen), {place: arguments[place] for place in frozen}
        given, made = self.ports(constants)
        with old_objects_spared():
            compiled = found(constants, device)
        if compiled is None:
            return None
        self.statistics.compilations += 1
        return _Bound(
            network=compiled,
            loaded=device.load(compiled),
            parameters=parameters,
            watched=self._watched(arguments),
            ports=dict(given),
            given=[(place, port.strides) for place, port in given],
            made=[(port.shape, port.strides, port.dtype) for port in made],
        )

    def _watched(self, arguments: Arguments) -> list[weakref.ref[Tensor]]:
        """Have what is compiled for parameters be forgotten when one of them is gone."""
        key, region = self._parameters(arguments), weakref.ref(self)

        def forget(_: object) -> None:
            found = region()
            if found is not None:
                found._forget(key)

        return [weakref.ref(arguments[place], forget) for place in sorted(self.static)]

    def _forget(self, key: tuple[int, ...]) -> None:
        bound = self._retire(key)
        if bound is not None and self._bound is bound:
            self._bound = None

    def _retire(self, key: tuple[int, ...]) -> _Bound | None:
        """Take out what is compiled for parameters; it is kept in memory where CUDA graphs read it."""
        bound = self._of_modules.pop(key, None)
        if bound is not None and bound.loaded.captured:
            self._captured.append(bound)
        return bound

    def records(self, target: Target) -> str | None:
        """The file of tuning records: the one that was asked for, else that of the graph in the cache folder."""
        given = self.options.records or records_of(self.part.form.rows, str(target))
        return None if given is None else os.fspath(given)

    def _kept(self, constants: Mapping[int, Tensor], device: RegionDevice) -> CompiledNetwork | None:
        """Return the network that this or another process made of the same, if it is kept."""
        target, key = self._key(constants, device)
        return None if key is None else kept(key, target, constants)

    def _kept_or_made(self, constants: Mapping[int, Tensor], device: RegionDevice) -> CompiledNetwork:
        target, key = self._key(constants, device)
        if key is None:
            return self._made(constants, device)
        found = kept(key, target, constants)
        if found is None:
            made = self._made(constants, device)
            assert isinstance(made, CpuNetwork)
            keep(key, made, constants)
            return made
        return found

    def _key(self, constants: Mapping[int, Tensor], device: RegionDevice) -> tuple[Target, Key | None]:
        """Return the target, and what decides the network on it; None where none is kept."""
        target = resolve_target(device.target(self.options.target))
        if self.options.tune or self.options.check or self.options.precision:
            return target, None
        return target, key_of(self.part.form.rows, target, constants, self._known_records(target))

    def _made(self, constants: Mapping[int, Tensor], device: RegionDevice) -> CompiledNetwork:
        from ...graph.layout import in_layout
        from ...graph.precision import in_precision

        target = resolve_target(device.target(self.options.target))
        net = in_layout(self.network(constants, device.array_of), "auto", target)
        precision = self._precision(target)
        return self._tuned(in_precision(net, precision) if "float32" in net.dtypes else net, target)

    def _precision(self, target: Target) -> str | None:
        """The precision that was asked for, else TF32 where PyTorch's own products of float32 may round to it."""
        import torch

        may_round = target.kind == "cuda" and torch.get_float32_matmul_precision() != "highest"
        return self.options.precision or ("tf32" if may_round else None)

    def _known_records(self, target: Target) -> str | None:
        """The file of records to take schedules from: one that was asked for must be there."""
        records = self.records(target)
        must_exist = self.options.records is not None and not self.options.tune
        return records if must_exist or (records is not None and Path(records).is_file()) else None

    def _tuned(self, net: Network, target: Target) -> CompiledNetwork:
        from ...graph.chosen_schedules import UntunedWarning
        from ...graph.compiler import compile
        from .tuning import tune_network

        options, records, is_first = self.options, self.records(target), not self.statistics.compilations
        if options.tune and records is None:
            raise ValueError(
                "option tune keeps records in the cache folder, and this user has none: name a file of them"
            )
        if isinstance(options.tune, int | float) and options.tune and is_first:
            assert records is not None
            tune_network(net, target, records, options.tune)
        known = self._known_records(target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UntunedWarning)
            made = compile(net, target, known, check=options.check, copy_constants=False)
        if options.tune == BACKGROUND and is_first:
            assert records is not None
            self._tune_beside(made, records)
        return made

    def _tune_beside(self, made: CompiledNetwork, records: str) -> None:
        if isinstance(made, CpuNetwork):
            from .background import tune_beside

            tune_beside(self, made, records)
        else:
            text = f"{self.name} is not tuned: tuning beside a program is for CPUs; name seconds in the option tune"
            warnings.warn(text, RegionWarning, stacklevel=5)

    def renew(self) -> None:
        """Compile again with the schedules that are on record now; calls take the new kernels from then on."""
        with self._lock:
            for key, bound in list(self._of_modules.items()):
                parameters = [watched() for watched in bound.watched]
                if any(each is None for each in parameters):
                    continue
                arguments = dict(zip(sorted(self.static), parameters, strict=True))
                try:
                    made = self._compiled(arguments, region_device(self.device))
                except _FAILURES as error:
                    warnings.warn(f"{self.name} keeps its kernels: {error}", RegionWarning, stacklevel=2)
                    return
                self._retire(key)
                self._of_modules[key] = made
                if self._bound is bound:
                    self._bound = made

    def ports(self, constants: Mapping[int, Tensor]) -> tuple[list[tuple[int, Port]], list[Port]]:
        """Return the inputs beside constants, by place, and the outputs."""
        form = self.part.form
        given = [(k, port) for k, port in enumerate(form.inputs) if port is not None and k not in constants]
        return given, list(form.outputs)

    def network(self, constants: Mapping[int, Tensor], array: Callable[[Tensor], Array] = array_of) -> Network:
        """Import the region, with some arguments as constants, by their places; `array` makes the arrays of these.

        Inputs and outputs are those of `ports`, in order.
        """
        from ...graph.network import Network
        from .importer import GraphImport, constant_of

        places, net = {node: k for k, node in enumerate(inputs_of(self.graph))}, Network(self.name)

        def value_of(node: FxNode) -> Value:
            place, port = places[node], Port.of(node)
            if place in constants:
                return constant_of(net, node.name, constants[place], array)
            return port.value(net.input(node.name, port.physical, tensor_kind(node.meta["val"]).dtype))

        importer = GraphImport(net, value_of)
        values = importer.run(self.graph.graph)
        if importer.reasons:
            raise ValueError("; ".join(importer.reasons))
        net.output(*(Port.of(node).in_memory(values[node]) for node in returned(self.graph)))
        return net
