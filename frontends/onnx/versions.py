"""A model compiled when it is run: a version for the shapes of its inputs, and others for other shapes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...backends.forkable import ForkableLock
from ...graph.chosen_schedules import UntunedWarning
from ...graph.compiler import compile as compile_network
from ...graph.runtime.on_arrays import OnArrays
from .errors import NeedsInputsError, OnnxImportError
from .importer import from_onnx
from .model import inputs_of

if TYPE_CHECKING:
    from onnx import ModelProto

    from ...graph.network import Network
    from ...graph.runtime.network import CompiledNetwork

Array = npt.NDArray[Any]


class Versions:
    """Versions of a model by the shapes of its inputs, of which the `most` that ran last are kept (None: all).

    Inputs that decide shapes (of one axis at most, such as the shape that Reshape takes) are constants of a version.
    `options` are those of `lw.compile`. Threads wait for one another. OnnxImportError where the model is not supported.
    """

    def __init__(
        self,
        model: ModelProto,
        target: str,
        options: Mapping[str, Any],
        most: int | None = None,
    ) -> None:
        self.model, self.target, self.options, self.most = model, target, dict(options), most
        self.names = [info.name for info in inputs_of(model.graph)]
        self.latest: CompiledNetwork | None = None
        self._made: dict[Any, OnArrays] = {}
        self._fixed: set[str] = set()
        self._lock = ForkableLock()
        self._net = importable(model)

    def __len__(self) -> int:
        return len(self._made)

    def compile_known(self) -> None:
        """Compile a version now if the model says all shapes."""
        if self._net is not None:
            with self._lock:
                self._version({n: np.empty(v.shape, v.dtype) for n, v in self._net.inputs.items()})

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Return all outputs for all inputs by name."""
        with self._lock:
            given = {name: feeds[name] for name in self.names}
            return self._version(given)(given)[: len(self.model.graph.output)]

    def _version(self, feeds: Mapping[str, Array]) -> OnArrays:
        found = self._made.pop(self._key(feeds), None)
        if found is None:
            found = self._compile(feeds)
        self._made[self._key(feeds)] = found  # compiling may find inputs to be constants
        while self.most is not None and len(self._made) > self.most:
            del self._made[next(iter(self._made))]
        return found

    def _key(self, feeds: Mapping[str, Array]) -> Any:
        return tuple((a.shape, a.tobytes() if n in self._fixed else b"") for n, a in feeds.items())

    def _compile(self, feeds: Mapping[str, Array]) -> OnArrays:
        net = self._imported(feeds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UntunedWarning)
            self.latest = compile_network(net, self.target, **self.options)
        return OnArrays(self.latest)

    def _imported(self, feeds: Mapping[str, Array]) -> Network:
        """Return the network for inputs of these shapes."""
        net, self._net = self._net, None
        if net is not None and {n: v.shape for n, v in net.inputs.items()} == {n: a.shape for n, a in feeds.items()}:
            return net
        while True:
            shapes = {name: array.shape for name, array in feeds.items() if name not in self._fixed}
            constants = {name: feeds[name] for name in sorted(self._fixed)}
            try:
                return from_onnx(self.model, shapes, constants)
            except NeedsInputsError as error:
                small = {name for name in error.inputs if feeds[name].ndim <= 1}
                if small <= self._fixed:
                    raise
                self._fixed |= small


def importable(model: ModelProto) -> Network | None:
    """Return the network of a model, or None where the shapes or values of its inputs must be known first.

    OnnxImportError lists what is not supported in any case.
    """
    try:
        return from_onnx(model)
    except OnnxImportError as error:
        reasons = [reason for reason in error.reasons if reason not in error.pending]
        if reasons:
            raise OnnxImportError(model.graph.name or "model", reasons) from None
        return None
