"""Rough seconds that a candidate takes to be built, by the code that its loops become."""

from __future__ import annotations

from ...passes.parametric.nest import Nest
from ...passes.parametric.sizes import Size
from ...passes.parametric.usage import written_out

BUILD_S, STATEMENT_S = 0.25, 0.53e-3
"""Seconds of a candidate without any code, and of each statement with arithmetic that is written out. Fitted to
733 candidates of seven products and convolutions, built by NVRTC 13 in six processes at once (a Xeon at 2.1 GHz): rank
correlation 0.69, and 0.32 to 0.85 of one workload's. Only their ratio counts where candidates are compared; that of
another machine's is what `benchmarks/nvrtc_time.py` prints."""


def build_seconds(nest: Nest) -> Size | None:
    """Seconds until a candidate is compiled; None for a target whose compiler nobody has fitted."""
    return BUILD_S + STATEMENT_S * written_out(nest) if nest.target.kind == "cuda" else None
