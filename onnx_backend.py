"""ONNX's standard backend interface (`onnx.backend.base`): models run by kernels of loopwright.

`prepare(model).run(inputs)`, `run_model`, `run_node`, `is_compatible` and `supports_device`, as functions of this
module and as methods of its class `Backend`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .backends.cuda.driver import target_of_device
from .frontends.onnx.errors import OnnxImportError
from .frontends.onnx.model import read_model
from .frontends.onnx.versions import Versions, importable

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

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
        self.model, self.outputs = model, [info.name for info in model.graph.output]
        self.versions = Versions(model, target, options)
        self.names = self.versions.names

    @property
    def compiled(self) -> CompiledNetwork | None:
        """The network that was compiled last."""
        return self.versions.latest

    def run(self, inputs: Any) -> tuple[Array, ...]:
        """Return the outputs for inputs in order, or by name; ValueError where they are not those of the model."""
        found = self.versions.run(self._feeds(inputs))
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
