"""The features of a nest: one number for each column of the catalogue, or one expression for a whole population."""

from __future__ import annotations

from ...dialects.loop_notes import PIPELINE_STAGES
from ...dialects.multiprocessor import multiprocessor_of
from ...dialects.target import LINE_BYTES, WARP
from ...passes.analysis.matrix_product import TENSORIZE
from ...passes.parametric.nest import KINDS, Loop, Nest, Stage
from ...passes.parametric.sizes import (
    Size,
    ceil_div,
    equal,
    less,
    log2,
    maximum,
    minimum,
    negated,
    product,
    total,
    where,
)
from .catalogue import LEVELS, SLOTS, TILE, names
from .lanes import bank_conflicts, sectors, vector_step, vector_width
from .machine import SECTOR_BYTES, machine_of
from .movement import Movement
from .occupancy import KernelLaunch, launch_of
from .roofline import Bounds, body_requests, bounds_of, traffic, unique_bytes
from .view import NestView, StageView

Values = dict[str, Size]


def features_of(nest: Nest) -> list[Size]:
    """One size for each name of `catalogue.names()`, in that order."""
    return features_of_view(NestView(nest))


def features_of_view(view: NestView) -> list[Size]:
    """The same from a view of a nest."""
    launches = {kernel: launch_of(view, kernel) for kernel in view.kernels}
    bounds = [bounds_of(view, v, launches[v.kernel]) for v in view.stages]
    candidates = _main_candidates(view)
    work = useful_operations(view)
    ideal_s = ideal_seconds(view)
    each = [_main(view, v, launches[v.kernel], work) | _loops(v) | _slots(view, v, work) for v in candidates]
    longest = [{"bound.main": _ratio(bounds[v.number].longest_s, ideal_s)} for v in candidates]
    found = _of_largest(candidates, [a | b for a, b in zip(each, longest, strict=True)])
    chosen = _largest(candidates)
    others = {v.number: negated(c) for v, c in zip(candidates, chosen, strict=True)}
    found |= _program(view, launches, work) | _copies(view, work) | _others(view, others, work)
    found |= _bounds(view, bounds, ideal_s)
    return [found[name] for name in names()]


def useful_operations(view: NestView) -> Size:
    """The arithmetic that the workload asks for, without tails and recomputation; without any, the elements moved."""
    computing = [v.points * v.operations for v in view.stages if v.stage.arithmetic]
    return maximum(1, total(computing or [v.points for v in view.stages]))


def ideal_seconds(view: NestView) -> Size:
    """The time of just that, with all cores busy and all vectors full."""
    machine = machine_of(view.target)
    return useful_operations(view) / (machine.operations_per_cycle * machine.clock_hz * machine.cores)


def _slog(value: Size) -> Size:
    return log2(1 + value)


def _ratio(a: Size, b: Size) -> Size:
    return log2(maximum(1e-12, a) / maximum(1e-12, b))


# -- the main stage -------------------------------------------------------------------------------------------------


def _main_candidates(view: NestView) -> list[StageView]:
    """Return the candidates for the main stage: reductions with arithmetic, else stages with arithmetic, else all."""
    computing = [v for v in view.stages if v.stage.arithmetic]
    reducing = [v for v in computing if v.stage.is_reduction]
    return reducing or computing or view.stages


def _work(view: StageView) -> Size:
    return view.iterations * max(1.0, view.operations)


def _largest(candidates: list[StageView]) -> list[Size]:
    """1 for the candidate with the most work (the first of equals), 0 for the others."""
    works = [_work(v) for v in candidates]
    most = maximum(*works)
    chosen: list[Size] = []
    free: Size = 1
    for work in works:
        own = free * negated(less(work, most))
        chosen.append(own)
        free = free * negated(own)
    return chosen


def _of_largest(candidates: list[StageView], each: list[Values]) -> Values:
    """The values of the candidate with the most work."""
    result = dict(each[-1])
    for condition, values in list(zip(_largest(candidates), each, strict=True))[-2::-1]:
        result = {name: where(condition, values[name], result[name]) for name in result}
    return result


