"""Steps of fused optimizers as writes to their parameters, which PyTorch's version counters leave out."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def count_fused_steps() -> None:
    """From now on, have each step of a fused optimizer count as a write to the parameters that it changed.

    Steps that are not fused are counted by PyTorch itself. `torch.optim.Adam(..., fused=True)` writes all elements, and
    leaves `parameter._version` as it was (PyTorch 2.13).
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(_count)


def _count(optimizer: Any, args: Any, kwargs: Any) -> None:
    from torch.autograd.graph import increment_version

    for group in optimizer.param_groups:
        for parameter in group["params"] if group.get("fused") else ():
            if parameter.grad is not None:
                increment_version(parameter)
