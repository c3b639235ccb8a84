"""Models as they come, brought to one form: read, checked, functions inlined, shapes of inputs known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .discovery import converters
from .errors import OnnxImportError
from .types import SUPPORTED, type_name

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

OLDEST = 7
"""The oldest operator set that is read, the first with broadcasting as it is now."""

STANDARD = ("", "ai.onnx")
"""Names of ONNX's own domain."""

_WHOLE = frozenset({"If", "Range"})
"""Operators that are left as they are: the importer knows the one, and evaluates the other."""


def read_model(model: Any, name: str | None = None) -> tuple[str, ModelProto]:
    """A name and the model of a path, bytes, or a ModelProto; OnnxImportError where it is none."""
    import onnx
    from google.protobuf.message import DecodeError

    if isinstance(model, onnx.ModelProto):
        return name or model.graph.name or "model", model
    try:
        if isinstance(model, bytes):
            proto = onnx.load_model_from_string(model)
            return name or proto.graph.name or "model", proto
        path = Path(os.fspath(model))
        return name or path.stem, onnx.load_model(str(path))
    except DecodeError as error:
        raise OnnxImportError(name or str(model)[:80], [f"this is no ONNX model: {error}"]) from error
    except OSError as error:
        raise OnnxImportError(
            name or str(model), [f"cannot read {error.filename or model}: {error.strerror}"]
        ) from error
    except (onnx.checker.ValidationError, TypeError) as error:
        raise OnnxImportError(name or str(model)[:80], [_first_line(error)]) from error


def prepare(name: str, model: ModelProto) -> ModelProto:
    """The model with its functions, and operators that are only known as functions, replaced by what they stand for.

    OnnxImportError where the model is not valid or too old.
    """
    import onnx

    versions = opsets(model)
    if any(not info.type.tensor_type.HasField("shape") for info in model.graph.output):
        model = _with_output_shapes(model)
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise OnnxImportError(name, [f"it is not valid: {_first_line(error)}"]) from error
    if versions.get("", OLDEST) < OLDEST:
        model = _newer(name, model, versions[""])
    if model.functions:
        model = onnx.inliner.inline_local_functions(model, convert_version=False)
    model = _expanded(model)
    return model


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
    """A model of an old operator set in the oldest one that is read."""
    from onnx import version_converter

    try:
        return version_converter.convert_version(model, OLDEST)
    except Exception as error:  # the converter raises RuntimeError, and others that it does not document
        reason = f"its operator set is {version}, and onnx cannot bring it to {OLDEST}: {_first_line(error)}"
        raise OnnxImportError(name, [reason]) from error


def opsets(model: ModelProto) -> dict[str, int]:
    """The version of each domain, ONNX's own under the empty name."""
    return {("" if o.domain in STANDARD else o.domain): o.version for o in model.opset_import}


def inputs_of(graph: GraphProto) -> list[ValueInfoProto]:
    """The inputs that are no initializers."""
    constants = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return [info for info in graph.input if info.name not in constants]


def declared_shape(info: ValueInfoProto) -> list[int | str] | None:
    """The extents of an input as numbers or names (`?` without one); None where even their number is not known."""
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in kind.shape.dim]


def _expanded(model: ModelProto) -> ModelProto:
    """Inline, as often as it helps, operators that have no converter but a definition by others."""
    from onnx import inliner

    for _ in range(4):
        wanted = sorted({(n.domain, n.op_type) for n in nodes_of(model.graph) if _expandable(n, opsets(model))})
        if not wanted:
            break
        try:
            model = inliner.inline_selected_functions(model, wanted, inline_schema_functions=True)
        except RuntimeError:  # the type of an input that a definition depends on is not known
            break
    return model


def _expandable(node: NodeProto, versions: Mapping[str, int]) -> bool:
    import onnx

    if node.domain not in STANDARD or node.op_type in converters() or node.op_type in _WHOLE:
        return False
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, versions[""], node.domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def nodes_of(graph: GraphProto) -> Sequence[NodeProto]:
    """All nodes, those of branches included."""
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found.extend(nodes_of(attribute.g))
    return found


def unsupported_inputs(model: ModelProto) -> list[str]:
    """A reason for each input that networks cannot have."""
    reasons = []
    for info in inputs_of(model.graph):
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            reasons.append(f"input '{info.name}' is no tensor but a {str(kind).removesuffix('_type')}")
        elif type_name(info.type.tensor_type.elem_type) not in SUPPORTED:
            found = type_name(info.type.tensor_type.elem_type)
            reasons.append(f"input '{info.name}' has elements of type {found}; supported are {', '.join(SUPPORTED)}")
    return reasons


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
