"""JAX functions on our kernels, with arrays on devices; needs JAX, and most of it JAX with CUDA."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or no other test has memory on the device
jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy
TARGETS = ("cuda", "llvm")
ELSEWHERE = """
import jax, jax.numpy as jnp, loopwright as lw
first, second = jax.devices("cpu")
ours = lw.jax.jit(lambda x: {"sum": x + 1, "large": x > 1})
for device in (first, second):
    found = ours(jax.device_put(jnp.arange(4.0), device))
    assert {each for leaf in jax.tree.leaves(found) for each in leaf.devices()} == {device}, found
both = ours(jax.device_put(jnp.arange(4.0), second))["sum"] + jax.device_put(jnp.ones(4), second)
assert both.tolist() == [2, 3, 4, 5]
"""


@pytest.fixture
def device() -> Any:
    """The first CUDA device that JAX knows."""
    try:
        return jax.devices("cuda")[0]
    except RuntimeError:
        pytest.skip("JAX has no CUDA device here: pip install 'jax[cuda12]'")


def on(device: Any, *shape: int, seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return jax.device_put(jnp.asarray(drawn), device)


def layer(x: Any, w: Any) -> Any:
    y = jnp.tanh(x @ w)
    return {"y": y, "best": jnp.argmax(y, -1), "large": y > 0}


def require_same(one: Any, other: Any) -> None:
    """Hold results to those of JAX, which rounds factors of products to TF32 unless it is told not to."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert isinstance(a, jax.Array) and a.dtype == b.dtype and a.devices() == b.devices()
        np.testing.assert_allclose(np.asarray(a, "float64"), np.asarray(b, "float64"), 1e-5, 1e-5)


def test_results_are_on_the_device_of_the_arguments() -> None:
    """Of two devices, which the CPU is taken for."""
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("target", TARGETS)
def test_a_function_of_arrays_on_cuda(target: str, device: Any) -> None:
    ours, given = lw.jax.jit(layer, target=target), (on(device, 32, 16), on(device, 16, 8, seed=1))
    with jax.default_matmul_precision("highest"):
        wanted = jax.jit(layer)(*given)
    require_same(ours(*given), wanted)
    first = ours(*given)["y"]
    ours(given[0] + 1, given[1])
    require_same(first, wanted["y"])


@pytest.mark.gpu
@pytest.mark.parametrize("target", TARGETS)
def test_transformations_on_cuda(target: str, device: Any) -> None:
    ours, x = lw.jax.jit(lambda x: jnp.sum(x * x, -1), target=target), on(device, 6, 20)
    wanted = jnp.sum(x * x, -1)
    require_same(jax.jit(lambda x: ours(x * 2) + 1)(x), 4 * wanted + 1)
    require_same(jax.vmap(ours)(x), wanted)
    require_same(jax.grad(lambda x: ours(x).sum())(x), 2 * x)


@pytest.mark.gpu
def test_what_jax_has_yet_to_compute_is_waited_for(device: Any) -> None:
    ours, x = lw.jax.jit(lambda x: x + 1, target="cuda"), on(device, 2048, 2048) / 64
    y = x
    for _ in range(20):
        y = jnp.tanh(y @ x)
    found = ours(y)
    require_same(found, y + 1)


@pytest.mark.gpu
def test_arrays_on_cuda_do_not_go_through_the_host(device: Any) -> None:
    ours, given = lw.jax.jit(lambda x, w: jnp.tanh(x @ w) + x, target="cuda"), (on(device, 64, 64), on(device, 64, 64))
    first = ours(*given)
    with jax.transfer_guard("disallow"), pytest.raises(Exception, match=r"(?i)transfer"):
        np.asarray(given[0])  # it does see what goes to the host
    with jax.transfer_guard("disallow"):
        again, reused = ours(*given), ours(first, given[1])
    assert (np.asarray(again) == np.asarray(first)).all()
    assert (np.asarray(reused) == np.asarray(ours(jax.device_put(np.asarray(first), device), given[1]))).all()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "bool"])
def test_element_types_on_cuda(dtype: str, device: Any) -> None:
    ours = lw.jax.jit(lambda x, y: (jnp.where(x > y, x, y), x == y), target="cuda")
    given = [(on(device, 30, 7, seed=seed) * 2).astype(dtype) for seed in (0, 1)]
    require_same(ours(*given), (jnp.where(given[0] > given[1], *given), given[0] == given[1]))


@pytest.mark.gpu
def test_kernels_take_and_give_arrays_of_jax_by_dlpack(device: Any) -> None:
    n = 1000
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    kernel = lw.SearchTask(lambda: [a, b, te.compute((n,), lambda i: a[i] * 2 + b[i], name="c")], target="cuda").build()
    x, y = on(device, n), on(device, n, seed=1)
    found = jax.dlpack.from_dlpack(kernel(jnp.tanh(x), y))
    require_same(found, jnp.tanh(x) * 2 + y)
