"""Tiling for GPUs, shared by templates: blocks, virtual threads, threads and elements; operands in shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..computation import Computation
from ..dialects.target import Target
from ..schedule import Schedule
from ..search.template.config import Config

AXES = "zyx"
UNROLL_STEPS = (0, 64, 512, 1500)
"""Choices of `auto_unroll_max_step`; 0 and 1500 are those of the classic templates (AutoTVM's tutorials)."""
PARTS = (1, 2, 4, 8, 16, 32)
"""Parts of a reduction, each on blocks of its own, of four steps or more. A choice: powers of two up to the threads of
a warp."""


def tiled(
    cfg: Config, made: Computation, spatial: Sequence[str], reduce: Sequence[str], outer: Sequence[str]
) -> Schedule:
    """The schedule of an operator and what is fused around it: knobs `tile_<loop>` for its loops, how far to unroll,
    and `parts` that the first of the `reduce` loops is divided into, each for blocks of its own.

    Up to three `spatial` loops, in four parts each, go to the axes of blocks and threads, the last one to x; `outer`
    loops go to the blocks of the first one. `reduce` loops have two parts. Operands are in shared memory; a thread adds
    up in registers and writes at the end.
    """
    sch, block, loops = made.sch, made.block, made.loops
    _define_knobs(cfg, loops, spatial, reduce)
    around = [loops[name] for name in outer]
    if cfg["parts"].val > 1:
        block, loops[reduce[0]] = split_among_blocks(made, cfg.target, loops[reduce[0]], cfg["parts"].val)
        around.insert(0, sch.get_loops(block)[0])
    out = made.write_back(block)
    copies = [sch.cache_read(block, name, "shared") for name in made.operands]
    made.inline_pads()
    axes = AXES[3 - len(spatial) :]
    parts = [cfg[f"tile_{name}"].apply(sch, block, loops[name]) for name in spatial]
    steps = [sch.split(block, loops[name], [None, cfg[f"tile_{name}"].size[1]]) for name in reduce]
    blocks, virtual, threads, inner = ([p[i] for p in parts] for i in range(4))
    outer_steps, inner_steps = ([s[i] for s in steps] for i in range(2))
    sch.reorder(block, *around, *blocks, *virtual, *threads, *outer_steps, *inner_steps, *inner)
    if around:
        blocks[0] = sch.fuse(block, *around, blocks[0])
    for loop, axis in zip(blocks, axes, strict=True):
        sch.bind(block, loop, f"blockIdx.{axis}")
    for loop in virtual:
        sch.bind(block, loop, "vthread")
    for loop, axis in zip(threads, axes, strict=True):
        sch.bind(block, loop, f"threadIdx.{axis}")
    sch.reverse_compute_at(out, threads[-1])
    counts = [cfg[f"tile_{name}"].size[2] for name in spatial]
    for copy in copies:
        fetch_together(sch, copy, outer_steps[-1], counts, axes)
    spread_over_threads(sch, made.behind, cfg.target)
    step, explicit = cfg["auto_unroll_max_step"].val, cfg["unroll_explicit"].val
    sch.pragma(block, blocks[0], auto_unroll_max_step=step, unroll_explicit=explicit)
    return sch


def _define_knobs(cfg: Config, loops: Mapping[str, Any], spatial: Sequence[str], reduce: Sequence[str]) -> None:
    """Define the knobs of `tiled`, and what they are without a record."""
    for name in spatial:
        cfg.define_split(f"tile_{name}", loops[name], num_outputs=4)
    for name in reduce:
        cfg.define_split(f"tile_{name}", loops[name], num_outputs=2)
    cfg.define_knob("auto_unroll_max_step", list(UNROLL_STEPS))
    cfg.define_knob("unroll_explicit", [0, 1])
    extent = loops[reduce[0]].extent
    cfg.define_knob("parts", [n for n in PARTS if n == 1 or (extent % n == 0 and extent >= 4 * n)])
    if cfg.is_fallback:
        _pick_fallback(cfg, spatial, reduce)


def fetch_together(sch: Schedule, copy: str, at: Any, counts: Sequence[int], axes: str) -> None:
    """Fetch cooperatively: fill a shared buffer at a loop with all threads of the block, `counts` along `axes`."""
    before = {str(loop) for loop in sch.get_loops(copy)}
    sch.compute_at(copy, at, unit_loops=True)
    path = sch.get_loops(copy)
    own = path[len(path) - len(before) :]
    fused = sch.fuse(copy, *own) if len(own) > 1 else own[0]
    _, *threads = sch.split(copy, fused, [None, *counts])
    for loop, axis in zip(threads, axes, strict=True):
        sch.bind(copy, loop, f"threadIdx.{axis}")


def spread_over_threads(sch: Schedule, blocks: Sequence[str], target: Target | None) -> None:
    """Let each thread compute one element of a block that has no loops over threads yet, in a kernel of its own."""
    for block in blocks:
        around, thread = sch.split(block, sch.fuse(block, *sch.get_loops(block)), [None, _threads(target)])
        sch.bind(block, around, "blockIdx.x")
        sch.bind(block, thread, "threadIdx.x")


def _threads(target: Target | None) -> int:
    """Threads of a block that computes element by element."""
    return min(128, (target.max_threads_per_block if target else 0) or 128)


def split_among_blocks(made: Computation, target: Target | None, loop: Any, parts: Any) -> tuple[str, Any]:
    """Split a reduction among thread blocks (split-K); a second kernel, a thread for each result, sums the parts.

    Returns the block of the partial results and the rest of the loop.
    """
    sch, name = made.sch, made.block
    part, rest = sch.split(name, loop, [parts, None])
    spatial = [x for x in sch.get_loops(name) if str(x) not in (str(part), str(rest))]
    sch.reorder(name, part, *spatial)
    sch.rfactor(name, part)
    results = [x for x in sch.get_loops(name) if str(x) != str(part)]
    total = sch.fuse(name, *results) if len(results) > 1 else results[0]
    around, thread = sch.split(name, total, [None, _threads(target)])
    sch.reorder(name, around, thread, part)
    sch.bind(name, around, "blockIdx.x")
    sch.bind(name, thread, "threadIdx.x")
    sch.reverse_compute_at(made.write_back(name), thread)
    return f"{name}_rf", rest


def _pick_fallback(cfg: Config, spatial: Sequence[str], reduce: Sequence[str]) -> None:
    """A config without a record: a few elements a thread, up to 8 x 16 threads, and short steps of the reduction."""
    for name, (threads, inner) in zip(reversed(spatial), ((16, 2), (8, 2), (1, 2)), strict=False):
        cfg.fallback_split(f"tile_{name}", [None, 1, threads, inner])
    for name, most in zip(reduce, (8, 3, 3), strict=False):
        cfg.fallback_split(f"tile_{name}", [None, most])
    cfg["auto_unroll_max_step"] = 64
    cfg["unroll_explicit"] = 1
    cfg["parts"] = 1
