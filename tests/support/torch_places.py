"""Small programs in plain PyTorch that read, write or resize at places: known ones, and such as tensors give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def _floats(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


_X, _IMAGE, _LINE, _VOLUME = _floats(2, 3, 4), _floats(2, 4, 6, 7), _floats(2, 4, 9), _floats(1, 2, 3, 4, 5)
_ROWS = torch.tensor([[[0, 1, 2, 0]], [[1, 1, 0, 2]]])


def _set(x: Tensor, *key: Any, value: Any) -> Tensor:
    made = x.clone()
    made[key] = value
    return made


READS: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "roll of two axes": (lambda x: x.roll((1, -2), (1, 2)), _X),
    "roll of all": (lambda x: x.roll(5), _X),
    "windows": (lambda x: x.unfold(2, 3, 2), _LINE),
    "windows of images": (lambda x: F.unfold(x, 3, padding=1, stride=2), _IMAGE),
    "windows put together": (lambda x: F.fold(x, (4, 5), 2), _floats(1, 8, 12)),
    "diagonal": (lambda x: x.diagonal(1, 1, 2) + 1, _X),
    "diagonal below": (lambda x: x.diagonal(-1, 0, 1) + 1, _X),
    "diagonal matrix": (lambda x: torch.diag_embed(x, 1), _X),
    "triangle": (lambda x: x.tril() + x.triu(1), _X),
    "strides of memory": (lambda x: torch.as_strided(x, (2, 2, 2), (1, 4, 2), 3) + 1, _X),
    "one_hot": (lambda x: F.one_hot(x, 4), torch.tensor([[1, 0, 3]])),
    "index of axes apart": (lambda x: x[torch.tensor([0, 1]), :, torch.tensor([1, 2])], _X),
    "index by a grid": (lambda x: x[:, torch.tensor([[2], [0]]), torch.tensor([1, 0, 2])], _X),
    "index by computed places": (lambda x: x[:, (x[0, 0] > 0).long()], _X),
    "gather of a part": (lambda x: x.gather(2, torch.zeros(1, 2, 3, dtype=torch.int64)), _X),
    "gather of long rows": (lambda x: x.gather(1, torch.tensor([[3, 0, 39], [1, 1, 2]])), _floats(2, 40)),
    "sorted": (lambda x: x.sort(1), _X),
    "sorted down": (lambda x: x.sort(-1, descending=True), _X),
    "argsort": (lambda x: x.argsort(1), _X),
    "topk": (lambda x: x.topk(2, 1), _X),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), _X),
    "bucketize from the right": (
        lambda x: torch.bucketize(x, torch.tensor([-1, 0, 1]), right=True),
        torch.tensor([-2, -1, 0, 5]),
    ),
    "index by runs": (lambda x: x[:, :, torch.tensor([2, 1, 0, 1, 2, 3, 2, 1])], _X),
    "index by many runs": (lambda x: x[:, :, torch.tensor([2, 0, 3, 3, 0, 1, 0, 3, 1, 1])], _X),
    "index around the end": (lambda x: x[:, :, torch.tensor([-1, 0, 1, 2])], _X),
    "index by places from the end": (lambda x: x[:, :, torch.tensor([-1, 0, -2, 1])], _X),
    "index by runs of two axes": (lambda x: x[:, torch.tensor([[1], [0], [1], [2]]), torch.tensor([3, 2, 3, 0])], _X),
    "constants in a graph": (lambda x: x + torch.arange(12.0).view(3, 4).flip(1).cumsum(0).triu(1), _X),
    "constant that is returned": (lambda x: (x + 1, torch.arange(3) * 2), _X),
}


def _alone(name: str) -> Callable[[Tensor], Any]:
    return lambda x: x.scatter_reduce(1, _ROWS[..., :3], x + 1, name, include_self=False)


def _index_reduced(name: str) -> Callable[[Tensor], Any]:
    return lambda x: x.index_reduce(1, torch.tensor([2, 0, 2]), x * 2, name, include_self=name == "prod")


WRITES: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "put with gaps": (lambda x: _set(x, slice(None), slice(None), slice(1, None, 2), value=x[..., :2]), _X),
    "put a number": (lambda x: _set(x, slice(None), 1, value=2.5), _X),
    "put where": (lambda x: _set(x, x > 0, value=0.0), _X),
    "put rows where": (lambda x: _set(x, x[:, :, 0] > 0, value=7.0), _X),
    "put slices": (lambda x: _set(x, torch.tensor([1, 0]), value=x[:, :1]), _X),
    "put at places": (lambda x: _set(x, torch.tensor([0, 1]), torch.tensor([2, -1]), value=x[:, 0]), _X),
    "put in inner axes": (lambda x: _set(x, slice(None), torch.tensor([2, 0]), value=x[:, 1:]), _X),
    "put in axes apart": (
        lambda x: _set(x, torch.tensor([0, 1]), slice(None), torch.tensor([3, 0]), value=x[:, :, 1]),
        _X,
    ),
    "put sums": (
        lambda x: torch.index_put(x, (torch.tensor([0, 0]), torch.tensor([1, 1])), x[:, 0], accumulate=True),
        _X,
    ),
    "put one of the last axis": (
        lambda x: _set(x, slice(None), slice(None), torch.tensor([-1]), value=x[..., :1] * 2),
        _X,
    ),
    "put slices by a grid": (
        lambda x: _set(x, slice(None), torch.tensor([2, 0]), torch.tensor([[1], [3]]), value=5.0),
        _X,
    ),
    "scatter of slices": (lambda x: x.scatter(1, torch.tensor([2, 0])[None, :, None].expand(2, 2, 4), x * 2), _X),
    "put conditions": (lambda x: _set(x > 0, torch.tensor([1]), value=True), _X),
    "scatter": (lambda x: x.scatter(1, _ROWS, x[:, :1] * 2), _X),
    "scatter a number": (lambda x: x.scatter(1, _ROWS, 3.0), _X),
    "scatter of a part": (lambda x: x.scatter(1, _ROWS[:, :, :2], x * 2), _X),
    "scatter_add": (lambda x: x.scatter_add(1, _ROWS, x[:, :1]), _X),
    "scatter the largest": (lambda x: x.scatter_reduce(1, _ROWS, x[:, :1] + 1, "amax"), _X),
    "scatter the mean": (lambda x: x.scatter_reduce(1, _ROWS, x[:, :1] + 1, "mean"), _X),
    **{f"scatter the {name} alone": (_alone(name), _X) for name in ("sum", "prod", "mean", "amax", "amin")},
    **{f"index_reduce by {name}": (_index_reduced(name), _X) for name in ("prod", "mean", "amax", "amin")},
    "index_add": (lambda x: x.index_add(1, torch.tensor([0, 2]), x[:, :2]), _X),
    "index_copy": (lambda x: x.index_copy(1, torch.tensor([2, 0]), x[:, :2] * 2), _X),
    "index_fill": (lambda x: x.index_fill(2, torch.tensor([0, 3]), 1.5), _X),
    "masked_scatter of one": (lambda x: x.masked_fill(x > 0, 1.0), _X),
}
RESIZED: dict[str, tuple[Callable[[Tensor], Any], Tensor]] = {
    "nearest of lines": (lambda x: F.interpolate(x, scale_factor=2), _LINE),
    "nearest of volumes": (lambda x: F.interpolate(x, size=(6, 3, 7)), _VOLUME),
    "nearest by a fraction": (lambda x: F.interpolate(x, scale_factor=1.5), _IMAGE),
    "nearest to less": (lambda x: F.interpolate(x, scale_factor=0.4), _IMAGE),
    "nearest, exact": (lambda x: F.interpolate(x, size=(9, 5), mode="nearest-exact"), _IMAGE),
    "nearest of lines, exact": (lambda x: F.interpolate(x, size=13, mode="nearest-exact"), _LINE),
    "linear": (lambda x: F.interpolate(x, size=13, mode="linear"), _LINE),
    "linear by corners": (lambda x: F.interpolate(x, size=4, mode="linear", align_corners=True), _LINE),
    "trilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), _VOLUME),
    "trilinear by corners": (
        lambda x: F.interpolate(x, size=(2, 4, 9), mode="trilinear", align_corners=True),
        _VOLUME,
    ),
    "bilinear by a fraction": (lambda x: F.interpolate(x, scale_factor=1.3, mode="bilinear"), _IMAGE),
    "bilinear by a recomputed fraction": (
        lambda x: F.interpolate(x, scale_factor=1.3, mode="bilinear", recompute_scale_factor=True),
        _IMAGE,
    ),
    "bilinear to less, smooth": (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), _IMAGE),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), _IMAGE),
    "bicubic by corners": (lambda x: F.interpolate(x, size=(11, 5), mode="bicubic", align_corners=True), _IMAGE),
    "bicubic to less, smooth": (lambda x: F.interpolate(x, size=(3, 4), mode="bicubic", antialias=True), _IMAGE),
    "by areas": (lambda x: F.interpolate(x, size=(3, 4), mode="area"), _IMAGE),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), _floats(1, 2, 4, 6)),
    "channel_shuffle": (lambda x: F.channel_shuffle(x, 2), _IMAGE),
    "adaptive average of lines": (lambda x: F.adaptive_avg_pool1d(x, 4), _LINE),
    "adaptive average of volumes": (lambda x: F.adaptive_avg_pool3d(x, (2, 4, 3)), _VOLUME),
    "adaptive average of one image": (lambda x: F.adaptive_avg_pool2d(x[0], 3), _IMAGE),
    "adaptive largest": (lambda x: F.adaptive_max_pool2d(x, (4, 5)), _IMAGE),
    "adaptive largest of lines": (lambda x: F.adaptive_max_pool1d(x, 4), _LINE),
    "adaptive largest of volumes": (lambda x: F.adaptive_max_pool3d(x, (2, 3, 3)), _VOLUME),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), _LINE),
    "max_pool2d of one image": (lambda x: F.max_pool2d(x[0], 2), _IMAGE),
    "max_pool2d with places": (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), _IMAGE),
    "max_unpool2d": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), _IMAGE[..., :6]),
    "avg_pool2d with a divisor": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), _IMAGE),
    "avg_pool2d rounded up": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), _IMAGE),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2, 1), _VOLUME),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2, 2), _IMAGE),
    "replicated": (lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), _IMAGE),
    "circular": (lambda x: F.pad(x, (1, 2, 2, 1), mode="circular"), _IMAGE),
}

_GRID = torch.tanh(_floats(2, 3, 5, 2, seed=2)) * 1.2
SAMPLED: dict[str, tuple[Callable[[Tensor, Tensor], Any], Tensor, Tensor]] = {
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), _IMAGE, _GRID),
    "grid_sample, nearest": (
        lambda x, g: F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True),
        _IMAGE,
        _GRID,
    ),
    "grid_sample, cubic": (
        lambda x, g: F.grid_sample(x, g, mode="bicubic", padding_mode="reflection", align_corners=False),
        _IMAGE,
        _GRID,
    ),
    "grid_sample of volumes": (
        lambda x, g: F.grid_sample(x, g, align_corners=True),
        _VOLUME,
        torch.tanh(_floats(1, 2, 3, 2, 3, seed=3)),
    ),
    "spatial transformer": (
        lambda x, t: F.grid_sample(x, F.affine_grid(t, [2, 4, 5, 3], align_corners=False), align_corners=False),
        _IMAGE,
        _floats(2, 2, 3, seed=4) * 0.5,
    ),
    "bags": (lambda i, w: F.embedding_bag(i, w), torch.tensor([[1, 0, 4], [4, 4, 2]]), _floats(5, 3)),
    "bags, the largest": (
        lambda i, w: F.embedding_bag(i, w, mode="max"),
        torch.tensor([[1, 0, 4], [4, 4, 2]]),
        _floats(5, 3),
    ),
    "bags at offsets": (
        lambda i, w: F.embedding_bag(i, w, torch.tensor([0, 2, 2]), mode="sum"),
        torch.tensor([1, 0, 4, 4]),
        _floats(5, 3),
    ),
    "bags with weights and padding": (
        lambda i, w: F.embedding_bag(i, w, mode="sum", padding_idx=4, per_sample_weights=w[: i.shape[0], : i.shape[1]]),
        torch.tensor([[1, 0, 4], [4, 4, 4]]),
        _floats(5, 3),
    ),
    "bags at offsets that are read, with weights": (
        lambda i, w: F.embedding_bag(i[:4], w, i[4:], mode="sum", per_sample_weights=w[:4, 0]),
        torch.tensor([1, 0, 4, 4, 0, 2, 2]),
        _floats(5, 3),
    ),
    "means of bags with padding": (
        lambda i, w: F.embedding_bag(i, w, mode="mean", padding_idx=4),
        torch.tensor([[1, 0, 4], [4, 4, 4]]),
        _floats(5, 3),
    ),
    "the largest of bags at offsets that are read, with padding": (
        lambda i, w: F.embedding_bag(i[:4], w, i[4:], mode="max", padding_idx=4),
        torch.tensor([1, 0, 4, 4, 0, 2, 3]),
        _floats(5, 3),
    ),
    "index_select by an input": (lambda x, i: x.index_select(1, i), _X, torch.tensor([2, 0, 0, 1])),
    "index by two inputs": (lambda x, i: x[:, i[:, None], i[None]], _X, torch.tensor([2, 0, -1])),
    "scatter by an input": (lambda x, i: x.scatter(2, i, x), _X, torch.tensor([[[1, 0, 3, 2]] * 3] * 2)),
    "slices by an input": (
        lambda x, i: x.scatter(1, i[None, :, None].expand(2, 2, 4), x * 2),
        _X,
        torch.tensor([2, 0]),
    ),
    "one place for each row by an input": (
        lambda x, i: x.scatter(2, i[None, :, None].expand(2, 4, 4), x * 2),
        _X[:, :1].expand(2, 4, 4) + torch.arange(4)[:, None],
        torch.tensor([2, 0, 3, 0]),
    ),
    "sums of slices by an input": (
        lambda x, i: torch.index_put(x, (i,), x * 2, accumulate=True),
        _X,
        torch.tensor([1, 1]),
    ),
    "slices of conditions by an input": (
        lambda x, i: _set(x > 0, slice(None), i, value=x[:, :2] < 1),
        _X,
        torch.tensor([2, 0]),
    ),
    "cache at a place": (lambda x, i: x.index_copy(1, i, x[:, :1] * 2), _X, torch.tensor([1])),
}
