"""A session as onnxruntime has it, by kernels of loopwright: the same constructor and methods."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...dialects.late import LateModule
from ...dialects.numpy_types import ELEMENT_TYPES
from ...onnx_backend import supports_device
from .model import declared_shape, inferred_types, inputs_of, prepare, read_model
from .node import numpy_type
from .tail import versions_of
from .types import type_name

if TYPE_CHECKING:
    import onnx
    from onnx import ModelProto, ValueInfoProto
else:
    onnx = LateModule("onnx")

Array = npt.NDArray[Any]

MOST_VERSIONS = 16
"""So many versions of a model, one for each shape of its inputs, are kept unless a session is told otherwise."""

_PROVIDERS = {"CPUExecutionProvider": ("CPU", "llvm"), "CUDAExecutionProvider": ("CUDA", "cuda")}
_ONNX_NAMES = {"float32": "float", "float64": "double"}
_REFUSED_OPTIONS = {  # others are of graph optimisations, memory patterns, logs: they change no result
    "enable_profiling": "lw.compile(net).executor().profile() times each step",
    "optimized_model_filepath": "lw.compile(net).save writes what was compiled",
}


@dataclass(frozen=True)
class NodeArg:
    """An input or output: `type` as 'tensor(float)', `shape` with a name, or None, for an extent that is open."""

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True)
class ModelMetadata:
    """A model's description of itself."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


