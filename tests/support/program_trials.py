"""Random programs tried every way: schedules by hand and of all sketch rules, compiled, run, held to what NumPy gives.

A trial is one schedule of one program. Everything in it follows from its numbers, so that what failed can be run again:
`python program_trials.py llvm-hand 4711` does so, and prints the program.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
from lowered_runs import exact_inputs, instances, run_artifact_between_fences
from program_oracle import Value, evaluate, random_inputs, wrong
from random_gpu_schedules import gpu_scheduled
from random_programs import random_program
from random_schedules import draw_step, primitives
from stock_opt import replayed
from tensor_programs import random_product
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.device_lost import DeviceLost
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.outside import OutsideBufferError
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import Target, TargetAttr, parse_target, target_of
from loopwright.passes.lower.lower_te_to_loop import LowerTeToLoop
from loopwright.passes.pipeline_text import apply_schedule, lower_to_loops, schedule_text
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.rule import SketchRuleWarning

FAULTS = ("wrong", "crashed", "outside of a buffer", "other IR when replayed", "refused by the interpreter")
CPU = "llvm cores=2 vector_bytes={}"
OPENCL = "opencl cores=2 max_threads_per_block=256 max_shared_bytes=32768 warp_size=1 max_vthreads=8"
CUDA = (
    "cuda cores=132 max_threads_per_block=256 max_shared_bytes=232448 warp_size=32 max_vthreads=8 compute_capability=90"
)
MATRIX_CUDA = CUDA.replace("max_threads_per_block=256", "max_threads_per_block=1024")
POCL = "Portable Computing Language"
SCHEDULES_A_PROGRAM = 8
MOST_INSTANCES, MOST_OF_PRODUCTS = 2_000_000, 40_000_000
"""Instances of blocks: producers computed anew in deep nests make billions. Those of products are few operations."""


@dataclass(frozen=True)
class Fault:
    """A fault of one trial: one of FAULTS, and what it takes to see it again."""

    kind: str
    what: str


@dataclass
class Outcome:
    """Outcome of the trials of one program."""

    tried: int = 0
    faults: list[Fault] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    device_lost: bool = False
    """The device is of no use to this process any more: what came after would fail too."""


@dataclass(frozen=True)
class Problem:
    """A program as te-level IR for a target, its inputs, and what is right."""

    module: ModuleOp
    text: str
    inputs: list[np.ndarray[Any, Any]]
    expected: list[Value]

    @staticmethod
    def of(random: Random, seed: int, target: str) -> Problem:
        program = random_program(random)
        module = te.create_module(program.tensors(), parse_target(target))
        inputs = random_inputs(program, seed)
        return Problem(module, str(module), inputs, evaluate(program, inputs))

    @property
    def target(self) -> Target:
        return target_of(self.module)

    def first_wrong(self, outputs: Sequence[np.ndarray[Any, Any]]) -> str | None:
        """Return what is wrong with outputs; None where nothing is."""
        for number, (value, got) in enumerate(zip(self.expected, outputs, strict=True)):
            at = wrong(value, got)
            if at is not None:
                held = f"{value.v[at]} within {value.e[at]}" if at or not value.v.shape else value.v.shape
                return f"output {number} at {at}: got {got[at]}, expected {held}"
        return None


# -- schedules --------------------------------------------------------------------------------------------------------


@cache
def cpu_primitives() -> dict[str, type[Primitive[Any]]]:
    return {name: primitive for name, primitive in primitives().items() if primitive.name != "lw-bind"}


def scheduled_by_hand(problem: Problem, random: Random) -> tuple[ModuleOp, str]:
    """The loops of a program after random steps of all primitives, and the steps; refused steps are left out."""
    module = problem.module.clone()
    lower_to_loops(module)
    steps: list[ModulePass] = [LowerTeToLoop()]
    for _ in range(random.randint(1, 16)):
        step = draw_step(random, module, cpu_primitives())
        if step is None:
            continue
        try:
            step.run(module)
        except ScheduleError:
            continue
        steps.append(step)
    return module, schedule_text(steps)


def candidates(problem: Problem, seed: int, count: int) -> Iterator[tuple[ModuleOp, str]]:
    """Random candidates of all sketches of a program, in turn, anywhere within their limits."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SketchRuleWarning)
        sketches = generate_sketches(problem.module, problem.target)
    shares = [len(part) for part in np.array_split(np.arange(count), len(sketches)) if len(part)]
    texts: dict[str, None] = {}
    for sketch, share in zip(sketches, shares, strict=False):
        for row in sketch.population.sample(rng, share) if sketch.holes else sketch.sample(rng, 1):
            texts[sketch.schedule(row)] = None
    for text in texts:
        module = problem.module.clone()
        apply_schedule(module, text)
        yield module, text


def by_hand_for_gpu(problem: Problem, random: Random) -> tuple[ModuleOp, str]:
    _, module, steps = gpu_scheduled(random, problem.module)
    return module, schedule_text([LowerTeToLoop(), *steps])


