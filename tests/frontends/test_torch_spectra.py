"""Fourier transforms in programs of torch.export: products with a table where complex numbers are only looked at."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.errors import TorchImportError  # noqa: E402


def imported(function: Callable[[Any], Any], data: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """What a function gives as a network, and what PyTorch gives."""

    class Module(torch.nn.Module):
        """The function."""

        def forward(self, x: Any) -> Any:
            return function(x)

    net = lw.from_exported(torch.export.export(Module(), (data,)))
    (name,) = net.inputs
    made = net.evaluate(**{name: data.numpy()})[0]
    return made, function(data).numpy()


SPECTRA: dict[str, Callable[[Any], Any]] = {
    "power": lambda x: torch.view_as_real(torch.fft.rfft(x)).square().sum(-1),
    "whole": lambda x: torch.view_as_real(torch.fft.fft(x)),
    "magnitude": lambda x: torch.fft.rfft(x, norm="ortho").abs(),
    "scaled": lambda x: torch.fft.rfft(x, norm="forward").abs() + 1,
    "turned": lambda x: torch.view_as_real(torch.fft.rfft(x).permute(1, 0)),
    "frames": lambda x: torch.stft(x, 8, 3, window=torch.hann_window(8), return_complex=True).abs(),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_transforms_that_end_in_real_numbers(name: str) -> None:
    data = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32))
    made, wanted = imported(SPECTRA[name], data)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


def test_complex_numbers_that_are_computed_with_are_refused() -> None:
    with pytest.raises(TorchImportError, match="_fft_r2c"):
        imported(lambda x: (torch.fft.rfft(x) * 2).abs(), torch.zeros(3, 20))
