"""Random operations of StableHLO beside their standard: a few of those of benchmarks/trust/stablehlo.py."""

import numpy as np
import pytest
from random_stablehlo import OPERATIONS, program
from stablehlo_trials import try_program


@pytest.mark.parametrize("seed", range(3 * len(OPERATIONS)))
@pytest.mark.few(4)
def test_random_operations_are_those_of_the_standard(seed: int) -> None:
    ended = try_program("llvm", seed)
    assert ended.kind == "right", ended.example


def test_programs_are_reproducible() -> None:
    for seed in range(len(OPERATIONS)):
        made, again = program(seed), program(seed)
        assert made.text == again.text and np.array_equal(made.wanted, again.wanted)
