"""ResNets for videos (Tran et al. 2018: R3D): R3D-18 as torchvision has it, deeper ones with the blocks of ResNets."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network
from ._layers import Layers, scaled
from .resnet import require_depth, residual_stages


@knows_classic_words
def resnet3d(
    layers: int = 18,
    batch: int = 1,
    layout: str = "NCHW",
    frames: int = 16,
    image: int = 112,
    classes: int = 400,
    width: float = 1.0,
    seed: int = 0,
    dtype: str = "float32",
) -> Network:
    """R3D of as many layers as ResNets have, on `frames` pictures of `image` x `image` pixels.

    The layout is NCHW (NCDHW) or NHWC (NDHWC).
    """
    require_depth("resnet3d", layers)
    found = {"NCHW": "NCDHW", "NHWC": "NDHWC"}.get(layout, layout)
    net = Layers(f"resnet3d{layers}", found, seed, dtype)
    x = net.image(batch, 3, (frames, image, image))
    x = net.conv_bn(x, "stem", scaled(64, width), (3, 7, 7), (1, 2, 2), (1, 3, 3))
    return net.classifier(net.global_pool(residual_stages(net, x, layers, width)), classes)
