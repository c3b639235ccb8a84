"""The operators that graphs are brought to: core ATen, and some fused ones of PyTorch's taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import Any

from .recurrent_operator import whole_layers
from .types import memory_order
from .whole_programs import forms, histogram

Tensor = Any
_KEPT = (
    "roll",
    "select_scatter",
    *(f"upsample_{kind}" for kind in ("linear1d", "trilinear3d", "bicubic2d", "nearest1d", "nearest3d")),
    *(f"_upsample_nearest_exact{axes}d" for axes in (1, 2, 3)),
)
"""Operators that stay whole: taken apart they read at places, which have to be found out again."""


@cache
def decompositions(training: bool = False) -> Mapping[Any, Callable[..., Any]]:
    """Return the table for graphs that are traced: core ATen, with the encoder layer taken apart.

    Composite operators are not in it: tracing takes them apart by itself, and PyTorch's public table, which has them,
    takes 0.13 s of CPU time to fill (AMD EPYC). In training, attention on a CPU stays one operator: its decomposition
    does not give the sums that its gradient reads, and the gradient would be wrong.
    """
    import torch

    core = getattr(torch._decomp, "_core_aten_decompositions_post_autograd", torch._decomp.core_aten_decompositions)
    table = {**_with_own(core()), torch.ops.aten.histc.default: _small_histogram}
    if training:
        del table[torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default]
        for cell in _CELLS:  # their gradients read what is not computed here
            del table[getattr(torch.ops.aten, cell).default]
    return table


@cache
def export_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return the table for programs of torch.export, which hold composite operators: those are taken apart, too."""
    from torch._decomp import core_aten_decompositions

    return {**_with_own(core_aten_decompositions()), **forms(), **whole_layers()}


