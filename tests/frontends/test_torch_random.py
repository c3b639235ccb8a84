"""Random PyTorch networks and operators beside PyTorch in doubles: a few of the long run (trust/torch_networks.py)."""

from typing import Any

import numpy as np
import pytest
from gpu_programs import opencl_device

torch: Any = pytest.importorskip("torch")

from operator_trials import try_operator  # noqa: E402
from random_torch import Number, RandomNetwork, Sample, random_network  # noqa: E402
from torch_trials import attempt, try_network  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        (kind, first + n)
        for kind, first in (("llvm", 0), ("torch", 20), ("onnx", 40), ("opencl", 60))
        for n in range(12)
    ],
)
@pytest.mark.few(6)
def test_random_networks_agree_with_pytorch(kind: str, seed: int) -> None:
    if kind == "opencl":
        opencl_device()
    assert try_network(kind, seed, 6).kind in ("right", "refused", "unexported")


@pytest.mark.parametrize("place", range(0, 96, 4))
@pytest.mark.few(3)
def test_operators_of_other_types_and_epilogues_agree_with_pytorch(place: int) -> None:
    ended = try_operator(f"llvm cores={1 + place // 4 % 2}", 3, place)
    assert ended.kind in ("right", "refused"), ended.example


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_networks_are_reproducible_and_give_what_they_did(seed: int) -> None:
    sample, again = random_network(seed), random_network(seed)
    assert sample.text() == again.text()
    with torch.no_grad():
        found = sample.network(*sample.inputs)
    assert sample.first_wrong(found) is None


def test_what_is_wrong_is_found() -> None:
    sample = next(s for s in map(random_network, range(50)) if s.wanted[0].is_float and s.wanted[0].plain.numel() > 1)
    with torch.no_grad():
        right = list(sample.network(*sample.inputs))
    moved = right[0].flatten().roll(1).reshape(right[0].shape)
    ended = attempt(lambda given: [moved, *right[1:]], sample)
    assert ended.kind == "wrong" and "the first at" in ended.text
    assert attempt(lambda given: right[:-1], sample).kind == "wrong"
    assert attempt(lambda given: [x.double() for x in right], sample).kind == "wrong"


def test_how_far_results_may_be_off_follows_from_how_far_inputs_are() -> None:
    exact = torch.ones(4, dtype=torch.float64)
    near, far = (Number(exact.float(), exact, exact * (1 + off)) for off in (1e-6, 1e-4))
    assert near.tolerance(torch.float32) < 2e-5 < far.tolerance(torch.float32) < 2e-3
    whole = torch.ones(4, dtype=torch.int64)
    assert Number(whole, whole, whole).tolerance(torch.float32) == 0
    sample = Sample(RandomNetwork(torch.nn.ModuleDict(), [], [0]), [exact.float()], [near], torch.float32)
    assert sample.first_wrong([np.ones(4, np.float32)]) is None
    assert "1 of 4 off, the first at (2,)" in str(sample.first_wrong([np.array([1, 1, 1.1, 1], np.float32)]))
