"""Sizes and usage read from a nest are those of the lowering, on random candidates of every sketch."""

from dataclasses import asdict
from math import prod

import numpy as np
import pytest
from sample_workloads import SAMPLES
from sketch_rows import anywhere
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects.kernel import AllocOp, LaunchOp
from loopwright.dialects.loop import ForOp, blocks_in, loops_in
from loopwright.dialects.target import Target, parse_target
from loopwright.passes.analysis.code_size import buffer_element_bytes, copies, vectors
from loopwright.passes.analysis.nest import functions
from loopwright.passes.analysis.placement import place_buffers
from loopwright.passes.parametric.placement import kept_part
from loopwright.passes.parametric.read import nest_of_candidate
from loopwright.passes.parametric.replay import ScheduledNests
from loopwright.passes.parametric.sizes import Size, SizeGraph, maximum
from loopwright.passes.parametric.usage import Usage, usage_of
from loopwright.passes.pipeline_text import apply_schedule
from loopwright.search.features.catalogue import names
from loopwright.search.features.machine import BASE_REGISTERS
from loopwright.search.features.native import run_program
from loopwright.search.features.occupancy import REGISTER_BYTES, launch_of, operand_registers
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.features.program import Program
from loopwright.search.features.view import NestView
from loopwright.search.sketch.generate import generate_sketches

CPU = "llvm cores=2 vector_bytes=64 vector_registers=32"
CUDA = (
    "cuda cores=132 max_threads_per_block=1024 max_shared_bytes=232448 warp_size=32 max_vthreads=8 "
    "compute_capability=90"
)
CASES = [
    *((CUDA, name) for name in ("conv_nchw_strided", "matmul_transposed", "two_layers", "attention", "winograd")),
    *((CUDA, name) for name in ("depthwise_nhwc", "layer_norm", "argmax", "conv_transpose")),
    *((CUDA, name) for name in ("matmul_half", "conv_half")),
    *((CPU, name) for name in ("conv_nchw", "matmul_transposed", "attention", "softmax", "conv_nhwc")),
]


def module_of(name: str, target: str) -> ModuleOp:
    return te.create_module(SAMPLES[name](), parse_target(target))


@pytest.mark.parametrize(("target", "name"), CASES, ids=lambda text: text.split()[0])
@pytest.mark.few(2)
def test_buffers_are_as_large_as_the_lowering_makes_them(target: str, name: str) -> None:
    module = module_of(name, target)
    for sketch in generate_sketches(module, parse_target(target)):
        graph = SizeGraph()
        nest = ScheduledNests(module, parse_target(target)).nest(sketch.template, graph)
        kept = {b.name: kept_part(nest, b, nest.owner_of(b)) for b in nest.buffers.values() if not b.is_argument}
        rows = anywhere(sketch, np.random.default_rng(6), 6)
        program = Program(graph, [b.elements for b in kept.values()])
        sizes = run_program(program, sketch.columns(rows), len(rows))
        for row, found in zip(rows, sizes.T, strict=True):
            candidate = module.clone()
            apply_schedule(candidate, sketch.schedule(row))
            (func,) = functions(candidate)
            placed = {p.name: p for p in place_buffers(func, parse_target(target).is_gpu).values()}
            assert dict(zip(kept, found, strict=True)) == {n: placed[n].one_size for n in kept}, sketch.schedule(row)


@pytest.mark.parametrize(("target", "name"), CASES, ids=lambda text: text.split()[0])
@pytest.mark.few(2)
def test_usage_of_all_candidates_is_that_of_each(target: str, name: str) -> None:
    module, device = module_of(name, target), parse_target(target)
    for sketch in generate_sketches(module, device):
        graph = SizeGraph()
        used = asdict(usage_of(ScheduledNests(module, device).nest(sketch.template, graph)))
        rows = anywhere(sketch, np.random.default_rng(8), 4)
        found = run_program(Program(graph, list(used.values())), sketch.columns(rows), len(rows))
        for row, numbers in zip(rows, found.T, strict=True):
            candidate = module.clone()
            apply_schedule(candidate, sketch.schedule(row))
            want = asdict(usage_of(nest_of_candidate(candidate, device)))
            assert want == exact_usage(candidate, device), sketch.schedule(row)
            assert dict(zip(used, numbers, strict=True)) == want, sketch.schedule(row)


