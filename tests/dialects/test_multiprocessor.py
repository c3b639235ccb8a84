"""What one multiprocessor has: the figures behind occupancy, of the device that a target names."""

import numpy as np
import pytest

from loopwright import topi
from loopwright.dialects.multiprocessor import multiprocessor_of
from loopwright.dialects.presets import PRESETS, preset_target
from loopwright.search.features.catalogue import names
from loopwright.search.task import SearchTask
from loopwright.te import Tensor, placeholder


def matmul() -> list[Tensor]:
    a, b = placeholder((512, 512), name="a"), placeholder((512, 512), name="b")
    return [a, b, topi.matmul(a, b)]


def test_well_known_devices_have_figures_of_their_own() -> None:
    for (kind, model), target in PRESETS.items():
        own = multiprocessor_of(target)
        assert own.threads >= target.max_threads_per_block or kind == "opencl", model
        assert own.shared_bytes >= target.max_shared_bytes or kind == "opencl", model
    assert multiprocessor_of(preset_target("cuda model=rtx4090")).threads == 1536
    unlisted = multiprocessor_of(preset_target("opencl model=mali-t860"))
    assert unlisted == multiprocessor_of(preset_target("cuda model=h100"))


@pytest.mark.parametrize("model", ["h200", "rtx4090", "a100"])
def test_no_more_threads_and_blocks_are_resident_than_the_device_has(model: str) -> None:
    task = SearchTask(matmul, target=f"cuda model={model}")
    own = multiprocessor_of(task.target)
    sketch = task.sketches[0]
    columns = dict(zip(names(), sketch.features(sketch.sample(np.random.default_rng(0), 256)).T, strict=False))
    resident, threads = (np.rint(np.exp2(columns[f"main.{n}"]) - 1) for n in ("resident_blocks", "threads"))
    assert (threads <= own.threads).any()
    assert (resident * threads <= np.maximum(own.threads, threads)).all() and (resident <= own.blocks).all()
    assert np.allclose(columns["main.occupancy"], resident * threads / own.threads, rtol=1e-3)
