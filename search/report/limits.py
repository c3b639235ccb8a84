"""Limits of a device: float32 arithmetic without matrix units, and bandwidth of its memory."""

from __future__ import annotations

from dataclasses import dataclass

from ...backends.llvm.host import host_target
from ...backends.llvm.peak import copy_gbytes_per_s, peak_gflops_per_s
from ...dialects.target import Target, parse_target


@dataclass(frozen=True)
class Limits:
    """Peak GFLOP/s, peak GB/s, and where the two figures are from."""

    gflops_per_s: float
    gbytes_per_s: float
    source: str

    def reachable(self, flop_per_byte: float) -> float:
        """The most GFLOP/s at an arithmetic intensity."""
        return min(self.gflops_per_s, self.gbytes_per_s * flop_per_byte)


_DATA_SHEETS = {
    # NVIDIA H200 Tensor Core GPU data sheet (SXM): FP32, memory bandwidth.
    "h200": Limits(67_000, 4_800, "NVIDIA's data sheet, float32"),
    # NVIDIA H100 Tensor Core GPU data sheet (SXM).
    "h100": Limits(67_000, 3_350, "NVIDIA's data sheet, float32"),
    # NVIDIA A100 Tensor Core GPU data sheet (80 GB SXM).
    "a100": Limits(19_500, 2_039, "NVIDIA's data sheet, float32"),
    # NVIDIA Ada GPU Architecture (white paper, appendix A).
    "rtx4090": Limits(82_600, 1_008, "NVIDIA's white paper, float32"),
    # NVIDIA GeForce GTX 1080 Ti product page: 3584 cores at 1582 MHz, 11 Gbit/s on 352 bits.
    "gtx1080ti": Limits(11_340, 484, "NVIDIA's product page, float32"),
}


def limits_of(target: str, measure: bool = False) -> Limits | None:
    """The limits of a target: by its model, or, with `measure`, of this machine where the target is its CPU.

    None where neither is known.
    """
    try:
        parsed = parse_target(target)
    except ValueError:
        return None
    if parsed.kind == "llvm":
        return _measured(parsed) if measure else None
    return _DATA_SHEETS.get(parsed.model)


def why_unknown(target: str) -> str:
    """Why there are no limits of a target, as a sentence."""
    try:
        parsed = parse_target(target)
    except ValueError:
        return f"What '{target}' allows at most is not known."
    if parsed.kind == "llvm":
        what = f"What {parsed.model or 'this CPU'} allows at most was not measured"
        return f"{what}: a report made on that machine does so, unless it is made without measuring."
    what = f"What {parsed.kind} device {parsed.model or 'of no name'} allows at most is not known"
    return f"{what}, so there is no roofline to place it under: data sheets are at hand for {', '.join(_DATA_SHEETS)}."


def _measured(target: Target) -> Limits | None:
    host = host_target()
    if (target.model, target.vector_bytes) != (host.model, host.vector_bytes) or target.cores > host.cores:
        return None
    source = "measured on this machine when the report was made, float32"
    return Limits(peak_gflops_per_s(target), copy_gbytes_per_s(target, 1 << 26), source)
