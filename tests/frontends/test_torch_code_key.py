"""Modules that are known by their code: equal ones are not traced again, and others are."""

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.code_description import Undescribed, description  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
F: Any = nn.functional
SCALE = 2.0


@pytest.fixture(autouse=True)
def folder(own_cache: Path, nothing_compiled: None) -> Path:
    """The folder of graphs that are kept, in which none is yet."""
    return own_cache / "graphs"


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The modules that torch.export traces from here on."""
    made: list[Any] = []
    export = torch.export.export

    def counted(module: Any, *given: Any, **options: Any) -> Any:
        made.append(module)
        return export(module, *given, **options)

    monkeypatch.setattr(torch.export, "export", counted)
    return made


def scaled(x: Any) -> Any:
    return x * SCALE


class Block(nn.Module):
    """A module of functions, globals and attributes."""

    def __init__(self, activation: Callable[[Any], Any] = F.relu, steps: int = 2, width: int = 6) -> None:
        super().__init__()
        self.layer, self.activation, self.settings = nn.Linear(6, width), activation, {"steps": steps}
        self.register_buffer("shift", torch.ones(width), persistent=False)

    def forward(self, x: Any, *, factor: float = 1.0) -> dict[str, Any]:
        y = self.layer(x) + self.shift
        for _ in range(self.settings["steps"]):
            y = scaled(self.activation(y))
        return {"made": y * factor, "sum": y.sum(-1)}


ROWS = torch.linspace(-1, 1, 24).reshape(4, 6)


def block(**options: Any) -> Any:
    torch.manual_seed(0)
    return Block(**options).eval()


def optimized(module: Any, *inputs: Any, **kwargs: Any) -> Any:
    """Compile, and hold a call to PyTorch's."""
    with torch.no_grad():
        fast = lw.torch.optimize(module, inputs, kwargs)
        torch.testing.assert_close(fast(*inputs, **kwargs), module(*inputs, **kwargs), rtol=1e-4, atol=1e-5)
    return fast


def test_a_module_of_the_same_code_is_not_traced_again(traces: list[Any]) -> None:
    for _ in range(3):
        optimized(block(), ROWS)
        optimized(block(), ROWS, factor=3.0)
    assert len(traces) == 2


def test_other_code_attributes_inputs_and_globals_are_traced(
    traces: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    optimized(block(), ROWS)
    for number, module in enumerate(
        (
            block(activation=F.silu),
            block(steps=3),
            block(width=5),
            block(activation=lambda x: x.clamp(min=0)),
            block(activation=functools.partial(F.leaky_relu, negative_slope=0.2)),
            block(activation=functools.partial(F.leaky_relu, negative_slope=0.3)),
            nn.Sequential(block().layer, nn.ReLU()),
        )
    ):
        optimized(module, ROWS)
        assert len(traces) == 2 + number
    optimized(block(), ROWS[:2])
    optimized(block().double(), ROWS.double())
    assert len(traces) == 10
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    optimized(block(), ROWS)
    monkeypatch.setattr(sys.modules[__name__], "scaled", lambda x: x - SCALE)
    optimized(block(), ROWS)
    assert len(traces) == 12


def test_closures_and_defaults_count(traces: list[Any]) -> None:
    def shifted(by: float) -> Any:
        return block(activation=lambda x: x + by)

    for by in (1.0, 2.0, 1.0):
        optimized(shifted(by), ROWS)
    for by in (1.0, 2.0, 1.0):
        optimized(block(activation=lambda x, by=by: x + by), ROWS)
    assert len(traces) == 4


def test_a_patched_method_counts(traces: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    optimized(block(), ROWS)
    monkeypatch.setattr(Block, "forward", lambda self, x: self.layer(x) * 2)
    optimized(block(), ROWS)
    module = block()
    module.forward = lambda x: module.layer(x) * 3
    optimized(module, ROWS)
    assert len(traces) == 3


def test_hooks_count(traces: list[Any]) -> None:
    optimized(block(), ROWS)
    module = block()
    module.layer.register_forward_hook(lambda _module, _given, made: made * 2)
    optimized(module, ROWS)
    hook = nn.modules.module.register_module_forward_hook(lambda _module, _given, made: None)
    try:
        optimized(block(), ROWS)
    finally:
        hook.remove()
    assert len(traces) == 3
    optimized(block(), ROWS)
    assert len(traces) == 3


class Tied(nn.Module):
    def __init__(self, is_tied: bool) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(6, 6), nn.Linear(6, 6)
        if is_tied:
            self.other.weight = self.one.weight

    def forward(self, x: Any) -> Any:
        return self.other(torch.relu(self.one(x)))


def test_shared_parameters_count(traces: list[Any]) -> None:
    torch.manual_seed(0)
    for is_tied in (False, True, False, True):
        optimized(Tied(is_tied).eval(), ROWS)
    assert len(traces) in (2, 3, 4), "values differ, and networks with them"
    one, other = Tied(False), Tied(True)
    assert description(one) != description(other) and description(one) == description(Tied(False))


def test_written_and_replaced_parameters_are_seen(traces: list[Any]) -> None:
    optimized(block(), ROWS)
    module = block()
    fast = optimized(module, ROWS)
    assert len(traces) == 1
    with torch.no_grad():
        module.layer.weight.mul_(2)
        torch.testing.assert_close(fast(ROWS), module(ROWS), rtol=1e-4, atol=1e-5)
        with torch.autocast("cpu"):
            module.shift.add_(2)
            fast(ROWS)
    assert len(traces) == 2 and traces[1] is module
    torch.testing.assert_close(fast(ROWS), module(ROWS), rtol=1e-4, atol=1e-5)


class Tables(nn.Module):
    """A module with a tensor that is no buffer."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.layer, self.table = nn.Linear(6, 6), torch.full((6,), value)

    def forward(self, x: Any) -> Any:
        return self.layer(x) * self.table


def test_values_of_other_tensors_count() -> None:
    torch.manual_seed(0)
    assert description(Tables(1.0)) != description(Tables(2.0))
    for value in (1.0, 2.0, 1.0):
        optimized(Tables(value).eval(), ROWS)


def test_what_cannot_be_described_is_said() -> None:
    module = block()
    with Path(__file__).open() as file:
        things: list[Any] = [file, [].append, iter(()), threading.Lock(), ModuleType("made"), re.compile("a")]
        for thing in things:
            module.settings = {"steps": 2, "thing": thing}
            with pytest.raises(Undescribed):
                description(module)
    optimized(module, ROWS)


_PROGRAM = """
import torch, hashlib
from loopwright.frontends.torch.code_description import description
torch.manual_seed(0)
layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU(), torch.nn.MultiheadAttention(4, 2)]
print(hashlib.sha256(description(torch.nn.ModuleList(layers)).encode()).hexdigest())
"""


def test_descriptions_are_equal_in_other_processes() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, **_paths()},
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] and runs[0].strip()


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(path for path in sys.path if path), "OMP_NUM_THREADS": "1"}