class InferenceSession:
    """A model that can be run, in the place of an `onnxruntime.InferenceSession`.

    `path_or_bytes` is a path, bytes, or a ModelProto. Of `sess_options`, which may be onnxruntime's, the number of
    threads (`intra_op_num_threads`) counts. `providers` are CPUExecutionProvider and CUDAExecutionProvider; the first
    whose device is here is taken. `target` and `records` are those of `lw.compile`. A model whose shapes are all known
    is compiled here, another at the first run with each shape; the `versions` that ran last are kept. Where results are
    sized by values (NonZero, NonMaxSuppression), they and what depends on them are computed by ONNX's own reference
    implementation, in NumPy.
    OnnxImportError lists what is not supported; ValueError says what else is wrong.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | onnx.ModelProto,
        sess_options: Any = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        target: str | None = None,
        records: Any = None,
        versions: int = MOST_VERSIONS,
    ) -> None:
        if versions < 1:
            raise ValueError(f"a session keeps at least 1 version of its model, got versions={versions}")
        _require_options(sess_options)
        self._provider = _provider(providers, provider_options)
        self._options = sess_options
        name, self._model = read_model(path_or_bytes)
        self._versions = versions_of(
            self._model, target or _target(self._provider, sess_options), {"records": records}, versions
        )
        graph = self._model.graph
        self._inputs = [_argument(info) for info in inputs_of(graph)]
        self._outputs = _results(name, self._model)
        self._held = {tensor.name for tensor in graph.initializer}
        self._versions.compile_known()

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs that a run must be given."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs in order."""
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return no weights: they are compiled in."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """Return what the model says of itself."""
        model = self._model
        return ModelMetadata(
            producer_name=model.producer_name,
            graph_name=model.graph.name,
            domain=model.domain,
            description=model.doc_string,
            graph_description=model.graph.doc_string,
            version=model.model_version,
            custom_metadata_map={entry.key: entry.value for entry in model.metadata_props},
        )

    def get_providers(self) -> list[str]:
        """Return the provider whose device is used."""
        return [self._provider]

    def get_session_options(self) -> Any:
        """Return the options that were given."""
        return self._options

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Array]:
        """Return the outputs of these names, all for None, for arrays by the names of inputs.

        ValueError says which input or output is wrong, as onnxruntime does.
        """
        known = [output.name for output in self._outputs]
        wanted = list(output_names) if output_names else known
        for name in wanted:
            if name not in known:
                raise ValueError(f"Invalid output name: {name}; there are {', '.join(known)}")
        found = dict(zip(known, self._versions.run(self._feeds(input_feed)), strict=True))
        return [found[name] for name in wanted]

    def _feeds(self, given: Mapping[str, Any]) -> dict[str, Array]:
        if not isinstance(given, Mapping):
            raise TypeError(f"run takes arrays by the names of inputs, got a {type(given).__name__}")
        names = [info.name for info in self._inputs]
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(given)}).")
        for name in given:
            if name in self._held and name not in names:
                raise ValueError(f"Invalid input name: {name} is a weight, which is compiled in")
            if name not in names:
                raise ValueError(f"Invalid input name: {name}; there are {', '.join(names) or 'none'}")
        return {info.name: _fitting(info, given[info.name]) for info in self._inputs}

    def io_binding(self) -> NoReturn:
        """Refuse: NotImplementedError."""
        raise NotImplementedError(
            "outputs cannot be bound to memory: run returns arrays; lw.compile(net) has executors"
        )

    run_with_iobinding = run_with_ort_values = run_async = set_providers = io_binding


def get_available_providers() -> list[str]:
    """Return the providers whose devices are here, the fastest first."""
    return [name for name, (device, _) in reversed(_PROVIDERS.items()) if supports_device(device)]


def _require_options(options: Any) -> None:
    """ValueError for options of a session that change what it does, and that are not supported."""
    for option, instead in _REFUSED_OPTIONS.items():
        if getattr(options, option, None):
            raise ValueError(f"the session option {option} is not supported: {instead}")


def _provider(providers: Sequence[Any] | None, options: Sequence[Mapping[str, Any]] | None) -> str:
    """Return the first provider whose device is here."""
    names = [p if isinstance(p, str) else p[0] for p in providers or ["CPUExecutionProvider"]]
    given = [*(options or ()), *(p[1] for p in providers or () if not isinstance(p, str))]
    for name in names:
        if name not in _PROVIDERS:
            raise ValueError(f"there is no provider {name}; there are {', '.join(_PROVIDERS)}")
    for setting in (key for one in given for key in one if key != "device_id" or int(one[key]) != 0):
        raise ValueError(f"the provider option {setting} is not supported; device_id may be 0")
    for name in names:
        if supports_device(_PROVIDERS[name][0]):
            return name
    raise ValueError(f"no device of {', '.join(names)} is here; there are {', '.join(get_available_providers())}")


def _target(provider: str, options: Any) -> str:
    """Return the target of a provider, with as many cores as the options say threads (0: all)."""
    kind, threads = _PROVIDERS[provider][1], int(getattr(options, "intra_op_num_threads", 0) or 0)
    return f"{kind} cores={threads}" if kind == "llvm" and threads > 0 else kind


def _argument(info: ValueInfoProto) -> NodeArg:
    shape = declared_shape(info) or []
    return NodeArg(info.name, _typed(type_name(info.type.tensor_type.elem_type)), [_open(n) for n in shape])


def _typed(dtype: str) -> str:
    return f"tensor({_ONNX_NAMES.get(dtype, dtype)})"


def _open(extent: int | str) -> int | str | None:
    return None if extent == "?" else extent


def _results(name: str, model: ModelProto) -> list[NodeArg]:
    """Return the outputs, with types and shapes that onnx infers where the model does not say them."""
    infos = list(model.graph.output)
    if all(info.type.tensor_type.HasField("shape") for info in infos):
        return [_argument(info) for info in infos]
    found = inferred_types(prepare(name, model), {})
    made = []
    for info in infos:
        dtype, shape = found.get(info.name, ("", None))
        said = _argument(info) if info.type.tensor_type.elem_type else NodeArg(info.name, _typed(dtype), [])
        made.append(NodeArg(info.name, said.type, [_open(n) for n in shape or []]))
    return made


def _fitting(info: NodeArg, value: Any) -> Array:
    """Return an array of an input's type and rank; ValueError where it is of another, in onnxruntime's words."""
    dtype = next(name for name in ELEMENT_TYPES if _typed(name) == info.type)
    array = np.asarray(value) if hasattr(value, "dtype") else np.asarray(value, numpy_type(dtype))
    if array.dtype != np.dtype(numpy_type(dtype)):
        actual = _typed(array.dtype.name)
        raise ValueError(
            f"Unexpected input data type for input: {info.name}. Actual: ({actual}), expected: ({info.type})"
        )
    if not info.shape:  # of any rank, or a scalar: what is compiled says
        return array
    if array.ndim != len(info.shape):
        raise ValueError(f"Invalid rank for input: {info.name} Got: {array.ndim} Expected: {len(info.shape)}")
    for index, (got, expected) in enumerate(zip(array.shape, info.shape, strict=True)):
        if isinstance(expected, int) and got != expected:
            raise ValueError(
                f"Got invalid dimensions for input: {info.name} index: {index} Got: {got} Expected: {expected}"
            )
    return array
