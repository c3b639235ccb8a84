"""Stock `xdsl-opt` replays what a search found, and lists the steps that each primitive offers."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import effort
import pytest
from tensor_programs import CUDA as TENSOR_CORES
from tensor_programs import FORMS, product, scheduled
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.interactive.passes import get_condensed_pass_list
from xdsl.universe import Universe

import loopwright as lw
from loopwright import te, topi
from loopwright.passes.discovery import pass_name, primitive_stems
from loopwright.passes.pipeline_text import parse_schedule
from loopwright.search.named_workloads import arguments, named_workloads
from loopwright.search.records.file import Record, load

GPU = lw.Target(kind="cuda", max_threads_per_block=256, max_shared_bytes=1 << 14, warp_size=32, max_vthreads=8)


def stock(folder: Path, *args: str) -> str:
    """Run `xdsl-opt` as its package installs it, away from the repository, and return its standard output."""
    program = "from xdsl.tools.xdsl_opt import main; main()"
    command = [sys.executable, "-c", program, *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, quick_measuring: None) -> tuple[Path, lw.SearchTask, list[Record]]:
    folder = tmp_path_factory.mktemp("replay")
    workload = named_workloads()["conv2d"]
    task = lw.SearchTask(workload, arguments(workload, {"ci": 6, "co": 16, "h": 5, "w": 7}))
    (folder / "conv2d.mlir").write_text(f"{task.module!s}\n")
    task.tune(lw.TuningOptions(num_measure_trials=6, records=folder / "conv2d.jsonl", progress=False))
    return folder, task, load(folder / "conv2d.jsonl")


@pytest.mark.slow(1.2)
@pytest.mark.few(1)
def test_stock_xdsl_opt_replays_every_record(found: tuple[Path, lw.SearchTask, list[Record]]) -> None:
    folder, task, records = found
    schedules = sorted({r.schedule for r in records})
    assert len(schedules) > 2
    for schedule in effort.spread(schedules, 2 * effort.level()):
        assert stock(folder, "conv2d.mlir", "-p", schedule).strip() == str(task.schedule_module(schedule)).strip()


@pytest.mark.slow(1.2)
def test_every_step_is_shown(found: tuple[Path, lw.SearchTask, list[Record]]) -> None:
    folder, task, records = found
    schedule = task.best_record(records).schedule
    shown = stock(folder, "conv2d.mlir", "-p", schedule, "--print-between-passes")
    steps = [step.name for step in parse_schedule(schedule)]
    headings = [line for line in shown.splitlines() if line.startswith("IR after ")]
    assert headings == [f"IR after {step}:" for step in steps[:-1]]
    assert shown.strip().endswith(str(task.schedule_module(schedule)).strip())


def probes() -> list[ModuleOp]:
    """Programs at the loop level that together have something for every primitive to do."""
    data, weight = te.placeholder((1, 2, 4, 4), name="data"), te.placeholder((4, 2, 3, 3), name="weight")
    conv = lw.Schedule([data, weight, topi.nn.relu(topi.nn.conv2d_nchw(data, weight, padding=1))])
    a, b = te.placeholder((8, 6), name="a"), te.placeholder((6, 8), name="b", constant=True)
    product = topi.nn.matmul(a, b)
    staged = lw.Schedule([a, b, product], target=GPU)
    copy = staged.cache_read(product, "a", "shared")
    staged.compute_at(copy, staged.get_loops(product)[-1])
    chain = lw.Schedule([a, topi.tanh(topi.exp(a))])
    weighted = lw.Schedule([a, b, topi.nn.matmul(topi.nn.softmax(a), b)])
    image = te.placeholder((1, 2, 4, 4), name="image")
    resized = lw.Schedule([image, topi.resize2d(image, (8, 8))])
    pooled = lw.Schedule([image, topi.nn.max_pool(image, 3, 1)])
    nests = [conv, staged, chain, weighted, resized, pooled, parts()]
    return [*(nest.module for nest in nests), instruction_nest()]


def parts() -> lw.Schedule:
    """A product in parts on blocks of threads of their own, and what adds them up."""
    a, b = te.placeholder((8, 6), name="a"), te.placeholder((6, 8), name="b")
    sch = lw.Schedule([a, b, topi.nn.matmul(a, b)], target=GPU)
    outer, _ = sch.split("T_matmul", "k", [2, None])
    sch.reorder("T_matmul", outer, "i", "j")
    for block in (sch.rfactor("T_matmul", outer), "T_matmul"):
        sch.bind(block, "i", "blockIdx.x")
    sch.bind("T_matmul_rf", outer, "blockIdx.y")
    return sch


def instruction_nest() -> ModuleOp:
    """A nest that is a matrix instruction, without the note that says so."""
    form, shape = FORMS[0]._replace(stages=1, k_steps=1, tiles=(1, 1)), (16, 16, 16)
    tiled = lw.Schedule(product(form, *shape), target=TENSOR_CORES)
    tiled.apply([step for step in scheduled(form, shape).steps if step.name != "lw-tensorize"])
    return tiled.module


@pytest.mark.slow(1.2)
def test_every_primitive_offers_steps_and_each_of_them_applies() -> None:
    """As an interactive tool asks for them: all passes of all plugins, on the module at hand."""
    universe = Universe.get_multiverse()
    ours = tuple((n, load()) for n, load in sorted(universe.all_passes.items()) if n.startswith("lw-"))
    offering: set[str] = set()
    for module in probes():
        before = str(module)
        offered = get_condensed_pass_list(Context(), module, ours)
        assert str(module) == before
        for option in offered:
            step: Any = option.module_pass
            changed = module.clone()
            step.apply(Context(), changed)
            changed.verify()
            offering.add(step.name)
    assert offering >= {pass_name(stem) for stem in primitive_stems()}
