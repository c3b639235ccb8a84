"""Peaks of this CPU: fused multiply-adds in registers, and copying memory; both through our own backend."""

from __future__ import annotations

import numpy as np
from xdsl.parser import Parser

from ...dialects.element import FLOAT32_BYTES
from ...dialects.target import Target
from ..build import build
from ..context import create_context
from ..kernel_function import Kernel
from .host import host_target

_ELEMENTS = {"float32": ("f32", 4), "float64": ("f64", 8)}
MEASURED_TYPES = tuple(_ELEMENTS)
"""Element types whose peak can be measured."""

_FMA_STEPS = 4096
_ACCUMULATOR_SHARE = 3 / 4
"""Part of the vector registers that hold accumulators: enough to cover the latency of any FMA unit."""


def peak_gflops_per_s(target: Target | None = None, dtype: str = "float32", seconds: float = 0.2) -> float:
    """Return the most GFLOP/s that FMA instructions reach on the target's cores, the best of several rounds."""
    target = target or host_target()
    element, size = _ELEMENTS[dtype]
    lanes, chains = max(2, target.vector_bytes // size), int(target.vector_registers * _ACCUMULATOR_SHARE)
    kernel = _build(_fma_text(element, lanes, chains, target.cores), target)
    flops = 2.0 * lanes * chains * _FMA_STEPS * target.cores
    result = kernel.benchmark(min_repeat_ms=seconds * 1e3 / 10, repeat=10)
    return flops / result.min / 1e9


def copy_gbytes_per_s(target: Target | None = None, array_bytes: int = 1 << 28, seconds: float = 0.5) -> float:
    """Return the GB/s, reads and writes together, at which arrays beyond the caches are copied."""
    target = target or host_target()
    lanes = max(4, target.vector_bytes // FLOAT32_BYTES)
    rows = 64 * target.cores
    columns = array_bytes // (FLOAT32_BYTES * rows * lanes * 4) * lanes * 4
    kernel = _build(_copy_text(rows, columns, lanes), target)
    source = np.ones((rows, columns), np.float32)
    result = kernel.benchmark(source, np.zeros_like(source), min_repeat_ms=seconds * 1e3 / 5, repeat=5)
    return 2.0 * source.nbytes / result.min / 1e9


def _build(text: str, target: Target) -> Kernel:
    """Compile for this CPU, on as many threads and with vectors as long as a target of any kind says."""
    here = Target(cores=target.cores, vector_bytes=target.vector_bytes)
    return build(Parser(create_context(), text).parse_module(), here)


def _fma_text(element: str, lanes: int, chains: int, threads: int) -> str:
    """Chains x = x * a + b that depend on nothing but themselves, on each thread."""
    vector = f"vector<{lanes}x{element}>"
    source = f"memref<2x{element}>"
    out = f"memref<{threads}x{chains * lanes}x{element}>"
    local = f'memref<{chains * lanes}x{element}, "local">'
    load = [f"%x{c} = lw_kernel.load %acc[%zero + {c * lanes}] : {local} -> {vector}" for c in range(chains)]
    fma = [f"%y{c} = math.fma %x{c}, %a, %b : {vector}" for c in range(chains)]
    store = [f"lw_kernel.store %y{c}, %acc[%zero + {c * lanes}] : {vector}, {local}" for c in range(chains)]
    start = [f"lw_kernel.store %b, %acc[%zero + {c * lanes}] : {vector}, {local}" for c in range(chains)]
    end = [f"lw_kernel.load %acc[%zero + {c * lanes}] : {local} -> {vector}" for c in range(chains)]
    lines = [
        f'func.func @peak(%in : {source} {{lw.name = "in"}}, %out : {out} {{lw.name = "out", lw.output}}) {{',
        *("%zero = arith.constant 0 : index", "%one = arith.constant 1 : index"),
        *(f"%steps = arith.constant {_FMA_STEPS} : index", f"%row = arith.constant {chains * lanes} : index"),
        f"lw_kernel.parallel %thread in {threads} {{",
        f'%acc = lw_kernel.alloc "acc" : {local}',
        f"%a0 = lw_kernel.load %in[%zero] : {source} -> {element}",
        f"%b0 = lw_kernel.load %in[%zero + 1] : {source} -> {element}",
        f"%a = vector.broadcast %a0 : {element} to {vector}",
        f"%b = vector.broadcast %b0 : {element} to {vector}",
        *start,
        "scf.for %i = %zero to %steps step %one {",
        *(line for chain in zip(load, fma, store, strict=True) for line in chain),
        *("}", "%at = arith.muli %thread, %row : index"),
        *(f"%e{c} = {text}" for c, text in enumerate(end)),
        *(f"lw_kernel.store %e{c}, %out[%at + {c * lanes}] : {vector}, {out}" for c in range(chains)),
        *("}", "func.return", "}"),
    ]
    return "\n".join(lines)


def _copy_text(rows: int, columns: int, lanes: int) -> str:
    array, vector = f"memref<{rows}x{columns}xf32>", f"vector<{lanes}xf32>"
    lines = [
        f'func.func @copy(%in : {array} {{lw.name = "in"}}, %out : {array} {{lw.name = "out", lw.output}}) {{',
        *("%zero = arith.constant 0 : index", f"%step = arith.constant {4 * lanes} : index"),
        f"%row = arith.constant {columns} : index",
        f"lw_kernel.parallel %r in {rows} {{",
        *("%start = arith.muli %r, %row : index", "scf.for %c = %zero to %row step %step {"),
        "%at = arith.addi %start, %c : index",
        *(f"%v{u} = lw_kernel.load %in[%at + {u * lanes}] : {array} -> {vector}" for u in range(4)),
        *(f"lw_kernel.store %v{u}, %out[%at + {u * lanes}] : {vector}, {array}" for u in range(4)),
        *("}", "}", "func.return", "}"),
    ]
    return "\n".join(lines)
