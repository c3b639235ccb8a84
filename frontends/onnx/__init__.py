"""ONNX models: imported as networks, and run in a session that is used as onnxruntime's is."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import InferenceSession as InferenceSession
    from .session import get_available_providers as get_available_providers

__all__ = ["InferenceSession", "get_available_providers"]


def __getattr__(name: str) -> Any:
    """Sessions load what compiles, which reading a model does not need."""
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.session"), name)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
