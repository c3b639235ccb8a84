"""The one function that jobs of a fleet are: it hands an order to the device of the worker that runs it."""

from __future__ import annotations

from typing import Any


def serve(order: dict[str, Any]) -> dict[str, Any]:
    """Have this worker's device carry out an order, and return its answer; both are plain data."""
    from distributed import get_worker

    device = getattr(get_worker(), "loopwright_device", None)
    if device is None:
        return {"status": "refused", "message": "this Dask worker is no device: `loopwright fleet device` starts one"}
    if order.get("what") == "open":
        order = {**order, "wanted": _Wanted(get_worker())}
    answer: dict[str, Any] = device.serve(order)
    return answer


class _Wanted:
    """False once nobody holds the result of the job at hand any more, as Dask lets go of it when its client has died.

    True for as long as that is not known: before it has been put away, and after the tracker was lost.
    """

    def __init__(self, worker: Any) -> None:
        self._worker, self._key = worker, worker.get_current_task()
        self._held = False

    def __call__(self) -> bool:
        held = self._key in self._worker.data
        self._held = self._held or held
        return held or not self._held or self._worker.status.name != "running"
