"""Models as they come, brought to one form: read, checked, functions inlined, shapes of inputs known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...backends.host_memory import host_memory_bytes
from ...backends.missing import MissingRequirement
from ...dialects.numpy_types import ELEMENT_TYPES
from .discovery import STANDARD, converters
from .errors import OnnxImportError, TooLargeError
from .types import type_name
from .weights import external_bytes, require_readable, set_aside, with_inputs, without_inputs

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OLDEST = 7
"""The oldest operator set that is read, the first with broadcasting as it is now."""


MOST_MODEL_BYTES = 2 << 30
"""Bytes that protobuf lets a message hold; weights beyond them lie in files beside the model."""

MOST_NODES = 1_000_000
"""So many nodes may a model have once its functions are put in the place of their calls; the largest known have 1e5."""

_WHOLE = frozenset({"If", "Range"})
"""Operators that are left as they are: the importer knows the one, and evaluates the other."""


def read_model(model: Any, name: str | None = None) -> tuple[str, ModelProto]:
    """Read a path, bytes, or a ModelProto to a name and a model; OnnxImportError where it is none."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ModuleNotFoundError as error:
        raise MissingRequirement(f"reading ONNX models needs {error.name}: pip install 'loopwright[onnx]'") from None

    if isinstance(model, onnx.ModelProto):
        return name or model.graph.name or "model", model
    try:
        if isinstance(model, bytes):
            proto = onnx.load_model_from_string(model)
            return name or proto.graph.name or "model", proto
        path = Path(os.fspath(model))
        if path.is_file() and not path.stat().st_size:
            raise ValueError("the file is empty")
        require_readable(f"the file {path.name}", path.stat().st_size, MOST_MODEL_BYTES)
        proto = onnx.load_model(str(path), load_external_data=False)
        outside = external_bytes(proto, path.parent)
        require_readable("weights in files beside it", outside, host_memory_bytes())
        onnx.load_external_data_for_model(proto, str(path.parent))
        return name or path.stem, proto
    except DecodeError as error:
        raise OnnxImportError(name or _shown(model), [f"this is no ONNX model, or a part of one: {error}"]) from error
    except OSError as error:
        beside = error.filename and os.fspath(error.filename) != _shown(model)
        where = f"cannot read {error.filename}: " if beside else ""
        raise OnnxImportError(name or _shown(model), [f"{where}{error.strerror}"]) from error
    except (onnx.checker.ValidationError, RuntimeError, TypeError, ValueError, TooLargeError) as error:
        raise OnnxImportError(name or _shown(model), [_first_words(error)]) from error


def _shown(model: Any) -> str:
    """Name a model that could not be read, for a message: its path, or how anything else begins."""
    return os.fspath(model) if isinstance(model, str | os.PathLike) else repr(model)[:80]


@dataclass(frozen=True)
class PreparedModel:
    """A model in the form that is imported; `large` are initializers that are not in its graph."""

    model: ModelProto
    large: list[TensorProto]


def prepare(name: str, model: ModelProto) -> PreparedModel:
    """The model with its functions, and operators that are only known as functions, replaced by what they stand for.

    OnnxImportError where the model is not valid, too old or too new.
    """
    import onnx
    from onnx import inliner

    _require_known_versions(name, model)
    _require_few_nodes(name, model)
    light, large = set_aside(model)
    try:
        if any(not info.type.tensor_type.HasField("shape") for info in light.graph.output):
            light = _with_output_shapes(light)
        onnx.checker.check_model(light)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        raise OnnxImportError(name, [f"it is not valid: {_first_words(error)}"]) from error
    version = opsets(light).get("", OLDEST)
    if version < OLDEST:
        light = _newer(name, light, version)
    if light.functions:
        light = inliner.inline_local_functions(light, convert_version=False)
    return PreparedModel(without_inputs(_expanded(light), large), large)


def _require_known_versions(name: str, model: ModelProto) -> None:
    import onnx

    versions = opsets(model)
    if not versions:
        raise OnnxImportError(name, ["it is not valid: it names no operator set (opset_import)"])
    newest = onnx.defs.onnx_opset_version()
    if versions.get("", OLDEST) > newest:
        known = f"the newest that onnx {onnx.__version__} knows is {newest}"
        raise OnnxImportError(name, [f"its operator set is {versions['']}; {known}"])


def _require_few_nodes(name: str, model: ModelProto) -> None:
    """OnnxImportError for functions that call themselves, or one another so often that they cannot be inlined."""
    bodies = {(f.domain, f.name, f.overload): f for f in model.functions}
    counts: dict[tuple[str, str, str], int | None] = {}

    def count(key: tuple[str, str, str]) -> int:
        if key not in bodies:
            return 1
        if key not in counts:
            counts[key] = None
            counts[key] = sum(count((n.domain, n.op_type, n.overload)) for n in nodes_of(bodies[key]))
        found = counts[key]
        if found is None:
            raise OnnxImportError(name, [f"its function '{key[1]}' calls itself"])
        return found

    total = sum(count((n.domain, n.op_type, n.overload)) for n in nodes_of(model.graph))
    if total > MOST_NODES:
        raise OnnxImportError(name, [f"it has {total:,} nodes once functions are inlined, it may have {MOST_NODES:,}"])