def _with_own(core: Mapping[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """Add our own decompositions to PyTorch's, and leave out those of operators that stay whole."""
    import torch

    aten = torch.ops.aten
    on_cpu = aten._scaled_dot_product_flash_attention_for_cpu.default
    table: dict[Any, Callable[..., Any]] = {
        **core,
        aten._transformer_encoder_layer_fwd.default: _encoder_layer,
        aten._native_multi_head_attention.default: _attention,
        aten._trilinear.default: _trilinear,
        on_cpu: partial(_attention_on_cpu, core[on_cpu]),
        aten.masked_scatter.default: _masked_scatter,
        **{getattr(aten, name).default: cell for name, cell in _CELLS.items()},
    }
    for kept in _KEPT:
        packet = getattr(aten, kept)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    return table


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads on (N, L, E), as torch.nn.functional.multi_head_attention_forward computes it."""
    import torch

    functional = torch.nn.functional
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    head = embed_dim // num_head

    def heads(x: Tensor, number: int) -> Tensor:
        made = functional.linear(x, weights[number], biases[number])
        return made.view(x.shape[0], x.shape[1], num_head, head).transpose(1, 2)

    q, k, v = (heads(x, number) for number, x in enumerate((query, key, value)))
    scores = torch.matmul(q * head**-0.5, k.transpose(-2, -1))
    if mask is not None:
        if mask_type == 1:  # of keys: (N, L)
            mask = mask.view(mask.shape[0], 1, 1, mask.shape[1])
        if mask.dtype is torch.bool:
            scores = scores.masked_fill(mask, -float("inf"))
        else:
            scores = scores + mask
    shares = torch.softmax(scores, dim=-1)
    joined = torch.matmul(shares, v).transpose(1, 2).reshape(query.shape)
    made = functional.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return made, None
    return made, shares.mean(dim=1) if average_attn_weights else shares


def _attention_on_cpu(taken_apart: Callable[..., Any], query: Tensor, *others: Any, **options: Any) -> Any:
    """PyTorch's decomposition, with the result in memory as the query is, as that of the kernel: views depend on it.

    PyTorch's own lies as MultiheadAttention's queries do, and a view of GPT-2's in a program of torch.export was
    refused (2.14).
    """
    made, sums = taken_apart(query, *others, **options)
    order = memory_order(query.shape, query.stride()) or range(query.ndim)
    back = sorted(range(query.ndim), key=list(order).__getitem__)
    return made.permute(list(order)).contiguous().permute(back), sums


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """A layer of a transformer's encoder, as torch.nn.TransformerEncoderLayer computes it without its fast path."""
    import torch

    functional = torch.nn.functional

    def attended(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return _attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def forwarded(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), weight, bias, eps)

    if norm_first:
        src = src + attended(norm(src, norm_weight_1, norm_bias_1))
        return src + forwarded(norm(src, norm_weight_2, norm_bias_2))
    src = norm(src + attended(src), norm_weight_1, norm_bias_1)
    return norm(src + forwarded(src), norm_weight_2, norm_bias_2)


def _lstm_cell(
    inputs: Tensor, hidden: Tensor, cell: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """A cell of an LSTM behind its products, (batch, 4 x width), as CUDA devices have it: its states."""
    import torch

    i, f, new, o = _biased(inputs + hidden, input_bias, hidden_bias).chunk(4, dim=1)
    made = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(new)
    return torch.sigmoid(o) * torch.tanh(made), made, inputs.new_empty(inputs.shape)


def _gru_cell(
    inputs: Tensor, hidden: Tensor, state: Tensor, input_bias: Tensor | None = None, hidden_bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """A cell of a GRU behind its products, (batch, 3 x width), as CUDA devices have it: its state."""
    import torch

    (r, z, new), (hidden_r, hidden_z, hidden_new) = (
        _biased(gates, bias).chunk(3, dim=1) for gates, bias in ((inputs, input_bias), (hidden, hidden_bias))
    )
    new = torch.tanh(new + torch.sigmoid(r + hidden_r) * hidden_new)
    return new + torch.sigmoid(z + hidden_z) * (state - new), inputs.new_empty((*state.shape[:-1], 5 * state.shape[-1]))


def _biased(gates: Tensor, *biases: Tensor | None) -> Tensor:
    for bias in biases:
        gates = gates if bias is None else gates + bias
    return gates


_CELLS: Mapping[str, Callable[..., Any]] = {"_thnn_fused_lstm_cell": _lstm_cell, "_thnn_fused_gru_cell": _gru_cell}


def _trilinear(
    first: Tensor,
    second: Tensor,
    third: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The product of three tensors, each with further axes of extent 1, summed over axes: what nn.Bilinear computes."""
    import torch

    axes = range(first.dim() + len(expand1))
    letters = ["".join(chr(97 + d) for d in axes if d not in new) for new in (expand1, expand2, expand3, sumdim)]
    return torch.einsum(f"{','.join(letters[:3])}->{letters[3]}", first, second, third)


def _masked_scatter(data: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of a source, in their order, at the places of the data where a mask holds.

    Of a mask that is expanded along the last axes, as where images' features replace their tokens' embeddings, whole
    rows are taken. A source with fewer elements than the mask asks for, which PyTorch refuses, gives its last again.
    """
    import torch

    data, mask = torch.broadcast_tensors(data, mask)
    if not data.numel() or not source.numel():
        return NotImplemented
    rows = mask
    while rows.ndim and (rows.stride(-1) == 0 or rows.shape[-1] == 1):
        rows = rows.select(-1, 0)
    if source.numel() % prod(data.shape[rows.ndim :]):
        rows = mask
    width = prod(data.shape[rows.ndim :])
    taken = source.reshape(-1, width)
    places = rows.reshape(-1).long().cumsum(0) - 1
    made = taken[places.clamp(0, taken.shape[0] - 1)].reshape(data.shape)
    return torch.where(rows.reshape(*rows.shape, *[1] * (data.ndim - rows.ndim)), made, data.contiguous())


def _small_histogram(data: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Counts of few elements in few parts, which would end a region: tokens of each expert are counted so."""
    return histogram(data, bins, min, max) if data.numel() * bins <= _MOST_COUNTED else NotImplemented


_MOST_COUNTED = 1 << 14
"""Elements by parts of a histogram that is counted by comparing each with each: some 10 us on a core, a choice."""
