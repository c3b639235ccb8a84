"""Tensor maps: what the driver is asked for, when, and what is refused."""

from typing import Any

import pytest

from loopwright.backends.c_family.kernel_source import TensorMap
from loopwright.backends.cuda import tensor_maps
from loopwright.backends.cuda.tensor_maps import HostMap
from loopwright.dialects.pixel_walk import Walk


class Encoder:
    """A driver that remembers what it was asked for."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> int:
        self.calls.append(tuple(list(a) if hasattr(a, "__len__") else a.value for a in arguments))
        return self.status


MAP = TensorMap(1, "f16", (3, 100, 64), (1, 8, 64), 128)


def test_a_map_is_made_once_for_each_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dimensions and boxes are given the innermost first, strides in bytes without it (cuTensorMapEncodeTiled)."""
    encoder = Encoder()
    monkeypatch.setattr(tensor_maps, "_encoder", lambda name: encoder if name == "cuTensorMapEncodeTiled" else None)
    made = HostMap(MAP)
    assert made.at % 64 == 0
    for address in (4096, 4096, 8192):
        made.move(address)
    at, element, rank, address, shape, strides, box, steps, interleave, swizzle, promotion, fill = encoder.calls[0]
    assert (at, element, rank, address) == (made.at, 6, 3, 4096)
    assert (shape, strides, box, steps) == ([64, 100, 3], [128, 12800], [64, 8, 1], [1, 1, 1])
    assert (interleave, swizzle, promotion, fill) == (0, 3, 2, 0)
    assert [call[3] for call in encoder.calls] == [4096, 8192]


def test_a_map_of_a_walk_has_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels and pixels are numbers, corners are counted from those of the image, x ahead of y."""
    encoder = Encoder()
    monkeypatch.setattr(tensor_maps, "_encoder", lambda name: encoder if name == "cuTensorMapEncodeIm2col" else None)
    HostMap(TensorMap(0, "f16", (16, 28, 30, 128), (192, 64), 128, Walk((-1, -2), (25, 28), (2, 3)))).move(4096)
    _, element, rank, _, shape, strides, lower, upper, channels, pixels, steps, *others = encoder.calls[0]
    assert (element, rank, shape) == (6, 4, [128, 30, 28, 16]) and strides == [256, 7680, 215040]
    assert (lower, upper, channels, pixels, steps) == ([-2, -1], [-1, -2], 64, 192, [1, 3, 2, 1])
    assert others == [0, 3, 2, 0]


def test_arrays_that_start_between_16_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "_encoder", lambda name: Encoder())
    with pytest.raises(ValueError, match=r"copied in bulk starts at a multiple of 16 bytes, this one is 2 off"):
        HostMap(MAP).move(4098)


def test_maps_that_the_driver_refuses_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "_encoder", lambda name: Encoder(status=1))
    with pytest.raises(ValueError, match=r"the driver makes no tensor map of TensorMap\(buffer=1.*\(error 1\)"):
        HostMap(MAP).move(4096)
