"""Tensor maps: what the driver is asked for, when, and what is refused."""

from typing import Any

import pytest

from loopwright.backends.c_family.kernel_source import TensorMap
from loopwright.backends.cuda import tensor_maps
from loopwright.backends.cuda.tensor_maps import HostMap


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
    monkeypatch.setattr(tensor_maps, "_encoder", lambda: encoder)
    made = HostMap(MAP)
    assert made.at % 64 == 0
    for address in (4096, 4096, 8192):
        made.move(address)
    at, element, rank, address, shape, strides, box, steps, interleave, swizzle, promotion, fill = encoder.calls[0]
    assert (at, element, rank, address) == (made.at, 6, 3, 4096)
    assert (shape, strides, box, steps) == ([64, 100, 3], [128, 12800], [64, 8, 1], [1, 1, 1])
    assert (interleave, swizzle, promotion, fill) == (0, 3, 2, 0)
    assert [call[3] for call in encoder.calls] == [4096, 8192]


def test_arrays_that_start_between_16_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "_encoder", Encoder)
    with pytest.raises(ValueError, match=r"copied in bulk starts at a multiple of 16 bytes, this one is 2 off"):
        HostMap(MAP).move(4098)


def test_maps_that_the_driver_refuses_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_maps, "_encoder", lambda: Encoder(status=1))
    with pytest.raises(ValueError, match=r"the driver makes no tensor map of TensorMap\(buffer=1.*\(error 1\)"):
        HostMap(MAP).move(4096)
