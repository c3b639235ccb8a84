"""Random PyTorch networks whose results do not hang on how numbers are rounded, each with how far others may be off.

A network grows a step at a time. Each value is known three times: in the network's own type, in double precision, and
in double precision with parameters, inputs and results off by some roundings. A step stays only where the last two
are alike: by how much they differ, times a few, is how far another implementation may be off (`Number.tolerance`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

NOISE = {torch.float32: 1e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}
"""By how much results may be off, relative to them: some roundings, and what approximations of functions are off."""
MOST_SPREAD = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.2}
"""By how much two values of a tensor may differ, relative to its largest element."""
ROUNDINGS = 10
"""Distances that another order of a sum may lie off, in those of the random differences."""
MOST_ELEMENTS, LARGEST = 60_000, 1e4
EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 31, 33, 40)

Call = Callable[..., Any]
"""A function of the network's layers and of a step's tensors."""


class RefusedError(Exception):
    """A step that PyTorch does not run, or whose results are not tame."""


@dataclass(frozen=True)
class Number:
    """A tensor: in the network's type, exact (in double precision), and off by some roundings."""

    plain: Tensor
    exact: Tensor
    near: Tensor

    @property
    def is_float(self) -> bool:
        return self.plain.is_floating_point()

    def tolerance(self, dtype: torch.dtype) -> float:
        """By how much a right result may be off the exact one."""
        if not self.is_float or not self.exact.numel():
            return 0.0
        largest = float(self.exact.abs().max())
        noise = NOISE.get(self.plain.dtype, NOISE[dtype])
        return ROUNDINGS * (float((self.exact - self.near).abs().max()) + noise * largest / 4)


@dataclass(frozen=True)
class Step:
    """A call of a network, the numbers of the values that it takes, and its name."""

    name: str
    call: Call
    sources: tuple[int, ...]


class RandomNetwork(nn.Module):
    """Steps on inputs, some values of which are returned."""

    def __init__(self, layers: nn.ModuleDict, steps: Sequence[Step], outputs: Sequence[int]) -> None:
        super().__init__()
        self.layers, self.steps, self.outputs = layers, list(steps), list(outputs)

    def forward(self, *inputs: Tensor) -> Any:
        values = list(inputs)
        for step in self.steps:
            values += listed(step.call(self.layers, *(values[n] for n in step.sources)))
        return tuple(values[n] for n in self.outputs)


def listed(result: Any) -> list[Tensor]:
    return list(result) if isinstance(result, tuple | list) else [result]


@dataclass
class Maker:
    """A network under way."""

    r: Random
    dtype: torch.dtype
    numbers: list[Number] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    layers: nn.ModuleDict = field(default_factory=nn.ModuleDict)
    _exact: nn.ModuleDict = field(default_factory=nn.ModuleDict)
    _near: nn.ModuleDict = field(default_factory=nn.ModuleDict)

    def chance(self, share: float) -> bool:
        return self.r.random() < share

    def extent(self, most: int = 9) -> int:
        return self.r.choice([n for n in EXTENTS if n <= most])

    def input(self, *shape: int, whole: bool = False) -> int:
        """Add an input: numbers about 0, or whole ones from 0 to 4."""
        if whole:
            made = torch.randint(0, 5, shape)
            self.numbers.append(Number(made, made, made))
        else:
            made = torch.randn(shape).to(self.dtype)
            self.numbers.append(Number(made, made.double(), self._off(made.double())))
        return len(self.numbers) - 1

    def layer(self, module: nn.Module) -> str:
        """Keep a layer, and return its name."""
        name = f"layer{len(self.layers)}"
        self.layers[name] = module.eval().to(self.dtype)
        self._exact[name] = copy.deepcopy(self.layers[name]).double()
        self._near[name] = copy.deepcopy(self._exact[name])
        with torch.no_grad():
            for parameter in self._near[name].parameters():
                parameter.copy_(self._off(parameter))
        return name

    def add(self, name: str, call: Call, *sources: int) -> None:
        """Add a step, or raise RefusedError."""
        try:
            with torch.no_grad():
                plain = listed(call(self.layers, *(self.numbers[n].plain for n in sources)))
                exact = listed(call(self._exact, *(self.numbers[n].exact for n in sources)))
                near = listed(call(self._near, *(self.numbers[n].near for n in sources)))
        except (ValueError, RuntimeError, IndexError, TypeError, NotImplementedError, ZeroDivisionError) as error:
            raise RefusedError(str(error)) from error
        made = [Number(p, e, self._off(n)) for p, e, n in zip(plain, exact, near, strict=True)]
        if not all(map(self._is_tame, made)):
            raise RefusedError("not tame")
        self.steps.append(Step(name, call, sources))
        self.numbers += made

    def finished(self, outputs: Sequence[int]) -> RandomNetwork:
        return RandomNetwork(self.layers, self.steps, outputs).eval()

    def _off(self, value: Tensor) -> Tensor:
        if not value.is_floating_point():
            return value
        return value * (1 + NOISE[self.dtype] * (2 * torch.rand(value.shape, dtype=torch.float64) - 1))

    def _is_tame(self, number: Number) -> bool:
        plain, exact, near = number.plain, number.exact, number.near
        if plain.numel() > MOST_ELEMENTS or plain.is_complex():
            return False
        if not number.is_float:
            return plain.shape == exact.shape and bool((plain == exact).all() and (exact == near).all())
        if not exact.numel():
            return True
        if exact.dtype != torch.float64:  # a step of a type of its own
            return False
        largest, spread = float(exact.abs().max()), float((exact - near).abs().max())
        kept = float((plain.double() - exact).abs().max()) <= number.tolerance(self.dtype)  # of PyTorch itself
        return kept and largest < LARGEST and spread <= MOST_SPREAD[self.dtype] * max(largest, 1e-3)


