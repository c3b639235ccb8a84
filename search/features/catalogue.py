"""Every feature with its unit and where the idea is from: what the columns of a feature matrix are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...passes.parametric.nest import KINDS

SLOTS = ("write", "read0", "read1", "read2")
"""Accesses of the main stage with features of their own: what it writes first, and its first three reads."""

ANSOR = "Ansor"
AUTOTVM = "AutoTVM"
CUDA = "CUDA guide"
ROOFLINE = "roofline"
OWN = ""
"""No source: an idea of ours."""
SOURCES = {
    ANSOR: "per-store features of Ansor (Zheng et al., OSDI 2020)",
    AUTOTVM: "itervar features of AutoTVM (Chen et al., NeurIPS 2018)",
    CUDA: "CUDA C++ Programming Guide and Best Practices Guide",
    ROOFLINE: "lower bounds as in Williams et al., Roofline (CACM 2009)",
}
"""The sources that features name, in a line each."""


@dataclass(frozen=True)
class Feature:
    """One column: its name, its unit, what it says, and where the idea is from.

    `log` units are `log2(1 + x)`. What grows with the workload is relative to it, so that tasks compare: `/work` to the
    operations it asks for (the feature `program.work`), `/ideal` to their time with all cores and vectors full.
    """

    name: str
    unit: str
    text: str
    source: str = OWN


PROGRAM = (
    Feature("stages", "log", "blocks"),
    Feature("kernels", "log", "nests, each a kernel on a GPU"),
    Feature("work", "log", "arithmetic that the workload asks for, in additions: what others are relative to", ANSOR),
    Feature("operations", "log2/work", "arithmetic of all stages, tails and recomputation included", ANSOR),
    Feature("iterations", "log2/work", "instances of all stages", ANSOR),
    Feature("global_bytes", "log2/work", "different bytes of scope global that stages touch, stage by stage", ROOFLINE),
    Feature("near_bytes", "log2/work", "bytes that all stages ask of caches or global memory, in whole sectors", CUDA),
    Feature("waste", "log2", "largest share of instances that tails and recomputation add"),
    Feature("shared_bytes", "log bytes", "shared memory of a block, largest of all kernels", ANSOR),
    Feature("kept_bytes", "log bytes", "buffers between stages that stay in scope global", ANSOR),
)

MAIN = (
    Feature("iterations", "log2/work", "instances", ANSOR),
    Feature("waste", "log2", "instances for each point of its iterators: tails, recomputation"),
    *(Feature(f"operations.{k}", "1/work", f"arithmetic of kind {k} in all instances", ANSOR) for k in KINDS),
    Feature("tasks", "log", "blocks of threads, or iterations of parallel loops", ANSOR),
    Feature("threads", "log", "threads of a block", ANSOR),
    Feature("virtual_threads", "log", "virtual threads of a thread", ANSOR),
    Feature("lanes", "log", "elements of its vectors", ANSOR),
    Feature("lane_bytes", "log2", "bytes of its vectors as a share of the target's"),
    Feature("unrolled", "log", "copies that unrolled loops make", ANSOR),
    Feature("serial", "log", "runs of the straight-line code in one thread", AUTOTVM),
    Feature("code", "log", "arithmetic of the straight-line code: unrolled loops, lanes, virtual threads"),
    Feature("unroll_step", "log", "largest auto_unroll_max_step around it", ANSOR),
    Feature("pipeline_stages", "count", "largest number of pipeline stages around it"),
    Feature("matrix_unit", "log", "multiply-adds of the matrix instruction that computes it, 0 without", CUDA),
    Feature("accumulators", "log", "elements that one run of the straight-line code writes"),
    Feature("reduce_inside", "log", "reduction steps in the straight-line code"),
    Feature("reduce_outside", "log", "reduction steps outside of it, in one thread"),
    Feature("operands_per_operation", "log2", "elements that the straight-line code reads for each operation", AUTOTVM),
    Feature("requests_per_operation", "log2", "loads and stores of the straight-line code for each operation", CUDA),
    Feature("intensity_thread", "log2", "operations for each byte that one thread touches", ANSOR),
    Feature("intensity_block", "log2", "operations for each byte that one block or task touches", ANSOR),
    Feature("l1_bytes", "log2/work", "bytes into the first-level cache, by the outermost loop that fits it"),
    Feature("l2_bytes", "log2/work", "bytes into the second-level cache, likewise"),
    Feature("tile_in_l1", "log2", "bytes touched in the innermost loop outside of the code, as a share of the cache"),
    Feature("block_in_l2", "log2", "bytes touched by one block or task, as a share of the second-level cache"),
    Feature("balance", "share", "share of the cores' time in which they have a task", CUDA),
    Feature("waves", "log", "rounds of blocks or tasks", CUDA),
    Feature("registers", "log", "registers of a thread, estimated", CUDA),
    Feature("spilled", "log", "registers beyond what a thread can have", CUDA),
    Feature("shared_bytes", "log bytes", "shared memory of a block", CUDA),
    Feature("resident_blocks", "log", "blocks of a multiprocessor at once", CUDA),
    Feature("occupancy", "share", "resident threads of a multiprocessor as a share of the most", CUDA),
    Feature("warps", "log", "resident warps of a multiprocessor", CUDA),
    Feature("idle_lanes", "share", "share of the last warp's threads that do not exist", CUDA),
)

ACCESS = (
    Feature("bytes", "log2/work", "bytes in all instances", ANSOR),
    Feature("unique_bytes", "log2/work", "different bytes", ANSOR),
    Feature("lines", "log2/work", "cache lines in all instances, by the innermost step", ANSOR),
    Feature("unique_lines", "log2/work", "different cache lines", ANSOR),
    Feature("stride", "log", "elements from one iteration of the innermost loop to the next", ANSOR),
    Feature("reused", "0 or 1", "whether a loop around repeats it", ANSOR),
    Feature("reuse_count", "log", "iterations of the innermost loop that repeats it", ANSOR),
    Feature("reuse_iterations", "log", "instances from one use to the next", ANSOR),
    Feature("reuse_bytes", "log bytes", "bytes that the stage touches from one use to the next", ANSOR),
    Feature("code_elements", "log", "elements in one run of the straight-line code", AUTOTVM),
    Feature("code_requests", "log", "loads or stores of one run of the straight-line code", CUDA),
    Feature("contiguous", "0 or 1", "whether lanes lie side by side"),
    Feature("broadcast", "0 or 1", "whether all lanes are at one place"),
    Feature("thread_bytes", "log bytes", "bytes that one thread touches", AUTOTVM),
    Feature("block_bytes", "log bytes", "bytes that one block or task touches", ANSOR),
    Feature("sectors", "log", "32-byte sectors of one request of a warp", CUDA),
    Feature("bank_conflicts", "log2", "repetitions of one request of a warp to shared memory", CUDA),
    Feature("is_shared", "0 or 1", "whether it is to scope shared"),
    Feature("is_local", "0 or 1", "whether it is to scope local"),
)

COPIES = (
    Feature("iterations", "1/work", "instances of all stages without arithmetic"),
    Feature("bytes", "1/work", "bytes they read, in whole sectors", CUDA),
    Feature("waste", "log2", "largest share of instances that tails and recomputation add"),
    Feature("per_thread", "log", "most runs of their straight-line code in one thread", AUTOTVM),
    Feature("lanes", "log", "fewest elements of a vector"),
    Feature("sectors", "log", "most sectors of one request of a warp to global memory", CUDA),
    Feature("bank_conflicts", "log2", "most repetitions of one request of a warp to shared memory", CUDA),
)

LEVELS = 5
"""Loops outside of the straight-line code with features of their own, from the innermost outwards. A choice: the loops
of a tile around registers and caches."""
TILE = 3
"""Unrolled loops with features of their own, likewise. A choice: rows, columns and a step."""

LOOPS = (
    *(
        Feature(f"{what}{level}", unit, text.format(f"the {ordinal} loop outside of the code"), source)
        for level, ordinal in enumerate(("innermost", "second", "third", "fourth", "fifth"))
        for what, unit, text, source in (
            ("extent", "log", "iterations of {}", AUTOTVM),
            ("reduces", "0 or 1", "whether {} is over a reduce iterator", AUTOTVM),
            ("bytes", "log bytes", "bytes touched in all iterations of {}", AUTOTVM),
        )
    ),
    *(
        Feature(f"tile{level}", "log", f"iterations of the {ordinal} unrolled loop", AUTOTVM)
        for level, ordinal in enumerate(("innermost", "second", "third"))
    ),
)

OTHERS = (
    Feature("iterations", "1/work", "instances of the other stages with arithmetic"),
    Feature("operations", "1/work", "their arithmetic"),
    Feature("waste", "log2", "largest share of instances that tails and recomputation add"),
    Feature("tasks", "log", "fewest blocks or tasks of one of them"),
    Feature("lanes", "log", "fewest elements of a vector"),
    Feature("global_bytes", "1/work", "different bytes of scope global that they touch"),
)

BOUNDS = (
    Feature("arithmetic", "log2/ideal", "time by arithmetic alone, with the waves and vectors there are", ROOFLINE),
    Feature("issue", "log2/ideal", "time by instructions issued", ROOFLINE),
    Feature("far", "log2/ideal", "time by bytes of memory", ROOFLINE),
    Feature("near", "log2/ideal", "time by bytes of the second-level cache", ROOFLINE),
    Feature(
        "inner", "log2/ideal", "time by bytes of the first-level cache or shared memory, conflicts included", ROOFLINE
    ),
    Feature("latency", "log2/ideal", "time by latency that other warps, or other accumulators, do not hide", ROOFLINE),
    Feature("main", "log2/ideal", "the largest of these for the main stage", ROOFLINE),
    Feature("total", "log2/ideal", "the largest of these for each stage, summed, and the launches", ROOFLINE),
)

MATRIX_UNIT = "main.matrix_unit"
"""The column by which candidates on matrix units are told from those on lanes."""

WORK = "program.work"
"""The column of what a workload asks for, which its candidates have in common."""
STAGES = "program.stages"
"""The column of the blocks that a candidate has."""

PRIOR = Feature(
    "prior.seconds",
    "log2/ideal",
    "what is estimated by the sketch's rule, or on a GPU by its loops; missing for IR of unknown origin",
)


def described() -> list[str]:
    """The features as lines of a table: name, unit, what it says, source; those of accesses once for all of them."""
    groups = [("program", PROGRAM), ("main", MAIN), ("main.loop", LOOPS), (f"main.<{'|'.join(SLOTS)}>", ACCESS)]
    groups += [("copies", COPIES), ("others", OTHERS), ("bound", BOUNDS)]
    lines = [(f"{group}.{f.name}", f) for group, features in groups for f in features] + [(PRIOR.name, PRIOR)]
    width = max(len(name) for name, f in lines if f not in ACCESS)
    return [f"{name:<{width}}  {f.unit:<9}  {f.text}{f' [{f.source}]' if f.source else ''}" for name, f in lines]


@cache
def catalogue() -> tuple[Feature, ...]:
    """Return all columns that are computed from a nest, in their order."""
    groups = [("program", PROGRAM), ("main", MAIN)]
    groups += [("main.loop", LOOPS), *((f"main.{slot}", ACCESS) for slot in SLOTS)]
    groups += [("copies", COPIES), ("others", OTHERS), ("bound", BOUNDS)]
    return tuple(Feature(f"{group}.{f.name}", f.unit, f.text, f.source) for group, features in groups for f in features)


@cache
def names() -> tuple[str, ...]:
    """The names of the columns that are computed from a nest."""
    return tuple(f.name for f in catalogue())
