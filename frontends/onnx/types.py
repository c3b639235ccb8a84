"""Element types of ONNX by NumPy's names."""

from __future__ import annotations

from functools import cache


@cache
def _names() -> dict[int, str]:
    from onnx import TensorProto

    renamed = {"float": "float32", "double": "float64"}
    numbers = TensorProto.DataType.items()
    return {number: renamed.get(name.lower(), name.lower()) for name, number in numbers}


def type_name(number: int) -> str:
    """NumPy's name of an element type by its number in ONNX; ONNX's own, in small letters, where NumPy has none."""
    return _names().get(number, f"type {number}")
