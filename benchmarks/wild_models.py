"""Networks that nobody here wrote, with random weights: torchvision's, transformers', and some in plain PyTorch.

A builder takes `small` (less pixels, tokens and layers; the layers' own widths stay) and returns a model and its
inputs. Weights are drawn so that outputs depend on inputs: what starts at zero or one (biases, scales of layers) is
drawn too, and batch normalisation has the statistics of its data.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from wild_inputs import Builder, Built
from wild_newer import NEWER
from wild_plain import PLAIN
from wild_torchvision import VISION
from wild_transformers import TEXT

MODELS: dict[str, Builder] = dict(sorted({**PLAIN, **VISION, **TEXT, **NEWER}.items()))


def built(name: str, small: bool) -> Built:
    """Build a model by its name, for inference, with weights that vary; ValueError names the models there are."""
    if name not in MODELS:
        raise ValueError(f"there is no model '{name}'; there are {', '.join(MODELS)}")
    torch.manual_seed(0)
    model, inputs = MODELS[name](small)
    with torch.no_grad():
        _vary(model)
        _measure_statistics(model.eval(), inputs)
    return model.eval(), inputs


def other_inputs(inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return inputs of the same shapes and types with other elements: reversed, halved."""
    return tuple(x.flip(tuple(range(x.ndim))) * (0.5 if x.is_floating_point() else 1) for x in inputs)


def _vary(model: nn.Module) -> None:
    """Draw the parameters that are one number all over: zeros, ones, or the scale of a layer."""
    rng = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.numel() > 1 and parameter.min() == parameter.max():
            base = parameter.flatten()[0].abs()
            noise = torch.randn(parameter.shape, generator=rng)
            parameter.copy_(0.1 * noise if base == 0 else base.clamp(min=0.1) * (1 + 0.2 * noise))


def _measure_statistics(model: nn.Module, inputs: Sequence[Tensor]) -> None:
    """Give batch normalisation the statistics of its data."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    if norms:
        model(*(torch.cat([x, y]) for x, y in zip(inputs, other_inputs(inputs), strict=True)))
