"""Fixtures of the front ends' tests."""

from collections.abc import Iterator

import pytest


@pytest.fixture
def nothing_compiled() -> Iterator[None]:
    """PyTorch has compiled nothing, and makes the same random numbers in each test."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
