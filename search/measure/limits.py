"""Limits of a device, for every kind of target: peak arithmetic by element type, and bandwidth of its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...backends.llvm.host import host_target
from ...backends.llvm.peak import MEASURED_TYPES, copy_gbytes_per_s, peak_gflops_per_s
from ...dialects.target import Target, parse_target

_COPIED_BYTES = 1 << 26
"""Bytes of each array that is copied to measure the bandwidth: beyond the caches of the CPUs of `cpu_models`."""


@dataclass(frozen=True)
class Share:
    """A measured speed beside the limit that binds it: GFLOP/s of both, and which limit that is."""

    gflops_per_s: float
    limit_gflops_per_s: float
    of_memory: bool
    source: str

    @property
    def share(self) -> float:
        """Part of the limit that is reached; above 1 where the limit is not one of this run."""
        return self.gflops_per_s / self.limit_gflops_per_s

    def __str__(self) -> str:
        which = "memory allows" if self.of_memory else "arithmetic allows"
        text = f"{self.share:.1%} of the {self.limit_gflops_per_s:.4g} GFLOP/s that {which} ({self.source})"
        return f"{text}; {self.why_above}" if self.share > 1 else text

    @property
    def why_above(self) -> str:
        """The reason why the share may be above 1, of which nothing is said where it is not."""
        if self.share <= 1:
            return ""
        if self.of_memory:
            return "above 100%, as caches keep inputs and outputs from run to run and are faster than memory"
        return (
            "above 100%, as operations are counted as they were written and fewer are left, or the clock was higher "
            "than at the limit's"
        )


@dataclass(frozen=True)
class Limits:
    """Peak GFLOP/s by element type, peak GB/s, and where the figures are from."""

    gflops_per_s: Mapping[str, float]
    gbytes_per_s: float
    source: str

    def peak(self, dtype: str | None) -> float | None:
        """Peak GFLOP/s of arithmetic on an element type; None where it is not known."""
        return None if dtype is None else self.gflops_per_s.get(dtype)

    def reachable(self, flop_per_byte: float, dtype: str | None) -> float | None:
        """The most GFLOP/s at an arithmetic intensity; None where the peak of the element type is not known."""
        peak = self.peak(dtype)
        return None if peak is None else min(peak, self.gbytes_per_s * flop_per_byte)

    def share(self, flop: float, moved_bytes: float, time_s: float, dtype: str | None) -> Share | None:
        """The speed of a run that moves bytes in a time beside the limit that binds it; None where that is not known.

        Williams, Waterman, Patterson: Roofline (2009).
        """
        peak = self.peak(dtype)
        if peak is None or not flop or not moved_bytes:
            return None
        of_memory = self.gbytes_per_s * flop / moved_bytes
        return Share(flop / time_s / 1e9, min(peak, of_memory), of_memory < peak, self.source)

    def as_json(self) -> dict[str, Any]:
        """The limits as the field `limits` of a record."""
        peaks = {dtype: float(f"{value:.4g}") for dtype, value in sorted(self.gflops_per_s.items())}
        return {"gflops_per_s": peaks, "gbytes_per_s": float(f"{self.gbytes_per_s:.4g}"), "source": self.source}

    @staticmethod
    def from_json(kept: Mapping[str, Any]) -> Limits | None:
        """The limits that a record keeps; None where it keeps none, or they are damaged."""
        match kept:
            case {"gflops_per_s": dict(peaks), "gbytes_per_s": int() | float() as bandwidth, "source": str(source)}:
                known = {str(dtype): float(v) for dtype, v in peaks.items() if isinstance(v, int | float) and v > 0}
                return Limits(known, float(bandwidth), source) if bandwidth > 0 else None
        return None


_HALF_TENSOR = ("float16", "bfloat16")


def _data_sheet(gbytes_per_s: float, float32: float, source: str, half: float = 0, float64: float = 0) -> Limits:
    peaks = {"float32": float32, "float64": float64, **dict.fromkeys(_HALF_TENSOR, half)}
    return Limits({dtype: peak for dtype, peak in peaks.items() if peak}, gbytes_per_s, source)


_DATA_SHEETS = {
    # NVIDIA H200 Tensor Core GPU data sheet (SXM): FP64, FP32, FP16 on tensor cores without sparsity, bandwidth.
    "h200": _data_sheet(4_800, 67_000, "NVIDIA's data sheet", half=989_500, float64=34_000),
    # NVIDIA H100 Tensor Core GPU data sheet (SXM).
    "h100": _data_sheet(3_350, 67_000, "NVIDIA's data sheet", half=989_500, float64=34_000),
    # NVIDIA A100 Tensor Core GPU data sheet (80 GB SXM).
    "a100": _data_sheet(2_039, 19_500, "NVIDIA's data sheet", half=312_000, float64=9_700),
    # NVIDIA Ada GPU Architecture (white paper, appendix A).
    "rtx4090": _data_sheet(1_008, 82_600, "NVIDIA's white paper"),
    # NVIDIA GeForce GTX 1080 Ti product page: 3584 cores at 1582 MHz, 11 Gbit/s on 352 bits.
    "gtx1080ti": _data_sheet(484, 11_340, "NVIDIA's product page"),
}


def limits_of(target: str | Target, measure: Iterable[str] = ()) -> Limits | None:
    """The limits of a target: by its model, or of this machine's CPU where the target is it.

    The CPU's are measured for the element types in `measure` that have a fused multiply-add of their own, on the
    target's cores, which takes some tenths of a second and wants a machine where nothing else runs; not without any.
    None where limits are not known.
    """
    try:
        parsed = target if isinstance(target, Target) else parse_target(target)
    except ValueError:
        return None
    if parsed.kind == "llvm":
        return _measured(parsed, sorted(set(measure) & set(MEASURED_TYPES)))
    return _DATA_SHEETS.get(parsed.model)


def why_unknown(target: str) -> str:
    """The reason why there are no limits of a target, as a sentence."""
    try:
        parsed = parse_target(target)
    except ValueError:
        return f"What '{target}' allows at most is not known."
    if parsed.kind == "llvm":
        what = f"What {parsed.model or 'this CPU'} allows at most was not measured"
        return (
            f"{what}: loopwright tune keeps it in its records, and a report made on that machine measures it, unless "
            "it is made without measuring."
        )
    what = f"What {parsed.kind} device {parsed.model or 'of no name'} allows at most is not known"
    return f"{what}, so there is no roofline to place it under: data sheets are at hand for {', '.join(_DATA_SHEETS)}."


def _measured(target: Target, dtypes: list[str]) -> Limits | None:
    host = host_target()
    if (target.model, target.vector_bytes) != (host.model, host.vector_bytes) or target.cores > host.cores:
        return None
    if not dtypes:
        return None
    source = f"measured on {target.cores} thread{'s' if target.cores > 1 else ''}"
    peaks = {dtype: peak_gflops_per_s(target, dtype) for dtype in dtypes}
    return Limits(peaks, copy_gbytes_per_s(target, _COPIED_BYTES), source)