def _main(nest: NestView, view: StageView, launch: KernelLaunch, work: Size) -> Values:
    operations = max(1.0, view.operations)
    code = view.body_iterations * operations
    body = view.body_footprints
    reads = body[len(view.stage.writes) :]
    requests = total([body_requests(view, m) for m in view.movements if m.access.buffer.scope != "local"])
    thread_bytes = total([view.footprint(m, *_THREAD).size_bytes for m in view.movements])
    block_bytes = total([view.footprint(m, *_BLOCK).size_bytes for m in view.movements])
    per_block = view.iterations / view.tasks * operations
    lane_bytes = view.lanes * view.movements[0].element_bytes
    values: Values = {
        "iterations": _ratio(view.iterations, work),
        "waste": log2(view.iterations / view.points),
        "tasks": _slog(view.tasks),
        "threads": _slog(view.threads),
        "virtual_threads": _slog(view.extent_of("vthread")),
        "lanes": _slog(view.lanes),
        "lane_bytes": log2(lane_bytes / max(1, nest.target.vector_bytes)),
        "unrolled": _slog(view.extent_of("unrolled")),
        "serial": _slog(view.per_thread),
        "code": _slog(code),
        "unroll_step": _slog(_largest_note(view.stage, "auto_unroll_max_step", 0)),
        "pipeline_stages": _largest_note(view.stage, PIPELINE_STAGES, 1),
        "matrix_unit": _slog(_largest_note(view.stage, TENSORIZE, 0)),
        "accumulators": _slog(body[0].elements),
        "reduce_inside": _slog(_reduced(view, view.body)),
        "reduce_outside": _slog(_reduced(view, view.loops_of("serial"))),
        "operands_per_operation": _ratio(total([f.elements for f in reads]), code),
        "requests_per_operation": _ratio(requests, code),
        "intensity_thread": _ratio(per_block / view.threads, thread_bytes),
        "intensity_block": _ratio(per_block, block_bytes),
        "l1_bytes": _ratio(traffic(view, nest.target.l1_bytes), work),
        "l2_bytes": _ratio(traffic(view, nest.target.l2_bytes), work),
        "tile_in_l1": _ratio(_tile_bytes(view), nest.target.l1_bytes),
        "block_in_l2": _ratio(block_bytes, nest.target.l2_bytes),
        **_launched(nest, launch),
    }
    for kind in KINDS:
        values[f"operations.{kind}"] = view.iterations * view.stage.arithmetic.get(kind, 0) / work
    return {f"main.{name}": value for name, value in values.items()}


def _launched(nest: NestView, launch: KernelLaunch) -> Values:
    """The share of cores or multiprocessors that the launch has, and what it takes of each."""
    gpu = nest.target.is_gpu
    places = machine_of(nest.target).cores * launch.resident
    available = multiprocessor_of(nest.target).registers_per_thread if gpu else nest.target.vector_registers
    return {
        "balance": launch.blocks / (ceil_div(launch.blocks, places) * places),
        "waves": _slog(launch.waves),
        "registers": _slog(launch.registers),
        "spilled": _slog(maximum(0, launch.registers - available)),
        "shared_bytes": _slog(launch.shared_bytes),
        "resident_blocks": _slog(launch.resident),
        "occupancy": launch.occupancy if gpu else 0,
        "warps": _slog(launch.warps) if gpu else 0,
        "idle_lanes": 1 - launch.threads / (ceil_div(launch.threads, WARP) * WARP) if gpu else 0,
    }


_THREAD = ("serial", "unrolled", "lane", "vthread")
_BLOCK = (*_THREAD, "thread")


def _largest_note(stage: Stage, note: str, least: Size) -> Size:
    return maximum(least, *(x.notes[note] for x in stage.loops if note in x.notes))


def _reduced(view: StageView, loops: list[Loop]) -> Size:
    reducing = view.stage.loop_names(reduce=True)
    return product([x.extent for x in loops if x.name in reducing])


def _tile_bytes(view: StageView) -> Size:
    """Bytes touched in the innermost loop that is not part of the straight-line code."""
    result: Size = 0
    found: Size = 0
    touched: Size = total([m.element_bytes for m in view.movements])
    for loop, together in view.touched:
        touched = together
        if loop in view.body:
            continue
        is_it = negated(found) * less(1, loop.extent)
        result = where(is_it, touched, result)
        found = maximum(found, is_it)
    return where(found, result, touched)


# -- its loops -----------------------------------------------------------------------------------------------------