@dataclass(frozen=True)
class Sample:
    """A network, its inputs, and what is right."""

    network: RandomNetwork
    inputs: list[Tensor]
    wanted: list[Number]
    dtype: torch.dtype

    def text(self) -> str:
        """The network in a few lines."""
        shapes = " ".join(f"{tuple(x.shape)}{'' if x.is_floating_point() else 'i'}" for x in self.inputs)
        steps = "; ".join(f"{step.name}({', '.join(map(str, step.sources))})" for step in self.network.steps)
        return f"{str(self.dtype)[6:]} on {shapes}: {steps} -> {self.network.outputs}"

    def part(self, outputs: Sequence[int]) -> Sample:
        """The same network with fewer outputs; `outputs` are places in those that it has."""
        network = RandomNetwork(self.network.layers, self.network.steps, [self.network.outputs[n] for n in outputs])
        return Sample(network.eval(), self.inputs, [self.wanted[n] for n in outputs], self.dtype)

    def doubled(self) -> Sample | None:
        """The same on inputs of twice as many rows, each there twice; None where the network takes no others."""
        inputs = [torch.cat([x, x]) for x in self.inputs]
        try:
            with torch.no_grad():
                plain = listed(copy.deepcopy(self.network).cpu()(*inputs))
                wide = [x.double() if x.is_floating_point() else x for x in inputs]
                exact = listed(copy.deepcopy(self.network).cpu().double()(*wide))
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None
        wanted = [
            Number(p, e, e + n.tolerance(self.dtype) / ROUNDINGS if n.is_float else e)
            for p, e, n in zip(plain, exact, self.wanted, strict=True)
        ]
        made = Sample(self.network, inputs, wanted, self.dtype)
        return made if made.first_wrong(plain) is None else None

    def first_wrong(self, got: Sequence[Any]) -> str | None:
        """Say what is wrong with results; None where nothing is."""
        if len(got) != len(self.wanted):
            return f"{len(got)} results for {len(self.wanted)}"
        for place, (value, number) in enumerate(zip(got, self.wanted, strict=True)):
            found, plain = torch.as_tensor(value).detach().cpu(), number.plain
            if (found.shape, found.dtype) != (plain.shape, plain.dtype):
                said = f"{found.dtype} {tuple(found.shape)} for {plain.dtype} {tuple(plain.shape)}"
                return f"result {place}: {said}"
            off = (found.double() - number.exact.double()).abs()
            allowed = number.tolerance(self.dtype)
            bad = ~(off <= allowed)
            if bool(bad.any()):
                at = tuple(torch.nonzero(bad)[0].tolist())
                said = f"{int(bad.sum())} of {bad.numel()} off, the first at {at}"
                return f"result {place}: {said}: {float(found[at])} for {float(number.exact[at])} within {allowed:.3g}"
        return None


def random_network(seed: int, most: int = 9) -> Sample:
    """A network of one to `most` steps, most of them on the value before."""
    from random_torch_layers import LAYERS
    from random_torch_steps import STEPS

    r = Random(seed)
    torch.manual_seed(seed)
    maker = Maker(r, r.choices((torch.float32, torch.float16, torch.bfloat16), (8, 1, 1))[0])
    _inputs(maker)
    given = len(maker.numbers)
    wanted, tried = r.randint(1, most), 0
    while len(maker.steps) < wanted and tried < 90:
        tried += 1
        last = maker.numbers[-1]
        place = len(maker.numbers) - 1 if maker.chance(0.75) and last.plain.numel() else r.randrange(len(maker.numbers))
        draw = r.choice(STEPS if maker.chance(0.55) else LAYERS)
        try:
            draw(maker, place)
        except RefusedError:
            continue
    outputs = [len(maker.numbers) - 1]
    while maker.chance(0.3):
        outputs.append(r.randrange(len(maker.numbers)))
    inputs = [number.plain for number in maker.numbers[:given]]
    return Sample(maker.finished(outputs), inputs, [maker.numbers[n] for n in outputs], maker.dtype)


def _inputs(m: Maker) -> None:
    rank = m.r.choice((2, 3, 3, 3, 4, 4, 4, 4, 5))
    shape = {
        2: lambda: [m.extent(), m.extent(40)],
        3: lambda: [m.extent(3), m.extent(33), m.extent(40)],
        4: lambda: [m.extent(3), m.r.choice((1, 2, 3, 4, 6, 8, 16)), m.extent(17), m.extent(17)],
        5: lambda: [1, m.extent(4), m.extent(6), m.extent(7), m.extent(7)],
    }[rank]()
    if m.chance(0.02):
        shape[m.r.randrange(rank)] = 0
    m.input(*shape)
    if m.chance(0.3):
        m.input(*shape)
    if m.chance(0.1):
        m.input(m.extent(), m.extent())
    if m.chance(0.15):
        m.input(*shape, whole=True)
