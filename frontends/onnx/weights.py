"""Models without their large initializers: functions of onnx that take a whole model fail on more than 2 GB."""

from __future__ import annotations

from contextlib import suppress
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

from .errors import TooLargeError

LARGE = 1 << 14
"""Initializers of so many elements are set aside: no shape depends on their values."""


def external_bytes(model: ModelProto, folder: Path) -> int:
    """Return the bytes of a model's tensors that lie in files of a folder, as far as the files are there."""
    from onnx.external_data_helper import ExternalDataInfo, _get_all_tensors, uses_external_data

    total = 0
    for tensor in _get_all_tensors(model):
        if uses_external_data(tensor):
            info = ExternalDataInfo(tensor)
            with suppress(OSError, ValueError):  # what cannot be read is refused when it is
                size = (folder / info.location).stat().st_size - (info.offset or 0)
                total += max(min(size, info.length) if info.length else size, 0)
    return total


def require_readable(what: str, nbytes: int, most: int) -> None:
    """TooLargeError for what a model may not be read of."""
    if nbytes > most:
        raise TooLargeError(f"{what} would take {nbytes:,} bytes, at most {most:,} can be read")


def set_aside(model: ModelProto) -> tuple[ModelProto, list[TensorProto]]:
    """Return a copy of a model with an input in place of each large initializer, and these initializers, not copied."""
    large = [tensor for tensor in model.graph.initializer if tensor.dims and prod(tensor.dims) >= LARGE]
    light = _without(model, "graph")
    light.graph.MergeFrom(_without(model.graph, "initializer"))
    names = {tensor.name for tensor in large}
    light.graph.initializer.extend(t for t in model.graph.initializer if t.name not in names)
    return with_inputs(light, large), large


def with_inputs(model: ModelProto, large: list[TensorProto]) -> ModelProto:
    """`model`, with an input for each of these initializers added where it has none."""
    from onnx import helper

    known = {info.name for info in model.graph.input}
    for tensor in large:
        if tensor.name not in known:
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return model


def without_inputs(model: ModelProto, large: list[TensorProto]) -> ModelProto:
    """`model` without inputs of these names."""
    names = {tensor.name for tensor in large}
    kept = [info for info in model.graph.input if info.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model


def _without(message: Any, left_out: str) -> Any:
    """Return a copy of a message without one of its fields."""
    made = type(message)()
    for field, value in message.ListFields():
        if field.name == left_out:
            continue
        slot = getattr(made, field.name)
        if hasattr(slot, "MergeFrom"):
            slot.MergeFrom(value)
        else:
            setattr(made, field.name, value)
    return made
