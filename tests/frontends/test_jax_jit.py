"""JAX functions on our kernels; needs JAX."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import loopwright as lw

jax = pytest.importorskip("jax")
jnp = jax.numpy


def layer(x: Any, p: Any) -> Any:
    y = jnp.tanh(x @ p["w"] + p["b"])
    return {"y": y, "best": jnp.argmax(y, -1), "large": y > 0}


def arguments() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    weights = {"w": jnp.asarray(random.standard_normal((8, 4)), "float32"), "b": jnp.ones(4)}
    return jnp.asarray(random.standard_normal((3, 8)), "float32"), weights


def require_same(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert isinstance(a, jax.Array) and a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a, "float64"), np.asarray(b, "float64"), 1e-5, 1e-5)


def test_a_function_of_trees_computes_what_jax_does() -> None:
    ours, given = lw.jax.jit(layer), arguments()
    require_same(ours(*given), layer(*given))
    assert ours.network(*given).name == "layer" and len(ours.compiled(*given).kernels) > 0


def test_each_shape_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from loopwright.frontends.jax import jitted as module

    count = []
    compiled = module.compile_network
    monkeypatch.setattr(module, "compile_network", lambda *a, **k: count.append(1) or compiled(*a, **k))
    ours = lw.jax.jit(lambda x: x * 2 + 1)
    for n in (3, 4, 3):
        require_same(ours(jnp.arange(float(n))), jnp.arange(float(n)) * 2 + 1)
    assert len(count) == 2


def test_it_is_a_callback_under_jit_and_vmap() -> None:
    ours = lw.jax.jit(lambda x: jnp.sum(x * x, -1))
    x = arguments()[0]
    wanted = jnp.sum(x * x, -1)
    require_same(jax.jit(lambda x: ours(x) + 1)(x), wanted + 1)
    require_same(jax.vmap(ours)(x), wanted)


def test_static_arguments_numbers_and_types() -> None:
    def plain(x: Any, n: int, scale: Any = 1.0) -> Any:
        return scale * x**n

    power = lw.jax.jit(static_argnums=1)(plain)
    x = jnp.asarray([1.0, 2.0, 3.0])
    require_same(power(x, 2), x**2)
    require_same(power(x, 3, scale=2.0), 2 * x**3)
    require_same(lw.jax.jit(lambda x: x + 1)(np.arange(3)), jnp.arange(3) + 1)
    require_same(lw.jax.jit(lambda x: x @ x.T)(jnp.ones((2, 3), "bfloat16")), jnp.full((2, 2), 3, "bfloat16"))


def test_what_cannot_be_imported_is_said() -> None:
    with pytest.raises(lw.MlirImportError, match=r"stablehlo.fft: Fourier transforms are not supported"):
        lw.jax.jit(jnp.fft.rfft)(jnp.ones(4))


def test_results_are_not_overwritten_by_the_next_call() -> None:
    ours = lw.jax.jit(lambda x: x + 1)
    first = ours(jnp.zeros(8))
    ours(jnp.ones(8))
    require_same(first, jnp.ones(8))


def network(p: Any, x: Any) -> Any:
    h = jax.nn.gelu(x @ p["w"] + p["b"])
    return {"y": h * 2, "best": jnp.argmax(h, -1)}


def parameters() -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    p = {"w": jnp.asarray(random.standard_normal((8, 4)), "float32"), "b": jnp.ones(4)}
    return p, jnp.asarray(random.standard_normal((5, 8)), "float32")


def test_derivatives_are_those_of_the_function() -> None:
    ours, (p, x) = lw.jax.jit(network), parameters()

    def loss(f: Any) -> Any:
        return lambda p, x: (f(p, x)["y"] ** 2).sum()

    require_same(jax.grad(loss(ours))(p, x), jax.grad(loss(network))(p, x))
    require_same(jax.jit(jax.grad(loss(ours), 1))(p, x), jax.grad(loss(network), 1)(p, x))
    given = jax.tree.map(jnp.ones_like, p)
    for one, other in zip(
        jax.jvp(lambda p: loss(ours)(p, x), (p,), (given,)),
        jax.jvp(lambda p: loss(network)(p, x), (p,), (given,)),
        strict=True,
    ):
        require_same(one, other)
    require_same(jax.vmap(jax.grad(loss(ours)), (None, 0))(p, x), jax.vmap(jax.grad(loss(network)), (None, 0))(p, x))


def test_vmap_compiles_for_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    from loopwright.frontends.jax import jitted as module

    shapes = []
    run = module._run
    monkeypatch.setattr(module, "_run", lambda low, leaves: shapes.append(leaves[-1].shape) or run(low, leaves))
    ours, (p, x) = lw.jax.jit(network), parameters()
    require_same(jax.vmap(ours, (None, 0))(p, x), jax.vmap(network, (None, 0))(p, x))
    require_same(jax.jit(jax.vmap(ours, (None, 1)))(p, x.T), jax.vmap(network, (None, 0))(p, x))
    assert shapes == [(5, 8), (5, 8)]
    nested = jax.vmap(jax.vmap(ours, (None, 0)), (None, 0))
    require_same(nested(p, x[None]), jax.tree.map(lambda y: y[None], network(p, x)))


def test_threads_get_the_results_of_their_own_arguments() -> None:
    ours = lw.jax.jit(lambda x: (jnp.tanh(x), x.sum()))
    inputs = [jnp.full((64, 64), float(k)) for k in range(8)]
    wanted = [(jnp.tanh(x), x.sum()) for x in inputs]
    with ThreadPoolExecutor(4) as threads:
        for found, right in zip(threads.map(ours, inputs * 5), wanted * 5, strict=True):
            require_same(found, right)


def test_arguments_may_be_one_array_and_results_an_argument() -> None:
    ours = lw.jax.jit(lambda x, y: (x, x + y, (y,)))
    x = jnp.arange(16.0)
    first = ours(x, x)
    require_same(first, (x, 2 * x, (x,)))
    ours(x + 1, x)
    require_same(first, (x, 2 * x, (x,)))


def test_arrays_may_be_given_away() -> None:
    ours = lw.jax.jit(lambda x: x * 2)
    donated = jax.jit(lambda x: ours(x) + 1, donate_argnums=0)
    x = jnp.arange(8.0)
    require_same(donated(x), jnp.arange(8.0) * 2 + 1)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        ours(x)