# -- trials -----------------------------------------------------------------------------------------------------------


def on_llvm(problem: Problem, module: ModuleOp, random: Random) -> Fault | None:
    """Compile for one thread and for two, one of them with addresses checked, and run both."""
    kernel = lower_to_kernel(module)
    threads = random.choice(((1, 2), (2, 1)))
    checked = compile_module(_on_cores(kernel, threads[0]), check_addresses=True)[1]
    try:
        outputs = run_artifact_between_fences(checked, problem.inputs)
    except OutsideBufferError as error:
        return Fault(FAULTS[2], f"{threads[0]} threads: {error}")
    if found := problem.first_wrong(outputs):
        return Fault(FAULTS[0], f"{threads[0]} threads, addresses checked: {found}")
    plain = compile_module(_on_cores(kernel, threads[1]))[1]
    if found := problem.first_wrong(run_artifact_between_fences(plain, problem.inputs)):
        return Fault(FAULTS[0], f"{threads[1]} threads: {found}")
    return None


def _on_cores(kernel: ModuleOp, cores: int) -> ModuleOp:
    kernel.attributes["lw.target"] = TargetAttr(replace(target_of(kernel), cores=cores))
    return kernel


def on_opencl(problem: Problem, module: ModuleOp, random: Random) -> Fault | None:
    """Compile for the OpenCL device and run."""
    from loopwright.backends.opencl.compile import compile_module as compile_opencl
    from loopwright.backends.opencl.executable import load

    index = opencl_index()
    return _run_on_device(problem, load(compile_opencl(lower_to_kernel(module), None), index))


def interpreted(problem: Problem, module: ModuleOp, random: Random) -> Fault | None:
    """Interpret as for a CUDA device: asynchronous copies and shuffles included, and free of races."""
    try:
        outputs = run_kernel(lower_to_kernel(module), problem.inputs)
    except InterpretationError as error:
        return Fault(FAULTS[4], str(error))
    found = problem.first_wrong(outputs)
    return Fault(FAULTS[0], found) if found else None


def on_cuda(problem: Problem, module: ModuleOp, random: Random) -> Fault | None:
    """Compile for the CUDA device and run."""
    from loopwright.backends.c_family.executable import DeviceExecutable
    from loopwright.backends.cuda.compile import compile_module as compile_cuda
    from loopwright.backends.cuda.runtime import CudaRuntime

    artifact = compile_cuda(lower_to_kernel(module))
    return _run_on_device(problem, DeviceExecutable(artifact, CudaRuntime(artifact)))


@cache
def opencl_index() -> int:
    """The number of the OpenCL device to run on: PoCL's, where there is one."""
    from loopwright.backends.opencl.platform import devices

    names = [device.platform.name for device in devices()]
    return names.index(POCL) if POCL in names else 0


def _run_on_device(problem: Problem, executable: Any) -> Fault | None:
    outputs = [np.zeros(a.shape, a.dtype) for a in executable.arguments if a.is_output]
    executable.run([*map(np.ascontiguousarray, problem.inputs), *outputs])
    found = problem.first_wrong(outputs)
    return Fault(FAULTS[0], found) if found else None


def replay(problem: Problem, module: ModuleOp, text: str) -> Fault | None:
    """Run the schedule's text through stock xdsl-opt."""
    if replayed(problem.text, text).rstrip() != str(module).rstrip():
        return Fault(FAULTS[3], "stock xdsl-opt gives other IR")
    return None


Run = Callable[[Problem, ModuleOp, Random], Fault | None]


def try_one(
    problem: Problem,
    module: ModuleOp,
    text: str,
    random: Random,
    run: Run,
    outcome: Outcome,
    most_instances: int = MOST_INSTANCES,
) -> None:
    """Replay, compile and run one schedule of a program, and count what became of it."""
    if instances(module) > most_instances:
        outcome.counts["too long to run"] += 1
        return
    try:
        fault = replay(problem, module, text)
    except Exception as error:
        fault = Fault(FAULTS[1], f"replay: {type(error).__name__}: {error}")
    try:
        fault = fault or run(problem, module, random)
    except Exception as error:
        if _refusal(problem, error):
            outcome.counts["refused"] += 1
            return
        fault = Fault(FAULTS[1], f"{type(error).__name__}: {error}")
        outcome.device_lost = isinstance(error, DeviceLost)
    outcome.tried += 1
    if fault is not None:
        outcome.faults.append(Fault(fault.kind, f"{fault.what}\nschedule: {text}"))


def _refusal(problem: Problem, error: Exception) -> bool:
    """True where a program is refused with a sentence: more code than a build may have, or nothing for a GPU to run."""
    if isinstance(error, ScheduleError):
        return True
    refused = isinstance(error, PassFailedException) and str(error).startswith("lw-lower-loop-to-kernel: ")
    return refused and problem.target.is_gpu


# -- the trials of one program ----------------------------------------------------------------------------------------


