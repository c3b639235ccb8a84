"""ONNX's standard backend interface (`onnx.backend.base`): models run by kernels of loopwright.

`prepare(model).run(inputs)`, `run_model`, `run_node`, `is_compatible` and `supports_device`, as functions of this
module and as methods of its class `Backend`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .backends.cuda.driver import target_of_device
from .frontends.onnx.errors import NeedsInputsError, OnnxImportError
from .frontends.onnx.importer import from_onnx
from .frontends.onnx.model import inputs_of, read_model
from .graph.chosen_schedules import UntunedWarning
from .graph.compiler import compile as compile_network

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from .graph.network import Network
    from .graph.runtime.executor import Executor
    from .graph.runtime.network import CompiledNetwork

Array = npt.NDArray[Any]

_TARGETS = {"CPU": "llvm", "CUDA": "cuda"}
_OPTIONS = ("target", "records", "pipeline", "processes")


class Prepared:
    """A model that can be run; `options` are those of `lw.compile`. OnnxImportError where it cannot be imported.

    Kernels are compiled at the first run, when the shapes of inputs are known, and again for other shapes. Inputs that
    decide shapes (of one axis at most, such as the shape that Reshape takes) are constants of what is compiled.
    """

    def __init__(self, model: ModelProto, target: str, options: Mapping[str, Any]) -> None:
        self.model, self.target, self.options = model, target, dict(options)
        self.names = [info.name for info in inputs_of(model.graph)]
        self.outputs = [info.name for info in model.graph.output]
        self._executors: dict[Any, Executor] = {}
        self._fixed: set[str] = set()
        self.compiled: CompiledNetwork | None = None
        self._net = importable(model)

    def run(self, inputs: Any) -> tuple[Array, ...]:
        """Return the outputs for inputs in order, or by name; ValueError where they are not those of the model."""
        feeds = self._feeds(inputs)
        executor = self._executor(feeds)
        for name in executor.input_names:
            executor.set_input(name, feeds[name])
        executor.run()
        found = [executor.get_output(number) for number in range(len(self.outputs))]
        from onnx.backend.base import namedtupledict

        made: tuple[Array, ...] = namedtupledict("Outputs", self.outputs)(*found)
        return made

    def _feeds(self, inputs: Any) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            listed = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
            names = [info.name for info in self.model.graph.input] if len(listed) > len(self.names) else self.names
            if len(listed) > len(names):
                raise ValueError(f"model {self.model.graph.name} has {len(names)} inputs, got {len(listed)}")
            given = dict(zip(names, listed, strict=False))
        unknown = sorted(set(given) - {info.name for info in self.model.graph.input})
        if unknown:
            known = ", ".join(self.names) or "none"
            raise ValueError(f"model {self.model.graph.name}: there is no input '{unknown[0]}'; there are {known}")
        missing = [name for name in self.names if name not in given]
        if missing:
            raise ValueError(f"model {self.model.graph.name}: input '{missing[0]}' is missing")
        wrong = [name for name in self.names if isinstance(given[name], list | tuple)]
        if wrong:
            raise OnnxImportError(self.model.graph.name, [f"input '{wrong[0]}' is a sequence, not a tensor"])
        return {name: np.asarray(given[name]) for name in self.names}

    def _executor(self, feeds: Mapping[str, Array]) -> Executor:
        key = tuple((a.shape, a.tobytes() if n in self._fixed else b"") for n, a in feeds.items())
        if key not in self._executors:
            self._executors[key] = self._compile(feeds)
            key = tuple((a.shape, a.tobytes() if n in self._fixed else b"") for n, a in feeds.items())
        return self._executors.setdefault(key, next(reversed(self._executors.values())))

    def _compile(self, feeds: Mapping[str, Array]) -> Executor:
        net = self._imported(feeds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UntunedWarning)
            self.compiled = compile_network(net, self.target, **self.options)
        return self.compiled.executor()

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


def prepare(model: Any, device: str = "CPU", **options: Any) -> Prepared:
    """Make a model (a path, bytes or a ModelProto) ready to run.

    Options are `target`, and `records`, `pipeline` and `processes` of `lw.compile`. ValueError for other options, for a
    device that there is none of, and (OnnxImportError) for a model that is not supported.
    """
    _, proto = read_model(model)
    if not supports_device(device):
        raise ValueError(f"there is no device {device} here; devices are CPU and CUDA")
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"there is no option '{unknown[0]}'; options are {', '.join(_OPTIONS)}")
    target = options.pop("target", _TARGETS[device.partition(":")[0]])
    return Prepared(proto, target, options)


def run_model(model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Array, ...]:
    """Run a model on inputs in order, or by name, and return its outputs."""
    return prepare(model, device, **options).run(inputs)


def run_node(
    node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **options: Any
) -> tuple[Array, ...]:
    """The results of a single node; `opset_version` says of which operator set (the newest unless told otherwise)."""
    from onnx import TypeProto, defs, helper

    arrays = [np.asarray(a) for a in (inputs.values() if isinstance(inputs, Mapping) else inputs)]
    named = [name for name in node.input if name]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(named, arrays, strict=True)
    ]
    outputs = [helper.make_value_info(name, TypeProto()) for name in node.output if name]
    version = int(options.pop("opset_version", defs.onnx_opset_version()))
    graph = helper.make_graph([node], node.op_type, infos, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
    return run_model(model, arrays, device, **options)


def is_compatible(model: ModelProto, device: str = "CPU", **_: Any) -> bool:
    """True where a model can be imported, and the device is there; inputs may still have open shapes."""
    try:
        importable(model)
    except OnnxImportError:
        return False
    return supports_device(device)


def supports_device(device: str) -> bool:
    """True where models can run there: CPU, or CUDA where there is such a device; its number must be 0."""
    kind, _, number = device.partition(":")
    if kind not in _TARGETS or number not in ("", "0"):
        return False
    if kind == "CPU":
        return True
    try:
        target_of_device()
    except (ValueError, RuntimeError, OSError, ImportError):
        return False
    return True


@cache
def _backend() -> type:
    from onnx.backend.base import Backend as Base

    functions: Sequence[Any] = (prepare, run_model, run_node, is_compatible, supports_device)
    return type("Backend", (Base,), {f.__name__: staticmethod(f) for f in functions})


def __getattr__(name: str) -> Any:
    """`Backend`, the class of ONNX's interface, is made when it is first asked for: it needs the package onnx."""
    if name == "Backend":
        return _backend()
    raise AttributeError(f"module 'loopwright.onnx_backend' has no attribute {name!r}")