def _loops(view: StageView) -> Values:
    """The loops one by one, from the innermost outwards, whether they have more than one iteration or not."""
    reducing = view.stage.loop_names(reduce=True)
    body = set(view.body)
    outside = [(loop, touched) for loop, touched in view.touched if loop not in body]
    values: Values = {}
    for level in range(LEVELS):
        loop, touched = outside[level] if level < len(outside) else (None, 0)
        values[f"extent{level}"] = _slog(loop.extent if loop is not None else 1)
        values[f"reduces{level}"] = float(loop is not None and loop.name in reducing)
        values[f"bytes{level}"] = _slog(touched)
    tiles = view.loops_of("unrolled")[::-1]
    for level in range(TILE):
        values[f"tile{level}"] = _slog(tiles[level].extent if level < len(tiles) else 1)
    return {f"main.loop.{name}": value for name, value in values.items()}


# -- its accesses ---------------------------------------------------------------------------------------------------


def _slots(nest: NestView, view: StageView, work: Size) -> Values:
    movements: list[Movement | None] = [view.writes[0], *view.loads[: len(SLOTS) - 1]]
    movements += [None] * (len(SLOTS) - len(movements))
    found: Values = {}
    for slot, movement in zip(SLOTS, movements, strict=True):
        values = _access(nest, view, movement, work) if movement is not None else dict.fromkeys(_NO_ACCESS, 0)
        found |= {f"main.{slot}.{name}": value for name, value in values.items()}
    return found


_NO_ACCESS = tuple(n.removeprefix("main.write.") for n in names() if n.startswith("main.write."))


def _access(nest: NestView, view: StageView, movement: Movement, work: Size) -> Values:
    buffer = movement.access.buffer
    size = buffer.element_bytes
    whole = view.footprint(movement, *_BLOCK, "block", "parallel")
    stride = _innermost_step(view, movement)
    reuse = _reuse(view, movement)
    step = vector_step(view, movement)
    has_lanes = less(1, view.lanes)
    on_gpu = nest.target.is_gpu
    return {
        "bytes": _ratio(view.iterations * size, work),
        "unique_bytes": _ratio(whole.size_bytes, work),
        "lines": _ratio(maximum(1, view.iterations * minimum(1, stride * size / LINE_BYTES)), work),
        "unique_lines": _ratio(whole.lines(LINE_BYTES), work),
        "stride": _slog(stride),
        "reused": reuse["found"],
        "reuse_count": _slog(reuse["count"]),
        "reuse_iterations": _slog(reuse["iterations"]),
        "reuse_bytes": _slog(reuse["bytes"]),
        "code_elements": _slog(view.body_footprints[view.movements.index(movement)].elements),
        "code_requests": _slog(body_requests(view, movement)),
        "contiguous": equal(step, 1) * has_lanes,
        "broadcast": equal(step, 0) * has_lanes,
        "thread_bytes": _slog(view.footprint(movement, *_THREAD).size_bytes),
        "block_bytes": _slog(view.footprint(movement, *_BLOCK).size_bytes),
        "sectors": _slog(sectors(view, movement)) if on_gpu and buffer.scope == "global" else 0,
        "bank_conflicts": log2(bank_conflicts(view, movement)) if buffer.scope == "shared" else 0,
        "is_shared": float(buffer.scope == "shared"),
        "is_local": float(buffer.scope == "local"),
    }


def _innermost_step(view: StageView, movement: Movement) -> Size:
    """The step along the innermost loop of more than one iteration."""
    result: Size = 0
    for loop in view.loops:
        result = where(less(1, loop.extent), movement.address_step(loop), result)
    return result


def _reuse(view: StageView, movement: Movement) -> Values:
    """The innermost loop that repeats an access, and what runs and is touched in one of its iterations."""
    found: Size = 0
    count: Size = 0
    iterations: Size = 0
    touched: Size = 0
    inside: Size = 1
    inner: Size = total([m.element_bytes for m in view.movements])
    for loop, together in view.touched:
        repeats = negated(found) * negated(movement.moved(loop)) * less(1, loop.extent)
        count = where(repeats, loop.extent, count)
        iterations = where(repeats, inside, iterations)
        touched = where(repeats, inner, touched)
        found = maximum(found, repeats)
        inside = inside * loop.extent
        inner = together
    return {"found": found, "count": count, "iterations": iterations, "bytes": touched}


# -- the rest -------------------------------------------------------------------------------------------------------


def _global_bytes(views: list[StageView]) -> Size:
    return total([unique_bytes(v, m) for v in views for m in v.movements if m.access.buffer.scope == "global"])


