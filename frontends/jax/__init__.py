"""JAX functions on kernels of loopwright: `lw.jax.jit`."""

from .jitted import jit as jit