@pytest.mark.parametrize("name", ["conv_nchw_strided", "matmul_transposed", "depthwise_nhwc", "matmul_half"])
@pytest.mark.few(2)
def test_launches_are_as_large_as_the_lowering_makes_them(name: str) -> None:
    """Threads, shared memory and registers that buffers are in, as occupancy is computed from them."""
    module, device = module_of(name, CUDA), parse_target(CUDA)
    for sketch in generate_sketches(module, device):
        for row in anywhere(sketch, np.random.default_rng(4), 4):
            candidate = module.clone()
            apply_schedule(candidate, sketch.schedule(row))
            view = NestView(nest_of_candidate(candidate, device))
            found = {"threads": 1.0, "shared_bytes": 0.0, "local_bytes": 0.0}
            for kernel in view.kernels:
                launch = launch_of(view, kernel)
                rest = maximum(0, *(operand_registers(v) for v in view.in_kernel(kernel))) + BASE_REGISTERS
                taken = (launch.threads, launch.shared_bytes, (launch.registers - rest) * REGISTER_BYTES)
                found = {n: max(most, number(t)) for (n, most), t in zip(found.items(), taken, strict=True)}
            want = exact_usage(candidate, device)
            assert found == {n: want[n] for n in found}, sketch.schedule(row)


def number(size: Size) -> float:
    assert isinstance(size, int | float)
    return size


def exact_usage(module: ModuleOp, target: Target) -> dict[str, int]:
    """The usage as the IR and its placed buffers have it."""
    (func,) = functions(module)
    written = [copies(b) * (1 if target.is_gpu else vectors(b, target.vector_bytes)) for b in blocks_in(func)]
    used = asdict(Usage(steps=sum(written)))
    places = place_buffers(func, True)
    for nest in (op for op in func.body.block.ops if isinstance(op, ForOp) and target.is_gpu):
        sizes: dict[str, int] = {}
        blocks = list(blocks_in(nest))
        for loop in (nest, *loops_in(nest)):
            if loop.loop_kind.startswith("threadIdx"):
                sizes[loop.loop_kind] = max(loop.size, sizes.get(loop.loop_kind, 1))
        taken = {"threads": prod(sizes.values()), "threads_z": sizes.get("threadIdx.z", 1)}
        virtual = [[x.size for x in b.enclosing_loops if x.loop_kind == "vthread"] for b in blocks]
        taken["vthreads"] = max(map(prod, virtual))
        for scope in ("shared", "local"):
            kept = {out: places[out] for b in blocks for out in b.outputs if places[out].scope == scope}
            taken[f"{scope}_bytes"] = sum(p.size * buffer_element_bytes(out) for out, p in kept.items())
        used |= {name: max(used[name], number) for name, number in taken.items()}
    return used


@pytest.mark.parametrize("name", ["conv_nchw_strided", "matmul_transposed", "attention"])
@pytest.mark.few(1)
def test_shared_memory_is_what_the_kernel_allocates(name: str) -> None:
    """Of the largest launch; within what a logarithm in single precision tells."""
    module = module_of(name, CUDA)
    column = names().index("program.shared_bytes")
    for sketch in generate_sketches(module, parse_target(CUDA)):
        rows = anywhere(sketch, np.random.default_rng(3), 3)
        for row, features in zip(rows, sketch.features(rows), strict=True):
            candidate = module.clone()
            apply_schedule(candidate, sketch.schedule(row))
            kernel = lower_to_kernel(candidate)
            launches = [op for op in kernel.walk() if isinstance(op, LaunchOp)]
            allocated = max((_shared_bytes(launch) for launch in launches), default=0)
            assert np.exp2(features[column]) - 1 == pytest.approx(allocated, rel=1e-4), sketch.schedule(row)
            read = features_of_schedule(module, parse_target(CUDA), sketch.schedule(row))
            assert read[column] == pytest.approx(features[column], rel=1e-5)


def _shared_bytes(launch: LaunchOp) -> int:
    found = [op.buffer.type for op in launch.walk() if isinstance(op, AllocOp)]
    return 4 * sum(prod(t.get_shape()) for t in found if getattr(t.memory_space, "data", "") == "shared")
