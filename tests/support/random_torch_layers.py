"""Layers of random PyTorch networks: linear, convolutions, pools, norms, attention, gates, resizes, recurrences."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from random_torch import Maker, RefusedError
from random_torch_steps import FUNCTIONS, Draw
from torch import Tensor, nn


def _shape(m: Maker, i: int, *ranks: int) -> list[int]:
    """The shape of a value of floats that has one of some ranks, if any are named, and no extent of 0."""
    plain = m.numbers[i].plain
    if not m.numbers[i].is_float or not plain.numel() or (ranks and plain.dim() not in ranks):
        raise RefusedError("of another kind")
    return list(plain.shape)


def _apply(m: Maker, name: str, module: nn.Module, i: int) -> None:
    layer = m.layer(module)
    m.add(name, lambda layers, v: layers[layer](v), i)


def _divisor(m: Maker, number: int) -> int:
    return m.r.choice([n for n in (1, 1, 2, 3, 4, number) if number % n == 0])


def _linear(m: Maker, i: int) -> None:
    shape = _shape(m, i)
    if not shape:
        raise RefusedError("of another kind")
    width = m.extent(40)
    layer = m.layer(nn.Linear(shape[-1], width, bias=m.chance(0.7)))
    act = FUNCTIONS[m.r.choice(("relu", "gelu", "silu", "sigmoid", "gelu_tanh"))] if m.chance(0.4) else None
    m.add(f"linear {width}", lambda layers, v: act(layers[layer](v)) if act else layers[layer](v), i)


def _conv(m: Maker, i: int) -> None:
    shape = _shape(m, i, 3, 4, 5)
    rank, channels = len(shape) - 2, shape[1]
    groups = _divisor(m, channels)
    out = groups * m.r.choice((1, 1, 2, 3, 4, 8, 16 if groups == 1 else 1))
    window = tuple(m.r.choice((1, 1, 2, 3, 3, 5, 7)) for _ in range(rank)) if m.chance(0.3) else None
    window = window or (m.r.choice((1, 1, 2, 3, 3, 5)),) * rank
    pads: tuple[int, ...] | int = m.r.choice((0, 1, tuple(k // 2 for k in window)))
    made = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[rank - 1](
        channels,
        out,
        window,
        stride=m.r.choice((1, 1, 2, 3)),
        padding=pads,
        dilation=m.r.choice((1, 1, 2, 3)),
        groups=groups,
        bias=m.chance(0.6),
        padding_mode=m.r.choice(("zeros",) * 8 + ("reflect", "circular", "replicate")),
    )
    uneven = [m.r.choice((0, 1, 2)) for _ in range(2 * rank)] if m.chance(0.2) else None
    layer, act = m.layer(made), m.r.choice((None, None, F.relu, F.silu, F.hardswish))
    said = (
        f"conv{rank} to {out} {window} stride {made.stride[0]} dilation {made.dilation[0]} groups {groups} pads {pads}"
    )

    def call(layers: nn.ModuleDict, v: Tensor) -> Tensor:
        made = layers[layer](F.pad(v, uneven) if uneven else v)
        return act(made) if act else made

    m.add(f"{said} uneven {uneven} {act.__name__ if act else ''}", call, i)


def _conv_transposed(m: Maker, i: int) -> None:
    shape = _shape(m, i, 3, 4, 5)
    rank, channels = len(shape) - 2, shape[1]
    groups, window, stride = _divisor(m, channels), m.r.choice((1, 2, 3, 4, 5)), m.r.choice((1, 2, 2, 3))
    made = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[rank - 1](
        channels,
        groups * m.r.choice((1, 2, 4, 5)),
        window,
        stride=stride,
        padding=m.r.choice((0, 0, 1)) if window > 1 else 0,
        output_padding=m.r.randrange(stride) if m.chance(0.3) else 0,
        groups=groups,
        dilation=m.r.choice((1, 1, 1, 2)),
        bias=m.chance(0.5),
    )
    _apply(m, f"transposed{rank} {window}/{stride} groups {groups}", made, i)


def _pool(m: Maker, i: int) -> None:
    rank = len(_shape(m, i, 3, 4, 5)) - 2
    window, stride, pad, ceil = m.r.choice((2, 3, 3, 4)), m.r.choice((1, 2, 3)), m.r.choice((0, 1)), m.chance(0.4)
    whole = m.chance(0.5)
    name = m.r.choice(("max", "max", "avg", "avg", "adaptive_avg", "adaptive_max"))
    if name == "max":
        dilation = m.r.choice((1, 1, 2))
        function: Callable[[Tensor], Tensor] = lambda v: getattr(F, f"max_pool{rank}d")(  # noqa: E731
            v, window, stride, pad, dilation, ceil_mode=ceil
        )
    elif name == "avg":
        function = lambda v: getattr(F, f"avg_pool{rank}d")(  # noqa: E731
            v, window, stride, pad, ceil_mode=ceil, count_include_pad=whole
        )
    else:
        function = getattr(F, f"{name}_pool{rank}d")
        m.add(f"{name}_pool{rank}d {window}", lambda layers, v: function(v, window), i)  # type: ignore[call-arg]
        return
    m.add(f"{name}_pool{rank}d {window}/{stride} pad {pad} ceil {ceil} whole {whole}", lambda layers, v: function(v), i)


def _norm(m: Maker, i: int) -> None:
    shape = _shape(m, i)
    if len(shape) < 2:
        raise RefusedError("of another kind")
    affine = m.chance(0.7)
    choices: list[Callable[[], nn.Module]] = [
        lambda: nn.LayerNorm(shape[-1], elementwise_affine=affine),
        lambda: nn.RMSNorm(shape[-1], eps=1e-5),
        lambda: nn.LayerNorm(shape[-2:], elementwise_affine=affine),
    ]
    if 2 < len(shape) < 6:
        choices.append(lambda: nn.GroupNorm(_divisor(m, shape[1]), shape[1], affine=affine))
        choices.append(lambda: (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[len(shape) - 3](shape[1]))
        choices.append(lambda: _batch_norm(len(shape), shape[1]))
    made = m.r.choice(choices)()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    _apply(m, type(made).__name__, made, i)


def _batch_norm(rank: int, channels: int) -> nn.Module:
    made = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[rank - 3](channels)
    assert made.running_mean is not None and made.running_var is not None
    made.running_mean.normal_()
    made.running_var.uniform_(0.5, 2)
    return made


def _rotated(v: Tensor, paired: bool) -> Tensor:
    """Positions by rotation of pairs: neighbours, or halves."""
    length, size = v.shape[-2:]
    half = size // 2
    frequency = 1.0 / 100.0 ** (torch.arange(half, device=v.device) / half)
    angle = torch.arange(length, device=v.device)[:, None] * frequency
    cos, sin = angle.cos().to(v.dtype), angle.sin().to(v.dtype)
    first, second = (v[..., 0 : 2 * half : 2], v[..., 1 : 2 * half : 2]) if paired else v[..., : 2 * half].chunk(2, -1)
    turned = (first * cos - second * sin, first * sin + second * cos)
    made = torch.stack(turned, -1).flatten(-2) if paired else torch.cat(turned, -1)
    return made if size % 2 == 0 else torch.cat((made, v[..., -1:]), -1)


def _attention(m: Maker, i: int) -> None:
    """A layer of attention: heads of any size, few heads of keys, masks, rotations, a context of another length."""
    shape = _shape(m, i, 3)
    kv = m.r.choice((1, 1, 2, 3))
    heads, size = kv * m.r.choice((1, 1, 2, 4)), m.r.choice((1, 2, 5, 7, 8, 16, 20, 32))
    rotated, paired = m.chance(0.3), m.chance(0.5)
    mask, way = (
        m.r.choice(("none", "none", "causal", "added", "bool", "window")),
        m.r.choice(("sdpa", "plain", "float")),
    )
    pre = m.layer(nn.LayerNorm(shape[-1])) if m.chance(0.4) else None
    joined = m.chance(0.5)
    q = m.layer(nn.Linear(shape[-1], (heads + 2 * kv if joined else heads) * size, bias=m.chance(0.5)))
    k, v = (m.layer(nn.Linear(shape[-1], kv * size)) for _ in range(2))
    out = m.layer(nn.Linear(heads * size, shape[-1], bias=m.chance(0.5)))
    residual, capped = m.chance(0.5), m.chance(0.1)
    bias = m.layer(nn.ParameterList([nn.Parameter(torch.randn(heads, shape[1], shape[1]))]))

    def parted(x: Tensor, count: int) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], count, size).transpose(1, 2)

    def call(layers: nn.ModuleDict, x: Tensor) -> Tensor:
        y = layers[pre](x) if pre else x
        if joined:
            qs, ks, vs = layers[q](y).split([heads * size, kv * size, kv * size], -1)
        else:
            qs, ks, vs = layers[q](y), layers[k](y), layers[v](y)
        qs, ks, vs = parted(qs, heads), parted(ks, kv), parted(vs, kv)
        if rotated:
            qs, ks = _rotated(qs, paired), _rotated(ks, paired)
        if kv != heads:
            ks, vs = (t.repeat_interleave(heads // kv, dim=1) for t in (ks, vs))
        length = x.shape[1]
        far = torch.arange(length, device=x.device)[:, None] - torch.arange(length, device=x.device)
        seen = {"causal": far >= 0, "bool": (far % 3) != 1, "window": (far >= 0) & (far < 3)}.get(mask)
        added = layers[bias][0] if mask == "added" else None
        if way == "sdpa" and not capped:
            made = F.scaled_dot_product_attention(qs, ks, vs, attn_mask=seen if added is None else added)
        else:
            scores = (qs @ ks.transpose(-1, -2)) * size**-0.5
            scores = torch.tanh(scores / 3) * 3 if capped else scores
            scores = scores + added if added is not None else scores
            if seen is not None:
                large = -1e4 if x.dtype == torch.float16 or way == "float" else float("-inf")
                scores = scores.masked_fill(~seen, large)
            made = scores.softmax(-1) @ vs
        made = layers[out](made.transpose(1, 2).reshape(x.shape[0], length, heads * size))
        return x + made if residual else made

    m.add(f"attention {heads}/{kv}x{size} {mask} {way} rotated {rotated} pre {bool(pre)} joined {joined}", call, i)


def _cross(m: Maker, i: int) -> None:
    """Attention of a value to another of the same width."""
    shape = _shape(m, i, 3)
    others = [j for j, n in enumerate(m.numbers) if n.is_float and n.plain.dim() == 3 and n.plain.numel()]
    j = m.r.choice(others)
    other = m.numbers[j].plain.shape
    width = m.r.choice((4, 7, 8, 12, 16))
    a, b = m.layer(nn.Linear(shape[-1], width)), m.layer(nn.Linear(other[-1], 2 * width))

    def call(layers: nn.ModuleDict, x: Tensor, y: Tensor) -> Tensor:
        keys, values = layers[b](y).chunk(2, -1)
        return F.scaled_dot_product_attention(layers[a](x), keys, values)

    m.add(f"cross {width}", call, i, j)


def _encoder(m: Maker, i: int) -> None:
    shape = _shape(m, i, 3)
    heads = _divisor(m, shape[-1])
    made = nn.TransformerEncoderLayer(
        shape[-1],
        heads,
        m.extent(40),
        activation=m.r.choice(("relu", "gelu")),
        batch_first=True,
        norm_first=m.chance(0.5),
    )
    _apply(m, f"encoder {heads}", made, i)


def _gated(m: Maker, i: int) -> None:
    """Two linear layers, one of which gates the other, and a third."""
    shape = _shape(m, i)
    if not shape:
        raise RefusedError("of another kind")
    width = m.r.choice((5, 8, 11, 16, 24))
    a, b, c = nn.Linear(shape[-1], width), nn.Linear(shape[-1], width, bias=False), nn.Linear(width, shape[-1])
    one, two, three = m.layer(a), m.layer(b), m.layer(c)
    m.add("gated", lambda layers, v: v + layers[three](F.silu(layers[one](v)) * layers[two](v)), i)


def _squeezed(m: Maker, i: int) -> None:
    """Squeeze and excitation."""
    channels = _shape(m, i, 4)[1]
    inner = m.r.choice((1, 2, 3, 8))
    a, b = m.layer(nn.Conv2d(channels, inner, 1)), m.layer(nn.Conv2d(inner, channels, 1))
    gate = m.r.choice((torch.sigmoid, F.hardsigmoid))
    m.add("squeezed", lambda layers, v: v * gate(layers[b](F.relu(layers[a](v.mean((2, 3), keepdim=True))))), i)


def _bottleneck(m: Maker, i: int) -> None:
    """1x1, depthwise or grouped, 1x1, with norms folded in and a residual."""
    channels = _shape(m, i, 4)[1]
    inner, window = m.r.choice((4, 6, 8, 12)), m.r.choice((3, 5))
    groups = m.r.choice((1, 2, inner))
    block = nn.Sequential(
        *(nn.Conv2d(channels, inner, 1, bias=False), _batch_norm(4, inner), nn.ReLU6()),
        *(nn.Conv2d(inner, inner, window, padding=window // 2, groups=groups), _batch_norm(4, inner), nn.Hardswish()),
        *(nn.Conv2d(inner, channels, 1, bias=False), _batch_norm(4, channels)),
    )
    layer, after = m.layer(block), m.chance(0.5)
    m.add("bottleneck", lambda layers, v: F.relu(v + layers[layer](v)) if after else v + layers[layer](v), i)


def _resize(m: Maker, i: int) -> None:
    shape = _shape(m, i, 3, 4, 5)
    modes = {3: ("nearest", "linear", "nearest-exact"), 4: ("nearest", "bilinear", "bicubic", "nearest-exact")}
    mode = m.r.choice(modes.get(len(shape), ("nearest", "trilinear")))
    corners = m.chance(0.5) if mode not in ("nearest", "nearest-exact") else None
    if m.chance(0.5):
        kept: dict[str, object] = {"scale_factor": m.r.choice((2, 3, 1.5, 0.5, 0.7, 2.3))}
        kept["recompute_scale_factor"] = m.r.choice((None, True))
    else:
        kept = {"size": [m.r.choice((1, 2, 5, 7, 11, 16, n)) for n in shape[2:]]}
    call = lambda layers, v: F.interpolate(v, mode=mode, align_corners=corners, **kept)  # noqa: E731
    m.add(f"resize {mode} {corners} {kept}", call, i)


def _recurrent(m: Maker, i: int) -> None:
    shape = _shape(m, i, 3)
    if max(shape[:2]) > 9:
        raise RefusedError("long")
    kind = m.r.choice((nn.GRU, nn.LSTM, nn.RNN))
    made = kind(
        shape[-1],
        m.r.choice((1, 3, 4, 9)),
        num_layers=m.r.choice((1, 1, 2)),
        batch_first=m.chance(0.5),
        bidirectional=m.chance(0.3),
        bias=m.chance(0.8),
    )
    layer, last = m.layer(made), m.chance(0.3) and kind is not nn.LSTM
    m.add(kind.__name__, lambda layers, v: layers[layer](v)[1 if last else 0], i)


def _embedding(m: Maker, i: int) -> None:
    layer = m.layer(nn.Embedding(7, m.extent()))
    if m.numbers[i].plain.dtype != torch.int64:
        raise RefusedError("of another kind")
    m.add("embedding", lambda layers, v: layers[layer](v.abs() % 7), i)


def _moved(m: Maker, i: int) -> None:
    channels = _shape(m, i, 4)[1]
    if channels % 4 == 0 and m.chance(0.5):
        m.add("pixel_shuffle", lambda layers, v: F.pixel_shuffle(v, 2), i)
    elif m.chance(0.3):
        m.add("pixel_unshuffle", lambda layers, v: F.pixel_unshuffle(v, 2), i)
    elif m.chance(0.5):
        groups = _divisor(m, channels)
        m.add("channel_shuffle", lambda layers, v: v.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2), i)
    else:
        pads, stride = m.r.choice((0, 1)), m.r.choice((1, 2))
        m.add("unfold", lambda layers, v: F.unfold(v, 2, padding=pads, stride=stride), i)


def _patches(m: Maker, i: int) -> None:
    """Patches of an image as tokens with positions."""
    shape = _shape(m, i, 4)
    size, width = m.r.choice((1, 2, 3, 4)), m.r.choice((5, 8, 12))
    layer = m.layer(nn.Conv2d(shape[1], width, size, stride=size))
    m.add("patches", lambda layers, v: layers[layer](v).flatten(2).transpose(1, 2), i)


def _normalized(m: Maker, i: int) -> None:
    _shape(m, i)
    m.add("normalize", lambda layers, v: F.normalize(v, dim=-1), i)


LAYERS: tuple[Draw, ...] = (
    *(_linear, _linear, _linear, _conv, _conv, _conv, _conv, _conv, _conv_transposed, _conv_transposed, _pool, _pool),
    *(_norm, _norm, _attention, _attention, _attention, _cross, _encoder, _gated, _squeezed, _bottleneck, _resize),
    *(_resize, _recurrent, _embedding, _moved, _patches, _normalized),
)
