"""Programs in JAX whose StableHLO the importer is tested on; as a script, writes their texts and results.

`tests/frontends/stablehlo/` holds, for each, the pretty form (`name.mlir`), and in `data.npz` its arguments and what
JAX computes, so that the tests run without JAX: `python tests/support/jax_programs.py` writes them anew.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

FOLDER = Path(__file__).resolve().parents[1] / "frontends" / "stablehlo"
RANDOM = np.random.default_rng(0)


@dataclass(frozen=True)
class JaxProgram:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def text(self, generic: bool = False) -> str:
        lowered = jax.jit(self.function).lower(*self.arguments)
        if generic:
            module: Any = lowered.compiler_ir("stablehlo")
            return str(module.operation.get_asm(print_generic_op_form=True))
        return lowered.as_text()

    def results(self) -> list[Any]:
        return [np.asarray(r) for r in jax.tree.leaves(jax.jit(self.function)(*self.arguments))]


PROGRAMS: dict[str, JaxProgram] = {}


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = JaxProgram(function, arguments)
        return function

    return keep


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype("float32")


def ints(most: int, *shape: int) -> Any:
    return RANDOM.integers(0, most, shape).astype("int32")


@program(floats(4, 16), floats(16, 32), floats(32), floats(32, 8))
def mlp(x: Any, w: Any, b: Any, v: Any) -> Any:
    return jax.nn.softmax(jax.nn.gelu(x @ w + b) @ v)


@program(floats(1, 8, 8, 3), floats(3, 3, 3, 4), floats(4), floats(4))
def convolution_block(x: Any, w: Any, scale: Any, shift: Any) -> Any:
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.nn.relu(y * scale + shift)
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@program(floats(2, 6, 4, 8), floats(2, 6, 4, 8), floats(2, 6, 4, 8))
def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(8.0)
    scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


@program(floats(4, 16), floats(16), floats(16))
def layer_norm(x: Any, gain: Any, shift: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain + shift


@program(floats(1, 3, 8, 8))
def pooling(x: Any) -> Any:
    sums = lax.reduce_window(x, 0.0, lax.add, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))
    largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 2), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (0, 0)))
    spread = lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 2), (1, 1, 1, 2), "VALID", (1, 1, 2, 1), (1, 1, 1, 2))
    return sums / 9, largest, spread


@program(floats(2, 8), floats(2, 4), floats(2, 4), floats(8, 16), floats(4, 16), floats(16))
def lstm_cell(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    i, f, g, o = jnp.split(x @ w + h @ u + b, 4, -1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


@program(floats(3, 7))
def reductions(x: Any) -> Any:
    several = jnp.any(x > 2, 0), jnp.all(x > -3), x.prod(0), jnp.max(x), jax.nn.logsumexp(x, -1)
    return *several, jnp.argmax(x, 1), jnp.argmin(x, 0), lax.reduce(x, 3.0, lax.add, (1,))


@program(floats(10, 4), ints(10, 2, 3))
def embedding(table: Any, places: Any) -> Any:
    return table[places], jnp.take(table, places, axis=0, mode="clip"), table.at[places[0]].get(mode="fill")


@program(floats(5, 6))
def functions(x: Any) -> Any:
    a = jnp.abs(x)
    t = jnp.tanh(x)
    roots = jnp.exp(x), jnp.log1p(a), jnp.expm1(x), jnp.cbrt(x), jnp.arctan2(x, x[:1]), lax.rsqrt(a), jnp.square(x)
    rounded = jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x), lax.round(x), jnp.sign(x), jnp.isfinite(x)
    curves = jnp.sinh(x), jnp.cosh(x), jnp.arcsin(t), jnp.arctanh(t / 2), jnp.tan(x), jnp.sin(x), jnp.arccosh(1 + a)
    errors = lax.erf(x), lax.erfc(x), lax.erf_inv(t), x**3, a**x, jnp.mod(x, 2.0), jnp.fmod(x, 2.0)
    layers = jax.nn.softplus(x), jax.nn.silu(x), jax.nn.elu(x), jax.nn.gelu(x, approximate=False), jnp.clip(x, -1, 1)
    return *roots, *rounded, *curves, *errors, *layers, lax.reduce_precision(x, 5, 10)


@program(ints(100, 4, 5), ints(7, 4, 5) + 1)
def integers(a: Any, b: Any) -> Any:
    s = a - 50
    bits = a & b, a | b, a ^ b, ~a, a << b, s >> b, lax.shift_right_logical(s, b), lax.population_count(a), lax.clz(a)
    numbers = a // b, s % b, -a, jnp.abs(s), jnp.sign(s), lax.div(s, b), lax.rem(s, b), a**2, jnp.clip(a, 3, 40)
    return *bits, *numbers, a.astype("uint8"), (a > b).astype("float32"), a.astype(bool), s.astype("int8")


@program(floats(4, 6))
def shapes(x: Any) -> Any:
    padded = jnp.pad(x, ((1, 2), (0, 3)), constant_values=2.0), lax.pad(x, 0.5, ((1, -1, 2), (-1, 2, 1)))
    parts = x[1:3, ::2], x[::-1], lax.dynamic_slice(x, (1, 2), (2, 3)), jnp.roll(x, 1, 0), jnp.diag(x @ x.T)
    joined = jnp.concatenate([x, x], 1), jnp.stack([x, x]), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 0)
    views = x.T, x.reshape(2, 12), x[:, None, :] * jnp.ones((1, 3, 1)), jnp.arange(6.0) + x, jnp.cumsum(x, 0)
    return *padded, *parts, *joined, *views


@program(floats(8, 6), np.int32(3), floats(2, 6))
def dynamic_places(x: Any, i: Any, u: Any) -> Any:
    return lax.dynamic_slice(x, (i, 0), (2, 4)), lax.dynamic_update_slice(x, u, (i, 0)), x[i]


@program(floats(8, 6), ints(8, 3), floats(3, 6))
def scatters(x: Any, i: Any, u: Any) -> Any:
    whole = x.at[i].set(u), x.at[i].add(u), x.at[i].max(u), x.at[1].multiply(2.0)
    return *whole, x.at[i, 2].add(1.0), x.at[2:4].set(0.0)


@program(floats(4, 3), floats(3, 3))
def loops(x: Any, w: Any) -> Any:
    def step(h: Any, t: Any) -> Any:
        h = jnp.tanh(h @ w + t)
        return h, h.sum()

    last, sums = lax.scan(step, x[0], x)
    return last, sums, lax.fori_loop(0, 3, lambda i, v: v * 2 + i, x)


@program(np.int32(1), floats(3, 3))
def branches(i: Any, x: Any) -> Any:
    some = lax.switch(i, [lambda a: a, lambda a: -a, lambda a: a * a], x)
    return some, lax.cond(i > 0, lambda a: a + 1, lambda a: a * 2, x)


@program(floats(2, 4, 6, 6), floats(5, 4, 3, 3))
def gradients(x: Any, w: Any) -> Any:
    def loss(w: Any) -> Any:
        return (jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME")) ** 2).sum()

    return jax.grad(loss)(w)


@program(floats(2, 3, 4, 5), floats(2, 5, 3, 6))
def products(x: Any, y: Any) -> Any:
    batched = jnp.einsum("abcd,adbe->abce", x, y), jnp.einsum("abcd,adbe->ace", x, y), x @ y.transpose(0, 2, 1, 3)
    plain = x[0, 0].T @ x[0, 0], x[0, 0] @ y[0, :, 0, 0], jnp.vdot(x[0, 0, 0], y[0, :, 0, 0])
    return *batched, *plain, jnp.outer(x[0, 0, 0], y[0, 0, 0]), jnp.tensordot(x, y, ((3,), (1,)))


@program(floats(4, 6).astype("float16"), floats(6, 4).astype("float16"))
def half(x: Any, y: Any) -> Any:
    return x @ y, jax.nn.softmax(x), jnp.sum(x, 0), jnp.tanh(x)


@program(jnp.asarray(floats(4, 6), jnp.bfloat16), jnp.asarray(floats(6, 4), jnp.bfloat16))
def bfloat16(x: Any, y: Any) -> Any:
    return x @ y, jax.nn.gelu(x), jnp.sum(x, 0), jnp.dot(x, y, preferred_element_type=jnp.float32)


@program(ints(100, 4, 6).astype("int8"), ints(100, 6, 4).astype("int8"))
def int8(x: Any, y: Any) -> Any:
    return lax.dot(x, y, preferred_element_type=jnp.int32), x + x, (x > 3) & (y.T > 3)


@program(floats(3, 4))
def constants(x: Any) -> Any:
    table = np.random.default_rng(1).standard_normal((4, 40)).astype("float32")
    return x @ table, x + np.arange(12, dtype="float32").reshape(3, 4), jnp.full((2,), -jnp.inf), lax.top_k(x, 2)


@program(floats(4, 16), floats(16), floats(16))
def normalisations(x: Any, gain: Any, shift: Any) -> Any:
    """As Flax and Keras write them; each is one kernel."""
    spread = jnp.maximum((x * x).mean(-1) - x.mean(-1) ** 2, 0.0)
    scale = lax.rsqrt(spread[:, None] + 1e-6) * gain
    flax = (x - x.mean(-1)[:, None]) * scale + shift
    rms = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain
    pre_activation = x - jnp.max(x, 0)
    columns = pre_activation - jnp.log(jnp.exp(pre_activation).sum(0))
    return flax, rms, jax.nn.standardize(x), jax.nn.softmax(x, 0), jax.nn.log_softmax(x), columns


@program(jnp.asarray(floats(2, 6, 4, 8), jnp.bfloat16), jnp.asarray(floats(8), jnp.bfloat16))
def bfloat16_layers(x: Any, gain: Any) -> Any:
    """Means and sums are taken in single precision."""
    centred = x - x.mean(-1, keepdims=True)
    norm = centred * lax.rsqrt(x.var(-1, keepdims=True) + jnp.bfloat16(1e-5)) * gain
    wide = x.astype("float32")
    rms = (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * gain
    return jax.nn.dot_product_attention(x, x, x), norm, rms, jax.nn.log_softmax(x)


@program(floats(3, 9), ints(4, 9))
def sorting(x: Any, i: Any) -> Any:
    x = x.at[0, 2].set(jnp.nan).at[1, 1].set(-jnp.inf)
    plain = jnp.sort(x), jnp.argsort(x, 0), jnp.sort(x, descending=True), jnp.argsort(i, descending=True)
    several = lax.sort((x, x + 1, x > 2), num_keys=2), lax.sort_key_val(i, jnp.arange(9))
    return *plain, *several, lax.top_k(x[2], 4), jnp.searchsorted(jnp.sort(x[2]), x[1:].ravel())


@program(floats(2, 7, 7, 3))
def pooling_gradients(x: Any) -> Any:
    def gradient(start: float, join: Any, window: Any, strides: Any, padding: Any) -> Any:
        return jax.grad(lambda x: (lax.reduce_window(x, start, join, window, strides, padding) ** 2).sum())(
            jnp.round(x)
        )

    largest = gradient(-jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    uneven = gradient(-jnp.inf, lax.max, (1, 2, 3, 1), (1, 3, 2, 1), ((0, 0), (1, 1), (2, 1), (0, 0)))
    smallest = gradient(jnp.inf, lax.min, (1, 3, 2, 1), (1, 1, 1, 1), "VALID")
    return largest, uneven, smallest, gradient(0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@program(floats(4, 9))
def windows(x: Any) -> Any:
    def further(a: Any, b: Any) -> Any:
        first = (b[0] > a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
        return jnp.where(first, b[0], a[0]), jnp.where(first, b[1], a[1])

    places = lax.broadcasted_iota("int32", x.shape, 1)
    best = lax.reduce_window((x, places), (-np.inf, np.int32(99)), further, (1, 3), (1, 2), "SAME")
    norms = lax.reduce_window(x, 0.0, lambda a, b: jnp.sqrt(a * a + b * b), (2, 3), (1, 2), "SAME")
    so_far = lax.cumlogsumexp(x, 1), lax.cummax(x, 1), lax.cumprod(x, 0), lax.cummin(x, 1, reverse=True)
    return *best, norms, lax.reduce_window(x > 0, False, lax.bitwise_or, (2, 3), (1, 2), "SAME"), *so_far


@program(floats(5, 6, 7), ints(5, 5, 3), floats(5, 3, 7), floats(1, 2, 3, 7))
def general_places(x: Any, i: Any, u: Any, w: Any) -> Any:
    """Gathers and scatters of windows, with batch axes, of places outside."""
    odd = np.asarray([-9, 2, 8, -1], "int32")
    numbers = lax.ScatterDimensionNumbers((1, 2, 3), (), (0, 1))
    read = x[i, :, i], x.at[odd].get(mode="fill", fill_value=7), x[odd[1:]], x.at[odd].get(mode="clip")
    rows = jnp.tile(i[:1], (5, 1))
    moved = jax.vmap(lambda x, k: x[k])(x, rows), jnp.take_along_axis(x, jnp.tile(i[:, :, None], (1, 1, 7)), 1)
    parts = jax.vmap(lambda x, k: lax.dynamic_slice(x, (k, 0), (2, 7)))(x, i[:, 0])
    put = jax.vmap(lambda x, p, k: lax.dynamic_update_slice(x, p, (k, 0)))(x, u, i[:, 0])
    added = jax.vmap(lambda x, k, u: x.at[k].add(u))(x, rows, u)
    window = (
        lax.scatter_add(x, np.asarray([[1, 2]], "int32"), w, numbers),
        x.at[i, i].subtract(1.0),
        x[0].at[i, i].mul(2),
    )
    dropped = x.at[odd].add(1.0, mode="drop"), (x > 0).at[odd].set(True), jax.ops.segment_max(x[:, 0], i[:, 0], 4)
    return *read, *moved, parts, put, added, *window, *dropped, jax.grad(lambda t: (t[i] ** 2).sum())(x)


@program(floats(2, 3, 4, 5), floats(5, 2, 3, 6), floats(9, 3))
def general_products(x: Any, y: Any, z: Any) -> Any:
    several = lax.dot_general(x, y, (((1, 3), (2, 0)), ((0,), (1,))))
    chain = jnp.einsum("bij,bjk,kl->lib", x[0], x[1].transpose(0, 2, 1), x[0, 0])
    return several, chain, lax.dot_general(x[0], x[1, 0], (((), ()), ((), ()))), lax.associative_scan(jnp.add, z)


@program(floats(2, 4, 8, 8), floats(4, 2, 3, 3))
def convolution_gradients(x: Any, w: Any) -> Any:
    def loss(x: Any, w: Any) -> Any:
        return (lax.conv_general_dilated(x, w, (2, 1), "SAME", feature_group_count=2) ** 2).sum()

    def batches(w: Any) -> Any:
        return (lax.conv_general_dilated(x[:, :2], w, (1, 1), "SAME", batch_group_count=2) ** 2).sum()

    both = lax.conv_general_dilated(x, w[:, :1], (1, 1), ((1, 2), (0, 3)), (2, 3), (2, 1), feature_group_count=4)
    return *jax.grad(loss, (0, 1))(x, w), jax.grad(batches)(w), both, lax.conv(x[:, :2], w[:, :, ::-1], (1, 1), "SAME")


CONVOLUTIONS: dict[str, tuple[tuple[str, str, str], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "nchw": (("NCHW", "OIHW", "NCHW"), (2, 4, 9, 9), (6, 4, 3, 3), {}),
    "grouped": (("NHWC", "HWIO", "NHWC"), (2, 9, 9, 4), (3, 3, 2, 6), {"feature_group_count": 2}),
    "depthwise": (("NHWC", "HWIO", "NHWC"), (2, 9, 9, 4), (3, 3, 1, 8), {"feature_group_count": 4}),
    "dilated": (("NHWC", "HWIO", "NCHW"), (2, 9, 9, 4), (3, 3, 4, 6), {"rhs_dilation": (2, 2)}),
    "transposed": (("NHWC", "HWIO", "NHWC"), (2, 5, 5, 4), (3, 3, 4, 6), {"lhs_dilation": (2, 2)}),
    "batches": (("NHWC", "HWIO", "NHWC"), (4, 7, 7, 3), (3, 3, 3, 4), {"batch_group_count": 2}),
    "odd_order": (("CHWN", "OHWI", "HNWC"), (4, 9, 9, 2), (6, 3, 3, 4), {}),
    "one_axis": (("NCW", "OIW", "NCW"), (2, 4, 9), (4, 1, 3), {"feature_group_count": 4}),
    "three_axes": (("NDHWC", "DHWIO", "NDHWC"), (1, 5, 5, 5, 2), (3, 3, 3, 2, 4), {}),
}


def _convolution(name: str) -> None:
    order, data, weights, options = CONVOLUTIONS[name]
    count = len(data) - 2
    pads = [(1, 0), (-1, 2)] if count == 2 else [(1, 1)] * count

    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (2, *(1,) * (count - 1)), pads, dimension_numbers=order, **options)

    PROGRAMS[f"convolution_{name}"] = JaxProgram(convolve, (floats(*data), floats(*weights)))


for _name in CONVOLUTIONS:
    _convolution(_name)


def _plain(array: Any) -> Any:
    """An array as npz keeps it: bfloat16 in single precision."""
    whole = np.asarray(array)
    return whole.astype("float32") if whole.dtype == jnp.bfloat16 else whole


def main() -> int:
    arrays: dict[str, Any] = {}
    for name, each in PROGRAMS.items():
        (FOLDER / f"{name}.mlir").write_text(each.text())
        arrays.update({f"{name}.in{k}": _plain(a) for k, a in enumerate(each.arguments)})
        arrays.update({f"{name}.out{k}": _plain(a) for k, a in enumerate(each.results())})
    np.savez_compressed(FOLDER / "data.npz", **arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main())
