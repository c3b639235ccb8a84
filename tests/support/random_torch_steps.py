"""Steps of random PyTorch networks: functions element by element, reductions, moves, joins, choices, products."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from random_torch import Maker, RefusedError
from torch import Tensor, nn

Draw = Callable[[Maker, int], None]

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    **{name: getattr(torch, name) for name in ("relu", "sigmoid", "tanh", "abs", "neg", "erf", "sin", "cos", "square")},
    **{name: getattr(torch, name) for name in ("floor", "round", "sign", "atan", "exp", "expm1", "ceil", "trunc")},
    **{name: getattr(F, name) for name in ("gelu", "silu", "hardswish", "elu", "softplus", "leaky_relu", "mish")},
    **{name: getattr(F, name) for name in ("hardsigmoid", "relu6", "selu", "logsigmoid", "softsign", "hardtanh")},
    "gelu_tanh": lambda v: F.gelu(v, approximate="tanh"),
    "scaled": lambda v: v * 0.5 + 1,
    "clamped": lambda v: v.clamp(-1, 1),
    "at_least": lambda v: v.clamp(min=0.25),
    "power": lambda v: v.pow(2),
    "cubed": lambda v: v**3,
    "inverse_root": lambda v: (v.abs() + 1).rsqrt(),
    "logarithm": lambda v: torch.log1p(v.abs()),
    "root": lambda v: (v.abs() + 0.1).sqrt(),
    "reciprocal": lambda v: 1 / (v.abs() + 0.5),
}
WHOLE: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "neg": torch.neg,
    "tripled": lambda v: v * 3 + 1,
    "halved": lambda v: torch.div(v, 2, rounding_mode="floor"),
    "rest": lambda v: v % 3,
}


def _needs(held: bool) -> None:
    if not held:
        raise RefusedError("of another kind")


def _unary(m: Maker, i: int) -> None:
    table = FUNCTIONS if m.numbers[i].is_float else WHOLE
    name = m.r.choice(sorted(table))
    m.add(name, lambda layers, v: table[name](v), i)


def _binary(m: Maker, i: int) -> None:
    functions: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "add": torch.add,
        "mul": torch.mul,
        "sub": torch.sub,
        "maximum": torch.maximum,
        "minimum": torch.minimum,
        "quotient": lambda a, b: a / (b.abs() + 1),
        "add_twice": lambda a, b: torch.add(a, b, alpha=2),
        "greater": torch.gt,
        "at_most": torch.le,
        "where": lambda a, b: torch.where(a > 0, a, b),
    }
    name, j = m.r.choice(sorted(functions)), m.r.randrange(len(m.numbers))
    m.add(name, lambda layers, a, b: functions[name](a, b), i, j)


def _reduction(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 0)
    axis, keep = m.r.randrange(rank), m.chance(0.5)
    name = m.r.choice(["sum", "mean", "amax", "amin", "prod", "var", "std", "logsumexp", "norm", "any", "all"])
    if name in ("any", "all"):
        m.add(name, lambda layers, v: getattr(v > 0, name)(dim=axis, keepdim=keep), i)
    else:
        m.add(f"{name}[{axis}]", lambda layers, v: getattr(v, name)(dim=axis, keepdim=keep), i)


def _reduction_of_several(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 1)
    axes = tuple(m.r.sample(range(rank), m.r.randint(2, rank)))
    name, keep = m.r.choice(("sum", "mean", "amax")), m.chance(0.5)
    m.add(f"{name}{list(axes)}", lambda layers, v: getattr(v, name)(dim=axes, keepdim=keep), i)


def _less_mean(m: Maker, i: int) -> None:
    m.add("less_mean", lambda layers, v: v - v.mean(), i)


def _permute(m: Maker, i: int) -> None:
    order = list(range(m.numbers[i].plain.dim()))
    m.r.shuffle(order)
    m.add(f"permute{order}", lambda layers, v: v.permute(order), i)


def _view(m: Maker, i: int) -> None:
    views: dict[str, Callable[[Tensor], Tensor]] = {
        "flatten": lambda v: v.flatten(1),
        "ravel": lambda v: v.reshape(-1),
        "unsqueeze": lambda v: v.unsqueeze(0),
        "squeeze": lambda v: v.squeeze(),
        "column": lambda v: v.reshape(v.shape[0], -1, 1),
        "row": lambda v: v.reshape(*v.shape[:-1], 1, v.shape[-1]),
        "turned": lambda v: v.transpose(-1, -2).contiguous().view(-1, v.shape[-2]),
        "expand": lambda v: v.unsqueeze(-1).expand(*v.shape, 3),
        "halves": lambda v: v.reshape(*v.shape[:-1], 2, v.shape[-1] // 2).transpose(-1, -2),
    }
    name = m.r.choice(sorted(views))
    m.add(name, lambda layers, v: views[name](v), i)


def _cat(m: Maker, i: int) -> None:
    shape = m.numbers[i].plain.shape
    _needs(len(shape) > 0)
    axis = m.r.randrange(len(shape))

    def fits(j: int) -> bool:
        other = m.numbers[j].plain
        return other.dim() == len(shape) and all(
            a == b for d, (a, b) in enumerate(zip(other.shape, shape, strict=True)) if d != axis
        )

    others = [j for j in range(len(m.numbers)) if fits(j)]
    taken = [m.r.choice(others) for _ in range(m.r.randint(1, 3))]
    m.add(f"cat[{axis}]", lambda layers, *v: torch.cat(v, axis), i, *taken)


def _stack(m: Maker, i: int) -> None:
    axis = m.r.randint(0, m.numbers[i].plain.dim())
    m.add(f"stack[{axis}]", lambda layers, v: torch.stack([v, v * 2, v], axis), i)


def _split(m: Maker, i: int) -> None:
    shape = m.numbers[i].plain.shape
    _needs(len(shape) > 0)
    axis = m.r.randrange(len(shape))
    size = m.r.randint(1, max(1, shape[axis]))
    _needs(shape[axis] / size < 9)
    m.add(f"split[{axis}:{size}]", lambda layers, v: torch.split(v, size, axis), i)


def _slice(m: Maker, i: int) -> None:
    shape = m.numbers[i].plain.shape
    _needs(len(shape) > 0)
    axis = m.r.randrange(len(shape))
    _needs(shape[axis] > 0)
    low = m.r.randrange(shape[axis])
    places = (slice(None),) * axis + (slice(low, m.r.randint(low + 1, shape[axis]), m.r.choice((1, 1, 2, 3))),)
    m.add(f"slice[{axis}]", lambda layers, v: v[places], i)


def _pad(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 0)
    pads = [m.r.choice((0, 1, 2, 3, -1)) for _ in range(2 * m.r.randint(1, min(2, rank)))]
    value, mode = m.r.choice((0.0, 0.5)), "constant"
    if rank > 2 and m.chance(0.3):
        mode, pads = m.r.choice(("reflect", "replicate", "circular")), [abs(n) for n in pads[: 2 * (rank - 2)]]
    kept = {"value": value} if mode == "constant" else {}
    m.add(f"pad {mode} {pads}", lambda layers, v: F.pad(v, pads, mode, **kept), i)


def _parameter(m: Maker, i: int) -> None:
    shape = m.numbers[i].plain.shape
    _needs(len(shape) > 0 and m.numbers[i].is_float)
    shape = shape[-m.r.randint(1, len(shape)) :]
    name = m.layer(nn.ParameterList([nn.Parameter(torch.randn(shape))]))
    multiplied = m.chance(0.5)
    m.add("parameter", lambda layers, v: v * layers[name][0] if multiplied else v + layers[name][0], i)


def _whole(m: Maker, i: int) -> None:
    dtype = m.r.choice((torch.int32, torch.int64, torch.bool, torch.int8))
    m.add(f"to {dtype}", lambda layers, v: v.to(dtype) if v.dtype != torch.bool else v.to(torch.int32), i)


def _flip(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 0)
    axis, by = m.r.randrange(rank), m.r.choice((0, 1, 2, -1))
    if by:
        m.add(f"roll[{axis}]", lambda layers, v: torch.roll(v, by, axis), i)
    else:
        m.add(f"flip[{axis}]", lambda layers, v: v.flip(axis), i)


def _softmax(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 0 and m.numbers[i].is_float)
    axis, function = m.r.randrange(rank), m.r.choice((F.softmax, F.softmax, F.log_softmax))
    m.add(f"{function.__name__}[{axis}]", lambda layers, v: function(v, dim=axis), i)


def _scan(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 0)
    axis, function = m.r.randrange(rank), m.r.choice((torch.cumsum, torch.cumprod))
    m.add(f"{function.__name__}[{axis}]", lambda layers, v: function(v, axis), i)


def _place(m: Maker, i: int) -> None:
    rank = m.numbers[i].plain.dim()
    _needs(rank > 0 and m.numbers[i].plain.dtype != torch.bool)
    axis, name = m.r.randrange(rank), m.r.choice(("argmax", "argmin", "topk", "sort"))
    most = min(2, m.numbers[i].plain.shape[axis])
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "argmax": lambda v: v.argmax(axis),
        "argmin": lambda v: v.argmin(axis),
        "topk": lambda v: torch.topk(v, most, axis)[0],
        "sort": lambda v: torch.sort(v, axis)[0],
    }
    m.add(f"{name}[{axis}]", lambda layers, v: calls[name](v), i)


def _gather(m: Maker, i: int) -> None:
    shape = m.numbers[i].plain.shape
    _needs(len(shape) > 0 and shape[0] > 0)
    if m.chance(0.5):
        m.add("rows", lambda layers, v: v[torch.tensor([0, shape[0] - 1, 0], device=v.device)], i)
        return
    j = m.r.randrange(len(m.numbers))
    _needs(m.numbers[j].plain.dtype == torch.int64)
    axis = m.r.randrange(len(shape))
    m.add(f"index_select[{axis}]", lambda layers, v, p: v.index_select(axis, p.abs().flatten() % shape[axis]), i, j)


def _product(m: Maker, i: int) -> None:
    """A product of two values, turned where they have to be."""
    _needs(m.numbers[i].is_float and m.numbers[i].plain.dim() > 1)
    ways: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "matmul": torch.matmul,
        "matmul_turned": lambda a, b: a @ b.transpose(-1, -2),
        "matmul_first_turned": lambda a, b: a.transpose(-1, -2) @ b,
        "einsum": lambda a, b: torch.einsum("...ij,...kj->...ki", a, b),
    }
    name = m.r.choice(sorted(ways))
    for j in m.r.sample(range(len(m.numbers)), min(4, len(m.numbers))):
        try:
            m.add(name, lambda layers, a, b: ways[name](a, b) * 0.3, i, j)
        except RefusedError:
            continue
        return


STEPS: tuple[Draw, ...] = (
    *(_unary, _unary, _unary, _binary, _binary, _binary, _reduction, _reduction, _reduction_of_several, _less_mean),
    *(_permute, _permute, _view, _view, _cat, _cat, _stack, _split, _slice, _pad, _parameter, _parameter, _whole),
    *(_flip, _softmax, _softmax, _scan, _place, _gather, _product, _product),
)
