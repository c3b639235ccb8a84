"""Rough seconds that a candidate takes to be built, by the code that its loops become."""

from __future__ import annotations

from ...passes.parametric.nest import Nest
from ...passes.parametric.sizes import Size
from ...passes.parametric.usage import written_out

BUILD_S, STATEMENT_S = 0.17, 0.06e-3
"""Seconds of a candidate without any code, and of each statement with arithmetic that is written out, as most are
assembly. Fitted to 48 candidates that searches of a product and of a convolution proposed, built by NVRTC 13.0 (a core
of a Zen 5): rank correlation 0.44. Left to NVVM they took 0.14 and 0.27e-3, and 0.69 (0.25 and 0.53e-3 for 733
candidates of seven workloads on a Xeon at 2.1 GHz). Only their ratio counts where candidates are compared; that of
another machine's is what `benchmarks/nvrtc_time.py` prints."""


def build_seconds(nest: Nest) -> Size | None:
    """Seconds until a candidate is compiled; None for a target whose compiler nobody has fitted."""
    return BUILD_S + STATEMENT_S * written_out(nest) if nest.target.kind == "cuda" else None
