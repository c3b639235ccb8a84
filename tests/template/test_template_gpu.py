"""Every shipped template for GPUs: right as interpreted; those for Mali on OpenCL, those for CUDA compiled."""

import effort
import numpy as np
import pytest
from gpu_programs import check_interpreted, check_on_opencl
from template_shapes import ODD

import loopwright as lw
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda import device as cuda
from loopwright.search.template.fallback import fallback_config
from loopwright.search.template.registry import shipped

CONFIGS = int(min(2, effort.level()))
"""Legal configs of each template, beside the fallback."""


def templates(*families: str) -> list[str]:
    return [name for name in shipped() if name.endswith(families)]


def made(name: str, target: str) -> tuple[lw.TemplateTask, list[str]]:
    """A task, and its schedules of the fallback and of some other legal configs."""
    arguments = (
        ODD["conv2d_nchw"] if name == "conv2d_no_batching" else ODD[name.removesuffix("_mali").removesuffix("_gpu")]
    )
    if name == "conv2d_no_batching":
        arguments = (1, *arguments[1:])
    task = lw.TemplateTask(name, arguments, target)
    rows = task.config_space.sample(np.random.default_rng(0), 256)
    legal = rows[task.legal(rows)][:CONFIGS]
    assert len(legal) == CONFIGS
    return task, task.schedules([fallback_config(task), *map(task.config, legal)])


@pytest.mark.parametrize("name", templates("_mali"))
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_templates_for_mali_are_right_on_opencl(name: str) -> None:
    task, schedules = made(name, "opencl model=mali-t860")
    check_on_opencl(task.module, task.reference, schedules)


@pytest.mark.parametrize("name", templates("_mali", "_gpu", "no_batching"))
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_templates_are_right_when_interpreted(name: str) -> None:
    task, schedules = made(name, "opencl model=mali-t860" if name.endswith("_mali") else "cuda model=h200")
    check_interpreted(task.module, task.reference, schedules)


@pytest.mark.parametrize("name", templates("_gpu", "no_batching"))
@pytest.mark.few(1)
def test_templates_for_cuda_compile(name: str) -> None:
    """No device is needed; what is launched is within what the architecture has."""
    task, schedules = made(name, "cuda model=h200")
    for schedule in schedules:
        artifact = Artifact.from_bytes(cuda.build(str(task.module), schedule), "cuda")
        assert artifact.architecture == "sm_90" and artifact.binary[:4] == b"\x7fELF"
        for launch in artifact.kernel.launches:
            assert np.prod(launch.block) <= task.target.max_threads_per_block
            assert launch.static_shared_bytes + launch.dynamic_shared_bytes <= task.target.max_shared_bytes


def test_every_template_for_gpus_is_tested() -> None:
    tested = {*templates("_mali"), *templates("_gpu", "no_batching")}
    assert tested == {name for name in shipped() if not name.endswith("_cpu")}
