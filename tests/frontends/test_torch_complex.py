"""Complex numbers of PyTorch's programs as pairs of real ones, beside PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch_programs import Wrapped  # noqa: E402
from torch_watched import Watched, close, compiled_regions, with_gradients  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.complex_operators import converters_from_pairs, converters_to_pairs  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")


def drawn(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, Y = drawn(3, 4, 2), drawn(3, 4, 2, seed=1)
WEIGHT = torch.view_as_complex(drawn(4, 5, 2, seed=2))
ON_COMPLEX: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda a, b: a * b,
    "product with real numbers": lambda a, b: b.abs() * a,
    "product of axes": lambda a, b: a[:, :1] * b[:1],
    "product with numbers": lambda a, b: a * 2 * (0.5 - 1j) + b,
    "product of real tensors with numbers": lambda a, b: a.abs() * (0.5 - 1j) + 1j * b.abs(),
    "quotient": lambda a, b: a / (b.abs() + 1) / 3,
    "quotient of complex numbers": lambda a, b: a / (b + 3) + (b * 1e-30) / (a * 1e-30) / (2 - 1j),
    "inverse": lambda a, b: 1 / a - a.reciprocal(),
    "square": lambda a, b: a**2 + b.square(),
    "sum with numbers": lambda a, b: (a + 2 - (0.5 - 1j)) * b,
    "sum and difference": lambda a, b: torch.add(a, b, alpha=2) - a[0],
    "sum with real numbers": lambda a, b: a + b.abs(),
    "conjugate": lambda a, b: a * b.conj(),
    "opposite": lambda a, b: -a.clone(),
    "exponential": lambda a, b: torch.exp(a),
    "polar": lambda a, b: torch.polar(a.abs(), b.angle()),
    "of parts": lambda a, b: torch.complex(a.real, b.imag),
    "sum of all": lambda a, b: a.sum() * b,
    "mean of rows": lambda a, b: a.mean(1, keepdim=True) * b,
    "matrix product": lambda a, b: a @ WEIGHT,
    "products of matrices": lambda a, b: torch.einsum("ij,kj->ik", a, b)[None] @ b.expand(2, 3, 4),
    "turned": lambda a, b: a.t().reshape(2, 6),
    "stretched": lambda a, b: a.unsqueeze(1).expand(3, 2, 4).squeeze(0),
    "one of an axis": lambda a, b: a.unsqueeze(-1).squeeze(-1)[:, -1],
    "cut": lambda a, b: a[1:, ::2],
    "joined": lambda a, b: torch.cat([a, b], -1),
    "padded": lambda a, b: torch.nn.functional.pad(a, (1, 2, 0, 1)),
    "reversed": lambda a, b: a.flip(0),
    "put": lambda a, b: torch.slice_scatter(torch.select_scatter(a, b[0], 0, 1), b[:, :2], 1, 2, 4),
    "put into zeros": lambda a, b: _into_zeros(a, b),
    "chosen": lambda a, b: torch.where(a.real > 0, a, b),
    "indexed": lambda a, b: a[torch.tensor([2, 0])] * b[:, torch.tensor([1, 1, 0, 3])][:2],
    "cast": lambda a, b: a.real.to(torch.complex64) * b,
}


def _into_zeros(a: Any, b: Any) -> Any:
    made = torch.zeros(3, 6, dtype=torch.complex64)
    made[:, 1:5] = a
    return made[:, :4] * b


def seen(name: str) -> Callable[[Any, Any], Any]:
    """A function of pairs of floats that computes with complex numbers."""

    def function(x: Any, y: Any) -> Any:
        return torch.view_as_real(ON_COMPLEX[name](torch.view_as_complex(x), torch.view_as_complex(y)))

    return function


@pytest.mark.parametrize("name", ON_COMPLEX)
def test_programs_compute_with_pairs(name: str) -> None:
    function = seen(name)
    net = lw.from_exported(torch.export.export(Wrapped(function), (X, Y)))
    given = {key: value.numpy() for key, value in zip(net.input_names, (X, Y), strict=False)}
    (found,) = net.evaluate(**given)
    np.testing.assert_allclose(found, function(X, Y).numpy(), rtol=1e-5, atol=1e-5)


def test_converters_are_of_operators_that_pytorch_has() -> None:
    names = [*converters_to_pairs(), *converters_from_pairs()]
    assert len(names) > 40
    for name in names:
        packet, _, overload = name.partition(".")
        assert hasattr(getattr(torch.ops.aten, packet, None), overload), name


class Rotated(torch.nn.Module):
    """Queries turned by the angles of their positions, between two layers, as LLaMA's first code has it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 3)
        angles = torch.outer(torch.arange(5), 1 / 10 ** (torch.arange(4) / 4))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x: Any) -> Any:
        heads = self.first(x).view(2, 5, 2, 8)
        turned = torch.view_as_complex(heads.float().reshape(2, 5, 2, 4, 2)) * self.turns.view(1, 5, 1, 4)
        return self.last(torch.view_as_real(turned).flatten(3).type_as(x).flatten(2))


def test_rotations_are_in_one_region_with_the_layers_around() -> None:
    module, x = Rotated().eval(), drawn(2, 5, 8)
    with torch.no_grad():
        watched = Watched(module)
        close(watched(x), module(x))
        (_,) = compiled_regions(watched)
        assert not [name for name in watched.stays if not name.startswith("view")]
        close(lw.torch.optimize(module, (x,))(x), module(x))


def test_gradients_of_rotations() -> None:
    with_gradients(Rotated(), (drawn(2, 5, 8),))


def test_transforms_stay_pytorchs_under_compile_and_filters_between_them() -> None:
    weight = torch.view_as_complex(drawn(6, 2))

    def function(x: Any) -> Any:
        spectrum = torch.fft.rfft(x) * weight
        return torch.fft.irfft(spectrum, n=10) + 1, (spectrum * 2).abs().square() - 1

    x = drawn(3, 10)
    for found, wanted in zip(Watched(function)(x), function(x), strict=True):
        close(found, wanted)


@pytest.mark.parametrize("function", [lambda x: torch.view_as_complex(x) * 2, lambda x: torch.view_as_complex(x)])
def test_complex_numbers_that_are_returned(function: Callable[[Any], Any]) -> None:
    close(Watched(function)(X), function(X))


def test_inputs_of_complex_numbers_and_views_of_them() -> None:
    def function(z: Any) -> Any:
        return torch.view_as_real(z), (z.conj() * z).real.relu() + 1

    z = torch.view_as_complex(X.clone())
    shown, found = Watched(function)(z)
    close((shown, found), function(z))
    shown.zero_()
    assert not z.abs().any()