def _requested(nest: NestView, view: StageView, movement: Movement) -> Size:
    """Bytes that an access asks of memory that is not local or shared, in whole sectors on a GPU."""
    if movement.access.buffer.scope != "global":
        return 0
    requests = view.trips * body_requests(view, movement)
    if nest.target.is_gpu and view.loops_of("thread"):
        return requests / WARP * sectors(view, movement) * SECTOR_BYTES
    return requests * vector_width(view, movement) * movement.element_bytes


def _program(view: NestView, launches: dict[Loop | Stage, KernelLaunch], work: Size) -> Values:
    operations = total([v.iterations * v.operations for v in view.stages])
    touched = _global_bytes(view.stages)
    between = [b for b in view.kept if b.scope == "global"]
    values: Values = {
        "stages": _slog(len(view.stages)),
        "kernels": _slog(view.launches),
        "work": _slog(work),
        "operations": _ratio(operations, work),
        "iterations": _ratio(total([v.iterations for v in view.stages]), work),
        "global_bytes": _ratio(touched, work),
        "near_bytes": _ratio(total([_requested(view, v, m) for v in view.stages for m in v.movements]), work),
        "waste": _most_waste(view.stages),
        "shared_bytes": _slog(maximum(0, *(x.shared_bytes for x in launches.values()))),
        "kept_bytes": _slog(total([view.bytes_kept(b) for b in between])),
    }
    return {f"program.{name}": value for name, value in values.items()}


def _most_waste(views: list[StageView]) -> Size:
    return log2(maximum(1e-9, *(v.iterations / v.points for v in views)))


def _copies(nest: NestView, work: Size) -> Values:
    views = [v for v in nest.stages if not v.stage.arithmetic]
    if not views:
        return {f"copies.{n.split('.')[1]}": 0 for n in names() if n.startswith("copies.")}
    pairs = [(v, m) for v in views for m in v.movements]
    far = [sectors(v, m) for v, m in pairs if m.access.buffer.scope == "global"] if nest.target.is_gpu else []
    near = [bank_conflicts(v, m) for v, m in pairs if m.access.buffer.scope == "shared"]
    iterations = total([v.iterations for v in views])
    values: Values = {
        "iterations": iterations / work,
        "bytes": total([_requested(nest, v, m) for v in views for m in v.loads]) / work,
        "waste": _most_waste(views),
        "per_thread": _slog(maximum(1, *(v.per_thread for v in views))),
        "lanes": _slog(minimum(1 << 30, *(v.lanes for v in views))),
        "sectors": _slog(maximum(0, *far)),
        "bank_conflicts": log2(maximum(1, *near)),
    }
    return {f"copies.{name}": value for name, value in values.items()}


def _others(nest: NestView, is_other: dict[int, Size], work: Size) -> Values:
    """Stages with arithmetic that are not the main one; `is_other` of those of which that depends on decisions."""
    views = [(v, is_other.get(v.number, 1)) for v in nest.stages if v.stage.arithmetic]
    values: Values = {
        "iterations": total([c * v.iterations for v, c in views]) / work,
        "operations": total([c * v.iterations * v.operations for v, c in views]) / work,
        "waste": maximum(0, *(c * log2(v.iterations / v.points) for v, c in views)),
        "tasks": _slog(minimum(1 << 30, *(where(c, v.tasks, 1 << 30) for v, c in views))),
        "lanes": _slog(minimum(1 << 30, *(where(c, v.lanes, 1 << 30) for v, c in views))),
        "global_bytes": total([c * _global_bytes([v]) for v, c in views]) / work,
    }
    return {f"others.{name}": value for name, value in values.items()}


def _bounds(view: NestView, bounds: list[Bounds], ideal_s: Size) -> Values:
    launch = machine_of(view.target).launch_s * view.launches
    values: Values = {
        "arithmetic": total([b.arithmetic_s for b in bounds]),
        "issue": total([b.issue_s for b in bounds]),
        "far": total([b.far_s for b in bounds]),
        "near": total([b.near_s for b in bounds]),
        "inner": total([b.inner_s for b in bounds]),
        "latency": total([b.latency_s for b in bounds]),
        "total": total([b.longest_s for b in bounds]) + launch,
    }
    return {f"bound.{name}": _ratio(value, ideal_s) for name, value in values.items()}
