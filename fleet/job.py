"""The one function that jobs of a fleet are: it hands an order to the device of the worker that runs it."""

from __future__ import annotations

from typing import Any


def serve(order: dict[str, Any]) -> dict[str, Any]:
    """Have this worker's device carry out an order, and return its answer; both are plain data."""
    from distributed import get_worker

    device = getattr(get_worker(), "loopwright_device", None)
    if device is None:
        return {"status": "refused", "message": "this Dask worker is no device: `loopwright fleet device` starts one"}
    answer: dict[str, Any] = device.serve(order)
    return answer
