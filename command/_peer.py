"""onnxruntime on the same model, inputs and number of threads, for `loopwright bench` to compare with."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Run = Callable[[], Any]


@dataclass(frozen=True)
class Comparison:
    """Median seconds of single runs, ours and the peer's, which took turns; or why there are none."""

    ours_s: float | None = None
    peer_s: float | None = None
    refused: str = ""

    def __str__(self) -> str:
        if self.ours_s is None or self.peer_s is None:
            return f"onnxruntime does not run this model: {self.refused}"
        return (
            f"onnxruntime {self.peer_s * 1e3:.4f} ms, this {self.ours_s * 1e3:.4f} ms, {self.ours_s / self.peer_s:.2f} "
            "of its time (medians of single runs, in turn)"
        )


def compare(
    ours: Run, model: str, feeds: Mapping[str, Any], cores: int, rounds: int, round_ms: float
) -> Comparison | None:
    """Time `ours` and onnxruntime on a model file in alternating rounds; None where onnxruntime is not installed."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return None
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = cores
    settings.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
        session.run(None, dict(feeds))
    except Exception as error:  # onnxruntime's errors have no class in common
        return Comparison(refused=" ".join(str(error).split()))
    return Comparison(*alternate(ours, lambda: session.run(None, dict(feeds)), rounds, round_ms))


def alternate(one: Run, other: Run, rounds: int, round_ms: float) -> tuple[float, float]:
    """The median seconds of a run of each: they take turns, so many milliseconds and at least three runs at a time."""
    one(), other()
    times_s: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for run, found in zip((one, other), times_s, strict=True):
            found += _singles(run, round_ms / 1e3)
    return statistics.median(times_s[0]), statistics.median(times_s[1])


def _singles(run: Run, least_s: float) -> list[float]:
    times_s: list[float] = []
    begin_s = time.perf_counter()
    while len(times_s) < 3 or time.perf_counter() - begin_s < least_s:
        start_s = time.perf_counter()
        run()
        times_s.append(time.perf_counter() - start_s)
    return times_s
