"""Operators on NaN, infinities and limits of integers: a few of those of benchmarks/trust/special.py."""

import pytest
from special_trials import try_special


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.few(5)
def test_operators_on_special_values_are_the_interpreters(seed: int) -> None:
    ended = try_special(f"llvm cores={1 + seed % 2}", seed)
    assert ended.kind == "right", ended.example