def inferred_types(
    prepared: PreparedModel, shapes: Mapping[str, Sequence[int]]
) -> dict[str, tuple[str, list[int | str] | None]]:
    """Element type and shape of each tensor of which onnx infers them, for inputs of these shapes, if not by values."""
    import onnx
    from onnx import helper

    model = onnx.ModelProto()
    model.CopyFrom(prepared.model)
    for info in model.graph.input:
        if info.name in shapes:
            kind = info.type.tensor_type
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind.elem_type, shapes[info.name]))
    try:
        found = onnx.shape_inference.infer_shapes(with_inputs(model, prepared.large))
    except onnx.shape_inference.InferenceError:
        return {}
    infos = (*found.graph.value_info, *found.graph.output)
    return {info.name: (type_name(info.type.tensor_type.elem_type), declared_shape(info)) for info in infos}


def _with_output_shapes(model: ModelProto) -> ModelProto:
    """A copy whose outputs have shapes, which the checker wants: those that are inferred, or any where none are."""
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model)
    for info in inferred.graph.output:
        if not info.type.tensor_type.HasField("shape") and info.type.WhichOneof("value") in (None, "tensor_type"):
            info.type.tensor_type.elem_type = info.type.tensor_type.elem_type or onnx.TensorProto.FLOAT
            info.type.tensor_type.shape.SetInParent()
    return inferred


def _newer(name: str, model: ModelProto, version: int) -> ModelProto:
    """Convert a model of an old operator set to the oldest one that is read."""
    from onnx import version_converter

    try:
        return version_converter.convert_version(model, OLDEST)
    except Exception as error:  # the converter raises RuntimeError, and others that it does not document
        reason = f"its operator set is {version}, and onnx cannot bring it to {OLDEST}: {_first_words(error)}"
        raise OnnxImportError(name, [reason]) from error


def opsets(model: ModelProto) -> dict[str, int]:
    """Return the version of each domain, ONNX's own under the empty name."""
    return {("" if o.domain in STANDARD else o.domain): o.version for o in model.opset_import}


def inputs_of(graph: GraphProto) -> list[ValueInfoProto]:
    """Return the inputs that are no initializers."""
    constants = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return [info for info in graph.input if info.name not in constants]


def declared_shape(info: ValueInfoProto) -> list[int | str] | None:
    """The extents of an input as numbers or names (`?` without one); None where even their number is not known."""
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return [_extent(dim) for dim in kind.shape.dim]


def _extent(dim: Any) -> int | str:
    """Return a number, a name, or `?`; negative numbers, which some exporters write, are extents that are not known."""
    if not dim.HasField("dim_value"):
        return dim.dim_param or "?"
    return dim.dim_value if dim.dim_value >= 0 else "?"


def _expanded(model: ModelProto) -> ModelProto:
    """Inline, as often as it helps, operators that have no converter but a definition by others."""
    from onnx import inliner

    for _ in range(4):
        wanted = sorted({(n.domain, n.op_type) for n in nodes_of(model.graph) if _expandable(n, opsets(model))})
        if not wanted:
            break
        known = {info.name for info in model.graph.input}
        typed = [tensor for tensor in model.graph.initializer if tensor.name not in known]
        try:
            grown = inliner.inline_selected_functions(
                with_inputs(_with_type_of_none(model), typed), wanted, inline_schema_functions=True
            )  # which knows the types of inputs alone
        except RuntimeError:  # the type of a tensor that a definition depends on is not known
            without_inputs(model, typed)
            break
        model = without_inputs(grown, typed)
    _without_type_of_none(model)
    return model


def _with_type_of_none(model: ModelProto) -> ModelProto:
    """Give the empty name a type: the inliner asks for that of every input, also of one that is left out."""
    from onnx import TensorProto, helper

    _without_type_of_none(model)
    model.graph.value_info.append(helper.make_tensor_value_info("", TensorProto.FLOAT, None))
    return model


def _without_type_of_none(model: ModelProto) -> None:
    kept = [info for info in model.graph.value_info if info.name]
    del model.graph.value_info[:]
    model.graph.value_info.extend(kept)


def _expandable(node: NodeProto, versions: Mapping[str, int]) -> bool:
    import onnx

    domain = "" if node.domain in STANDARD else node.domain
    if domain not in versions or (not domain and (node.op_type in converters() or node.op_type in _WHOLE)):
        return False
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, versions[domain], domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def nodes_of(graph: GraphProto | FunctionProto) -> Sequence[NodeProto]:
    """Return all nodes, those of branches included."""
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found.extend(nodes_of(attribute.g))
    return found


def unsupported_inputs(model: ModelProto) -> list[str]:
    """Return a reason for each input that networks cannot have."""
    reasons = []
    for info in inputs_of(model.graph):
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            reasons.append(f"input '{info.name}' is no tensor but a {str(kind).removesuffix('_type')}")
        elif type_name(info.type.tensor_type.elem_type) not in ELEMENT_TYPES:
            found = type_name(info.type.tensor_type.elem_type)
            reasons.append(
                f"input '{info.name}' has elements of type {found}; supported are {', '.join(ELEMENT_TYPES)}"
            )
    return reasons


def _first_words(error: Exception) -> str:
    """The words of an error up to the first empty line, in one: onnx writes a sentence about a node in several."""
    said = str(error).strip().split("\n\n")[0].replace("name:  OpType:", "OpType:")
    return " ".join(said.split()) or type(error).__name__
