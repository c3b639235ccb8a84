"""The generator of DCGAN (Radford et al. 2015): from random vectors to 64 x 64 pictures."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network
from ._layers import Layers, scaled


@knows_classic_words
def dcgan(
    batch: int = 1,
    layout: str = "NCHW",
    code: int = 100,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """The generator for vectors of `code` numbers; `width` multiplies channels."""
    net = Layers("dcgan", layout, seed, dtype)
    channels = scaled(1024, width)
    x = net.input("data", (batch, code))
    x = net.project(x, "project", channels, (4, 4))
    x = net.act(net.batch_norm(x, "project_bn"))
    for number, count in enumerate((512, 256, 128, 3), 1):
        last, name = count == 3, f"deconv{number}"
        filters, depth = count if last else scaled(count, width), net.channels(x)
        weight = net.normal((depth, filters, 4, 4), sqrt(0.5 / depth))
        if net.last:
            weight = np.ascontiguousarray(np.moveaxis(weight, (0, 1), (-2, -1)))
        given = net.net.constant(weight, f"{name}_weight")
        x = net.net.apply("conv2d_transpose", x, given, stride=2, padding=1, layout=layout, label=name)
        x = net.act(x, "tanh", "image") if last else net.act(net.batch_norm(x, f"{name}_bn"))
    return net.finish(x)
