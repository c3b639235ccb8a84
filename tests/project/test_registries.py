"""A test that has registries for itself leaves what the package registers when it is first asked."""

import pytest

from loopwright.search.template.registry import operators


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("turn", ["first", "second"])
def test_operators_of_templates_are_there_whoever_asks_first(turn: str) -> None:
    """Run alone, the first turn is the first in its process to ask."""
    assert "conv2d_nchw" in operators()
