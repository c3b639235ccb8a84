"""One token beside a cache of keys and values: attention alone, and a step of Llama-like layers, beside PyTorch.

fp16, random data, both sides replayed as CUDA graphs in one run, medians of rounds in turn. Attention has 32 heads of
queries and 8 of keys and values; the peer is `scaled_dot_product_attention(enable_gqa=True)`. `floor` is the time in
which the device copies as many bytes as keys and values have (a copy reads and writes each). Caches are rotated, so
that they do not stay in the second-level cache. A step is `--layers` layers (root mean square norms, attention with
rotary positions, a gated feed-forward layer) of batch 1, whose floor is that of the weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from gpu import copy_gbytes_per_s, graphed
from rounds import Timer, medians_in_turn

import loopwright as lw
from loopwright.backends.targets import resolve_target

HEADS, KEY_HEADS = 32, 8
ROUNDS = 7
CACHED_BYTES = 120 << 20
"""Bytes of all copies of a cache that are read in turn: twice the second-level cache of an H200."""
MOST_COPIES = 64


@dataclass(frozen=True)
class Layer:
    """Extents of a layer: `hidden` elements of a token, `wide` ones in its feed-forward layer, `size` of a head."""

    hidden: int = 4096
    wide: int = 14336
    size: int = 128

    @property
    def heads(self) -> int:
        return self.hidden // self.size

    @property
    def key_heads(self) -> int:
        return max(1, self.heads // (HEADS // KEY_HEADS))

    def weights(self) -> dict[str, tuple[int, int]]:
        """Shapes of the weights, (out, in)."""
        keys = self.key_heads * self.size
        shapes = {"q": (self.hidden, self.hidden), "k": (keys, self.hidden), "v": (keys, self.hidden)}
        shapes |= {"o": (self.hidden, self.hidden), "gate": (self.wide, self.hidden), "up": (self.wide, self.hidden)}
        return {**shapes, "down": (self.hidden, self.wide)}


def attention(batch: int, keys: int, size: int, copies: int = 1) -> lw.Network:
    """A query of each head beside its cache; heads of queries that share keys are rows of a product with these.

    Each of the `copies` has a cache of its own.
    """
    net, group = lw.Network("attention"), HEADS // KEY_HEADS
    q = net.input("q", (batch * KEY_HEADS, group, size), "float16")
    for number in range(copies):
        k, v = (net.input(f"{name}{number}", (batch * KEY_HEADS, keys, size), "float16") for name in "kv")
        scores = net.apply("batch_matmul", q, k, transpose_b=True) * (1 / sqrt(size))
        net.output(net.apply("batch_matmul", net.apply("softmax", scores), v))
    return net


def step(layer: Layer, weights: Sequence[dict[str, np.ndarray]], cached: int) -> lw.Network:
    """Layers for one token, which is written behind `cached` ones."""
    net = lw.Network("step")
    x = net.input("x", (1, layer.hidden), "float16")
    turns = [net.input(name, (1, layer.size), "float16") for name in ("cos", "sin")]
    caches = []
    for number, weight in enumerate(weights):
        given = {name: net.constant(array) for name, array in weight.items()}
        shape = (layer.key_heads, cached, layer.size)
        caches.append([net.input(f"{name}{number}", shape, "float16") for name in "kv"])
        x = _layer(net, layer, x, given, caches[-1], turns)
    net.output(x)
    return net


def _layer(net: Any, layer: Layer, x: Any, weight: dict[str, Any], cache: Sequence[Any], turns: Sequence[Any]) -> Any:
    normed = net.apply("rms_norm", x)
    q, k, v = (net.apply("dense", normed, weight[name]) for name in "qkv")
    q = _rotated(net, net.apply("reshape", q, shape=(layer.heads, layer.size)), turns)
    k = _rotated(net, net.apply("reshape", k, shape=(layer.key_heads, layer.size)), turns)
    own = [net.apply("reshape", each, shape=(layer.key_heads, 1, layer.size)) for each in (k, v)]
    keys, values = (net.apply("concatenate", old, new, axis=1) for old, new in zip(cache, own, strict=True))
    rows = net.apply("reshape", q, shape=(layer.key_heads, layer.heads // layer.key_heads, layer.size))
    scores = net.apply("batch_matmul", rows, keys, transpose_b=True) * (1 / sqrt(layer.size))
    found = net.apply("batch_matmul", net.apply("softmax", scores), values)
    x = x + net.apply("dense", net.apply("reshape", found, shape=(1, layer.hidden)), weight["o"])
    normed = net.apply("rms_norm", x)
    gate = net.apply("silu", net.apply("dense", normed, weight["gate"]))
    return x + net.apply("dense", gate * net.apply("dense", normed, weight["up"]), weight["down"])


def _rotated(net: Any, x: Any, turns: Sequence[Any]) -> Any:
    """Turn pairs of elements half a head apart."""
    half = x.shape[1] // 2
    first, last = (net.apply("strided_slice", x, begin=(0, n), end=(x.shape[0], n + half)) for n in (0, half))
    turned = net.apply("concatenate", net.apply("negative", last), first, axis=1)
    return x * turns[0] + turned * turns[1]


# -- the peer ---------------------------------------------------------------------------------------------------------


def torch_step(torch: Any, layer: Layer, weights: Sequence[dict[str, Any]], x: Any, caches: Any, turns: Any) -> Any:
    """The same layers by PyTorch's operators, which write the token's keys and values to a place in the cache."""
    functions = torch.nn.functional
    for weight, (keys, values) in zip(weights, caches, strict=True):
        normed = functions.rms_norm(x, (layer.hidden,), eps=1e-5)
        q, k, v = (functions.linear(normed, weight[name]) for name in "qkv")
        q, k, v = (each.view(1, -1, 1, layer.size) for each in (q, k, v))
        q, k = (each * turns[0] + _torch_turned(torch, each) * turns[1] for each in (q, k))
        keys[:, :, -1:], values[:, :, -1:] = k, v
        found = functions.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
        x = x + functions.linear(found.view(1, layer.hidden), weight["o"])
        normed = functions.rms_norm(x, (layer.hidden,), eps=1e-5)
        gate = functions.silu(functions.linear(normed, weight["gate"]))
        x = x + functions.linear(gate * functions.linear(normed, weight["up"]), weight["down"])
    return x


def _torch_turned(torch: Any, x: Any) -> Any:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


# -- measuring --------------------------------------------------------------------------------------------------------


def measure_attention(torch: Any, batch: int, keys: int, size: int, rate: float) -> str:
    """A row of the table."""
    cache_bytes = 2 * batch * KEY_HEADS * keys * size * 2
    copies = min(MOST_COPIES, -(-CACHED_BYTES // cache_bytes))
    compiled = lw.compile(attention(batch, keys, size, copies), "cuda")
    q = torch.randn(batch, HEADS, 1, size, device="cuda", dtype=torch.float16)
    shape = (copies, batch, KEY_HEADS, keys, size)
    k, v = (torch.randn(*shape, device="cuda", dtype=torch.float16) for _ in range(2))
    executor = compiled.executor()
    executor.set_input(q=q.view(-1, HEADS // KEY_HEADS, size).cpu().numpy())
    for number in range(copies):
        found = {f"{name}{number}": x[number].view(-1, keys, size) for name, x in (("k", k), ("v", v))}
        executor.set_input(**{name: x.cpu().numpy() for name, x in found.items()})
    executor.run()

    def peer() -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        return [attend(q, keys, values, enable_gqa=True) for keys, values in zip(k, v, strict=True)]

    error = _apart(executor.get_output(0), peer()[0].float().cpu().numpy().reshape(-1, HEADS // KEY_HEADS, size))
    times_s = medians_in_turn({"peer": graphed(torch, peer, 1), "ours": _replayed(executor, 3)}, ROUNDS)
    figures = times_s["ours"] / copies, times_s["peer"] / copies, cache_bytes / rate
    return _row(str(batch), keys, size, figures, len(compiled.plan.steps) // copies, error)


def _replayed(executor: Any, at_least_ms: int) -> Timer:
    return lambda: float(executor.benchmark(repeat=1, min_repeat_ms=at_least_ms).median)


def measure_step(torch: Any, layer: Layer, layers: int, cached: int, rate: float) -> str:
    """The lines of a step: both times, and the time of each kernel of ours."""
    torch.manual_seed(0)
    weights = [
        {name: torch.randn(*shape, device="cuda", dtype=torch.float16) / sqrt(shape[1]) for name, shape in found}
        for found in [layer.weights().items()] * layers
    ]
    x = torch.randn(1, layer.hidden, device="cuda", dtype=torch.float16)
    turns = [torch.randn(1, layer.size, device="cuda", dtype=torch.float16) for _ in range(2)]
    shape = (1, layer.key_heads, cached + 1, layer.size)
    caches = [[torch.randn(*shape, device="cuda", dtype=torch.float16) for _ in range(2)] for _ in range(layers)]
    net = step(layer, [{n: w.cpu().numpy() for n, w in each.items()} for each in weights], cached)
    compiled = lw.compile(net, "cuda")
    executor = compiled.executor()
    executor.set_input(x=x.cpu().numpy(), cos=turns[0].cpu().numpy(), sin=turns[1].cpu().numpy())
    for number, each in enumerate(caches):
        executor.set_input(**{f"{n}{number}": c[0, :, :-1].cpu().numpy() for n, c in zip("kv", each, strict=True)})
    executor.run()

    def peer() -> Any:
        return torch_step(torch, layer, weights, x, caches, turns)

    error = _apart(executor.get_output(0), peer().float().cpu().numpy())
    times_s = medians_in_turn({"peer": graphed(torch, peer, 1), "ours": _replayed(executor, 5)}, ROUNDS)
    floor = 2 * layers * sum(a * b for a, b in layer.weights().values()) / rate
    figures = times_s["ours"], times_s["peer"], floor
    row = _row(f"{layers} layers", cached + 1, layer.size, figures, len(compiled.plan.steps), error)
    return f"{row}\n\n{executor.profile()}"


def _row(what: str, keys: int, size: int, times_s: tuple[float, float, float], kernels: int, error: float) -> str:
    ours, other, floor = times_s
    times = f"{ours * 1e6:.1f} | {other * 1e6:.1f} | {other / ours:.2f}x | {floor * 1e6:.1f} | {floor / ours:.0%}"
    return f"| {what} | {keys} | {size} | {times} | {kernels} | {error:.1e} |"


def _apart(got: Any, want: Any) -> float:
    return float(np.abs(np.asarray(got, np.float64) - want).max() / np.abs(want).max())


def check_here(cases: Sequence[tuple[int, int, int]], layer: Layer, cached: int) -> None:
    """Print the kernels that a device would run, without one."""
    target = resolve_target("cuda model=h200")
    nets = [attention(*case) for case in cases]
    weights = {n: np.zeros(shape, np.float16) for n, shape in layer.weights().items()}
    for net in (*nets, step(layer, [weights], cached)):
        for task in lw.extract_tasks(net, target)[0]:
            print(net.name, task.name, [s.name for s in task.sketches], sep=" | ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--keys", type=int, nargs="*", default=[512, 2048, 8192])
    parser.add_argument("--sizes", type=int, nargs="*", default=[64, 128])
    parser.add_argument("--layers", type=int, default=2, help="of a step; 0 for none")
    parser.add_argument("--cached", type=int, default=1023, help="tokens in the cache of a step")
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--wide", type=int, default=14336)
    parser.add_argument("--here", action="store_true", help="list the kernels; no device is needed")
    options = parser.parse_args()
    cases = [(b, k, s) for b in options.batches for s in options.sizes for k in options.keys]
    layer = Layer(options.hidden, options.wide)
    if options.here:
        check_here(cases, layer, options.cached)
        return
    import torch

    measures: list[tuple[str, Callable[[float], str]]] = [
        (f"attention {case}", partial(measure_attention, torch, *case)) for case in cases
    ]
    if options.layers:
        measures.append(("step", partial(measure_step, torch, layer, options.layers, options.cached)))
    rate = copy_gbytes_per_s(torch) * 1e9
    print(f"a copy reads and writes {rate / 1e9:.0f} GB/s\n")
    heads = ("batch", "keys", "size", "ours (us)", "PyTorch (us)", "PyTorch / ours", "floor (us)", "floor / ours")
    print(f"| {' | '.join((*heads, 'kernels', 'error'))} |\n|{'---|' * 10}", flush=True)
    for name, measure in measures:
        try:
            print(measure(rate), flush=True)
        except Exception as error:  # one case must not cost the others their device time
            print(f"| {name} | {type(error).__name__}: {str(error)[:300]} |", flush=True)


if __name__ == "__main__":
    main()
