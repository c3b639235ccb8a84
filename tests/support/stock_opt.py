"""Stock `xdsl-opt` in this process: a schedule's text as its pass pipeline."""

from __future__ import annotations

import io
from functools import cache

from xdsl.xdsl_opt_main import xDSLOptMain


@cache
def _opt() -> xDSLOptMain:
    """The command as installed; what it knows comes from the entry points of installed packages."""
    return xDSLOptMain(args=[])


def replayed(program: str, pipeline: str) -> str:
    """Return what `xdsl-opt -p <pipeline>` prints for a program; it verifies the IR before and after each pass."""
    opt = _opt()
    opt.args.passes = pipeline
    opt.setup_pipeline()
    module = opt.parse_chunk(io.BytesIO(program.encode()), "mlir")
    assert module is not None
    opt.apply_passes(module)
    return opt.output_resulting_program(module)