def hand_on_llvm(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _by_hand(seed, count, CPU.format((16, 32, 64)[seed % 3]), scheduled_by_hand, on_llvm)


def candidates_on_llvm(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _candidates(seed, count, CPU.format((16, 32, 64)[seed % 3]), on_llvm)


def hand_on_opencl(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _by_hand(seed, count, OPENCL, by_hand_for_gpu, on_opencl)


def candidates_on_opencl(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _candidates(seed, count, OPENCL, on_opencl)


def hand_interpreted(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _by_hand(seed, count, CUDA, by_hand_for_gpu, interpreted)


def candidates_interpreted(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _candidates(seed, count, CUDA, interpreted)


def _way(name: str) -> str:
    """Whose matrices a structure multiplies, and who copies them, by its name."""
    if "wgmma" not in name:
        return "of warps"
    return "of warp groups, copied in bulk" if "_bulk" in name else "of warp groups, copied by threads"


def products_interpreted(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    """Candidates of a product for matrix units, on whole numbers whose sums are exact."""
    tensors = random_product(Random(seed))
    module = te.create_module(tensors, parse_target(MATRIX_CUDA))
    inputs = exact_inputs(module)
    expected = [Value(np.asarray(x, np.float64), np.zeros(x.shape), str(x.dtype)) for x in run_te(module, inputs)]
    problem = Problem(module, str(module), inputs, expected)
    outcome, random = Outcome(), Random(seed)
    sketches = [s for s in generate_sketches(module, problem.target) if s.name.startswith("tensor")]
    outcome.counts["of no matrix unit"] += not sketches
    shares = [len(part) for part in np.array_split(np.arange(count), max(1, len(sketches)))]
    for sketch, share in zip(sketches, shares, strict=False):
        outcome.counts[_way(sketch.name)] += share
        for row in sketch.population.sample(np.random.default_rng(seed), share):
            candidate, text = module.clone(), sketch.schedule(row)
            apply_schedule(candidate, text)
            try_one(problem, candidate, text, random, interpreted, outcome, MOST_OF_PRODUCTS)
    return outcome


def hand_on_cuda(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _by_hand(seed, count, _cuda_target(), by_hand_for_gpu, on_cuda)


def candidates_on_cuda(seed: int, count: int = SCHEDULES_A_PROGRAM) -> Outcome:
    return _candidates(seed, count, _cuda_target(), on_cuda)


@cache
def _cuda_target() -> str:
    from loopwright.backends.cuda.driver import target_of_device

    return str(target_of_device())


def _by_hand(
    seed: int, count: int, target: str, schedule: Callable[[Problem, Random], tuple[ModuleOp, str]], run: Run
) -> Outcome:
    outcome = Outcome()
    problem = _problem(seed, target, outcome)
    for number in range(count if problem else 0):
        assert problem is not None
        random = Random(f"{seed} {number}")
        try:
            module, text = schedule(problem, random)
        except Exception as error:
            outcome.tried += 1
            outcome.faults.append(Fault(FAULTS[1], f"schedule {number}: {type(error).__name__}: {error}"))
            continue
        try_one(problem, module, text, random, run, outcome)
        if outcome.device_lost:
            break
    return outcome


def _candidates(seed: int, count: int, target: str, run: Run) -> Outcome:
    outcome = Outcome()
    problem = _problem(seed, target, outcome)
    if problem is None:
        return outcome
    random = Random(seed)
    try:
        for module, text in candidates(problem, seed, count):
            try_one(problem, module, text, random, run, outcome)
            if outcome.device_lost:
                break
    except Exception as error:
        outcome.tried += 1
        outcome.faults.append(Fault(FAULTS[1], f"sketches: {type(error).__name__}: {error}"))
    return outcome


def _problem(seed: int, target: str, outcome: Outcome) -> Problem | None:
    try:
        return Problem.of(Random(seed), seed, target)
    except te.ExpressionError:
        outcome.counts["refused by te"] += 1
        return None


TRIALS: dict[str, Callable[..., Outcome]] = {
    "llvm-hand": hand_on_llvm,
    "llvm-candidates": candidates_on_llvm,
    "opencl-hand": hand_on_opencl,
    "opencl-candidates": candidates_on_opencl,
    "interpreted-hand": hand_interpreted,
    "interpreted-candidates": candidates_interpreted,
    "interpreted-products": products_interpreted,
    "cuda-hand": hand_on_cuda,
    "cuda-candidates": candidates_on_cuda,
}


def try_program(kind: str, seed: int) -> Outcome:
    """The trials of one program, of one of TRIALS."""
    return TRIALS[kind](seed)


if __name__ == "__main__":
    from loopwright.search.workload import ComputeDAG

    kind, number = sys.argv[1:3]
    print(ComputeDAG.from_module(Problem.of(Random(int(number)), int(number), CPU.format(64)).module))
    result = TRIALS[kind](int(number))
    print(f"{result.tried} tried, {dict(result.counts)}")
    for fault in result.faults:
        print(f"{fault.kind}: {fault.what}")
