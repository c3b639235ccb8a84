"""Programs of torch.export with open extents, imported for numbers."""

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

import loopwright as lw  # noqa: E402


class Rows(torch.nn.Module):
    """A layer, whose rows are told by two inputs of one batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: Any, y: Any) -> Any:
        batch, length, _ = x.shape
        return self.layer(x).view(batch * length, 3) + y.sum(0), x.mean(1)


@pytest.fixture(scope="module")
def module() -> Any:
    return Rows()


@pytest.fixture(scope="module")
def program(module: Any) -> Any:
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=64)
    opened = {"x": {0: batch, 1: length}, "y": {0: batch}}
    return torch.export.export(module, (torch.randn(2, 5, 4),), {"y": torch.randn(2, 3)}, dynamic_shapes=opened)


@pytest.mark.parametrize(
    ("shapes", "wanted"), [(None, (2, 5, 4)), ({"x": (3, 7, 4)}, (3, 7, 4)), ({"y": (1, 3)}, (1, 5, 4))]
)
def test_open_extents_are_those_given_else_the_examples(module: Any, program: Any, shapes: Any, wanted: Any) -> None:
    net = lw.from_exported(program, shapes=shapes)
    assert (net.inputs["x"].shape, net.inputs["y"].shape) == (wanted, (wanted[0], 3))
    (weight,) = [array for array in net.params.values() if array.shape == (3, 4)]
    assert weight.ctypes.data == module.layer.weight.data_ptr()
    given = {name: torch.randn(value.shape) for name, value in net.inputs.items()}
    for found, expected in zip(net.evaluate(**{n: x.numpy() for n, x in given.items()}), module(**given), strict=True):
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ({"x": (3, 7, 5)}, r"input 'x' of the program is \(\w+, \w+, 4\), \(3, 7, 5\) does not fit"),
        ({"x": (3, 7)}, r"input 'x' has 3 axes, \(3, 7\) are given"),
        ({"x": (3, 7, 4), "y": (4, 3)}, "input 'y': an extent that is 3 elsewhere is given 4"),
        ({"x": (3, 70, 4)}, "an extent of the program is from 0 to 64, got 70"),
        ({"z": (1,)}, "the program has no input 'z' that is a tensor; it has x, y"),
    ],
)
def test_shapes_that_do_not_fit_are_a_sentence(program: Any, shapes: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        lw.from_exported(program, shapes=shapes)
