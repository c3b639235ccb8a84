"""Random operations of StableHLO beside their standard: a few of those of benchmarks/trust/stablehlo.py."""

import numpy as np
import pytest
from random_stablehlo import OPERATIONS, program
from stablehlo_trials import try_program

import loopwright as lw


@pytest.mark.parametrize("seed", range(3 * len(OPERATIONS)))
@pytest.mark.few(4)
def test_random_operations_are_those_of_the_standard(seed: int) -> None:
    ended = try_program("llvm", seed)
    assert ended.kind == "right", ended.example


def test_programs_are_reproducible() -> None:
    for seed in range(len(OPERATIONS)):
        made, again = program(seed), program(seed)
        assert made.text == again.text and np.array_equal(made.wanted, again.wanted)


def test_angles_of_zeros_infinities_and_nan_are_numpys() -> None:
    """Zeros by their signs, too."""
    ends = np.array([np.inf, -np.inf, 1, -1, 0, -0.0, 2, np.nan], np.float32)
    y, x = (side.reshape(-1) for side in np.meshgrid(ends, ends))
    kind = f"tensor<{y.size}xf32>"
    text = f"""func.func @main(%y: {kind}, %x: {kind}) -> {kind} {{
      %angle = stablehlo.atan2 %y, %x : {kind}
      return %angle : {kind}
    }}"""
    found, wanted = lw.from_mlir(text).evaluate(y=y, x=x)[0], np.arctan2(y, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    is_number = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(found[is_number]), np.signbit(wanted[is_number]))
