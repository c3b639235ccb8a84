"""Fourier transforms in programs of torch.export, as products with tables."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch_watched import Watched, close  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.errors import TorchImportError  # noqa: E402


def imported(function: Callable[[Any], Any], data: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Results of a function as a network, and PyTorch's."""

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
    "of another axis": lambda x: torch.fft.rfft(x, dim=0).abs(),
    "of both axes": lambda x: torch.fft.rfft2(x, norm="ortho").abs(),
    "mixed tokens": lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real,
    "there and back": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=20),
    "back to an odd number": lambda x: torch.fft.irfft(torch.fft.rfft(x)[:, :5], n=9, norm="ortho"),
    "back of both axes": lambda x: torch.fft.irfft2(torch.fft.rfft2(x) * 2, s=(3, 20)),
    "back to complex numbers": lambda x: torch.fft.ifft(-torch.fft.fft(x)).imag,
    "filtered": lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.linspace(1, 0, 11), n=20),
    "frames and back": lambda x: _back(torch.stft(x, 8, 2, window=torch.hann_window(8), return_complex=True) * 2),
}


def _back(frames: Any) -> Any:
    return torch.istft(frames, 8, 2, window=torch.hann_window(8), length=20)


@pytest.mark.parametrize("name", SPECTRA)
def test_transforms_that_end_in_real_numbers(name: str) -> None:
    data = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32))
    made, wanted = imported(SPECTRA[name], data)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)


def test_spectra_that_are_returned_are_refused() -> None:
    with pytest.raises(TorchImportError, match="_fft_r2c"):
        imported(torch.fft.rfft, torch.zeros(3, 20))


def test_tables_have_a_largest_size() -> None:
    with pytest.raises(TorchImportError, match="_fft_r2c"):
        imported(lambda x: torch.fft.fft(x).abs(), torch.zeros(1, 5000))


@pytest.mark.parametrize(
    ("name", "function", "extents", "stays"),
    [
        ("along an axis", lambda x: torch.fft.irfft(torch.fft.rfft(x * 2) * 1j, n=x.shape[-1]) + 1, (2, 12), False),
        ("too long", lambda x: torch.fft.rfft(x * 2).abs() + 1, (2, 130), True),
        ("of two axes", lambda x: torch.fft.irfft2(_lowest(torch.fft.rfft2(x)), s=(6, 8)) * 2, (2, 6, 8), False),
    ],
)
def test_small_transforms_are_ours_under_torch_compile(
    name: str, function: Callable[[Any], Any], extents: tuple[int, ...], stays: bool
) -> None:
    data = torch.from_numpy(np.random.default_rng(0).standard_normal(extents).astype(np.float32))
    watched = Watched(function)
    with torch.no_grad():
        close(watched(data), function(data))
    assert bool(watched.stays) == ("_fft_r2c" in watched.stays) == stays


def _lowest(spectrum: Any) -> Any:
    """A spectrum of its lowest bins alone, written into zeros, as Fourier neural operators do."""
    made = torch.zeros_like(spectrum)
    made[:, :3, :3] = spectrum[:, :3, :3] * (1 - 2j)
    return made
