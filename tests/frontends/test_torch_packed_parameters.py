"""Parameters that kernels have packed: what of them changes is noticed, in machine code and without it."""

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from loopwright.frontends.torch import packed_parameters  # noqa: E402
from loopwright.frontends.torch.packed_parameters import PackedParameters  # noqa: E402


def _written(parameters: list[Any]) -> None:
    with torch.no_grad():
        parameters[1].add_(1)


def _written_in_a_view(parameters: list[Any]) -> None:
    with torch.no_grad():
        parameters[2][1].zero_()


def _moved(parameters: list[Any]) -> None:
    parameters[0].data = torch.zeros(3, 4)


def _replaced(parameters: list[Any]) -> None:
    parameters[2] = torch.nn.Parameter(torch.zeros(3, 4))


def _replaced_and_written(parameters: list[Any]) -> None:
    """Another parameter on the same memory counts its own writes."""
    parameters[1] = torch.nn.Parameter(parameters[1].data)
    _written(parameters)


@pytest.mark.parametrize("machine_code", [True, False])
@pytest.mark.parametrize(
    "change", [_written, _written_in_a_view, _moved, _replaced, _replaced_and_written], ids=lambda c: c.__name__[1:]
)
def test_changes_of_parameters_are_noticed(
    change: Callable[[list[Any]], None], machine_code: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not machine_code:
        monkeypatch.setattr(packed_parameters, "_address_function", lambda: None)
    parameters: list[Any] = [torch.nn.Parameter(torch.ones(3, 4)), torch.nn.Parameter(torch.ones(4)), torch.ones(3, 4)]
    first = list(parameters)  # they stay
    found = PackedParameters((None, *parameters), range(1, 4))
    assert found.hold((None, *first))
    change(parameters)
    assert not found.hold((None, *parameters))


def test_parameters_are_compared_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = tuple(torch.nn.Parameter(torch.ones(3, 4)) for _ in range(5))
    found = PackedParameters(parameters, range(5))
    found.packed.clear()
    assert found.hold(parameters)
    found.packed.append(packed_parameters.Packed(0, 0, 0))  # is looked at where something has changed
    assert found.hold(parameters) and not found.hold(parameters[::-1])


def test_classes_that_bring_functions_of_their_own_are_asked_by_python() -> None:
    class Own(torch.Tensor):
        """A tensor of another class."""

    parameter = torch.ones(3).as_subclass(Own)
    found = PackedParameters((parameter,), [0])
    assert found.hold((parameter,))
    parameter.add_(1)
    assert not found.hold((parameter,))
