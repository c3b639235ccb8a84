"""Small random DAGs of tensor expressions: contractions, windows, stencils, rows, element by element, in any order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from loopwright import te, topi
from loopwright.te.reduce import Reduce

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 19, 24, 33)
MOST_ELEMENTS = 6000
MOST_WORK = 300_000


def random_workload(random: Random) -> list[te.Tensor]:
    """Inputs and outputs; each stage reads what came before, inputs are added as they are needed."""
    inputs = [_input(random, 0, random.randint(1, 4))]
    stages: list[te.Tensor] = []
    for _ in range(random.randint(1, 4)):
        source = stages[-1] if stages and random.random() < 0.85 else random.choice([*inputs, *stages])
        step = random.choice(STEPS)
        made = step(random, source, inputs, len(stages))
        if made is not None and _elements(made) <= MOST_ELEMENTS:
            stages.append(made)
    if not stages:
        stages.append(topi.nn.relu(inputs[0]))
    outputs = [stages[-1]]
    if len(stages) > 1 and random.random() < 0.2:
        outputs.append(stages[0])
    return [*_used(inputs, outputs), *outputs]


def _used(inputs: list[te.Tensor], outputs: list[te.Tensor]) -> list[te.Tensor]:
    module = te.create_module([*inputs, *outputs])
    arguments = next(iter(module.ops)).regions[0].block.args
    return [tensor for tensor, argument in zip(inputs, arguments, strict=False) if any(True for _ in argument.uses)]


def _elements(tensor: te.Tensor) -> int:
    total = 1
    for n in tensor.shape:
        total *= n
    return total


def _input(random: Random, number: int, rank: int, shape: tuple[int, ...] | None = None) -> te.Tensor:
    while shape is None or _size(shape) > MOST_ELEMENTS:
        shape = tuple(random.choice(EXTENTS) for _ in range(rank))
    return te.placeholder(shape, name=f"x{number}", constant=random.random() < 0.15)


def _size(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _unary(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    return random.choice([topi.nn.relu, topi.tanh, topi.sigmoid, lambda x: topi.multiply(x, 0.5)])(t)


def _binary(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    shape = tuple(1 if random.random() < 0.3 else e for e in t.shape)
    inputs.append(_input(random, len(inputs), 0, shape[random.randrange(len(shape)) :]))
    return random.choice([topi.add, topi.multiply, topi.maximum])(t, inputs[-1])


def _contraction(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    """Sum of products over some axes of `t`, with batch axes and new ones, as einsum has them."""
    rank = len(t.shape)
    reduced = set(random.sample(range(rank), random.randint(1, min(2, rank))))
    shared = {d for d in range(rank) if d not in reduced and random.random() < 0.3}
    fresh = [random.choice(EXTENTS[1:]) for _ in range(random.randint(0, 2))]
    order = [*sorted(shared | reduced), *(-1 - i for i in range(len(fresh)))]
    random.shuffle(order)
    other_shape = tuple(t.shape[d] if d >= 0 else fresh[-1 - d] for d in order)
    out = [*(d for d in range(rank) if d not in reduced), *(-1 - i for i in range(len(fresh)))]
    if random.random() < 0.3:
        random.shuffle(out)
    shape = tuple(t.shape[d] if d >= 0 else fresh[-1 - d] for d in out)
    work = _size(shape)
    for d in reduced:
        work *= t.shape[d]
    if not shape or work > MOST_WORK or _size(other_shape) > MOST_ELEMENTS:
        return None
    other = t if random.random() < 0.1 and other_shape == tuple(t.shape) else None
    if other is None:
        inputs.append(_input(random, len(inputs), 0, other_shape))
        other = inputs[-1]
    axes = {d: te.reduce_axis((0, t.shape[d]), f"r{n}_{d}") for d in sorted(reduced)}

    def body(*at: te.Expr) -> Reduce:
        where = {**dict(zip(out, at, strict=True)), **axes}
        return te.sum(
            t[tuple(where[d] for d in range(rank))] * other[tuple(where[d] for d in order)], axis=[*axes.values()]
        )

    return te.compute(shape, body, name=f"contraction{n}")


def _reduction(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    axis = random.randrange(len(t.shape))
    keep = len(t.shape) == 1 or random.random() < 0.4
    reduce = random.choice([topi.sum, topi.max, topi.min, topi.mean])
    return reduce(t, axis=axis, keepdims=keep) if random.random() < 0.8 else reduce(t, axis=None, keepdims=True)


def _window(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    """A weighted or plain reduction over windows of the last axes, padded or not, with a stride."""
    rank = min(len(t.shape), random.randint(1, 2))
    sizes = [random.randint(1, min(3, e)) for e in t.shape[-rank:]]
    stride, pad = random.randint(1, 2), random.random() < 0.5
    around = [0] * (len(t.shape) - rank) + [1] * rank
    data = topi.nn.pad(t, around, around) if pad else t
    shape = (*data.shape[:-rank], *((e - k) // stride + 1 for e, k in zip(data.shape[-rank:], sizes, strict=True)))
    axes = [te.reduce_axis((0, k), f"w{n}_{i}") for i, k in enumerate(sizes)]
    weight = None
    if random.random() < 0.5:
        inputs.append(_input(random, len(inputs), 0, tuple(sizes)))
        weight = inputs[-1]

    def body(*at: te.Expr) -> Reduce:
        value = data[(*at[:-rank], *(i * stride + a for i, a in zip(at[-rank:], axes, strict=True)))]
        return te.sum(value * weight[tuple(axes)], axis=axes) if weight is not None else te.max(value, axis=axes)

    return te.compute(shape, body, name=f"window{n}")


def _stencil(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    """Differences of neighbours along one axis."""
    axis = random.randrange(len(t.shape))
    if t.shape[axis] < 3:
        return None
    shape = tuple(e - 2 if d == axis else e for d, e in enumerate(t.shape))

    def at(i: tuple[te.Expr, ...], step: int) -> te.Expr:
        return t[tuple(e + step if d == axis else e for d, e in enumerate(i))]

    return te.compute(shape, lambda *i: at(i, 0) - at(i, 1) * 2.0 + at(i, 2), name=f"stencil{n}")


def _shape(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    order = [*range(len(t.shape))]
    random.shuffle(order)
    choice = random.randrange(3)
    if choice == 0:
        return topi.transpose(t, tuple(order))
    if choice == 1:
        return topi.concatenate([t, t], axis=random.randrange(len(t.shape)))
    return topi.reshape(t, (_elements(t),))


def _rows(random: Random, t: te.Tensor, inputs: list[te.Tensor], n: int) -> te.Tensor | None:
    return topi.nn.softmax(t, random.choice([-1, 0]))


STEPS: list[Callable[[Random, te.Tensor, list[te.Tensor], int], te.Tensor | None]] = [
    _unary,
    _binary,
    _contraction,
    _contraction,
    _contraction,
    _reduction,
    _window,
    _window,
    _stencil,
    _shape,
    _rows,
]
