"""ResNet-18 for videos (Tran et al. 2018: R3D), as torchvision has it."""

from __future__ import annotations

from ..graph.network import Network, Value
from ._layers import Layers, scaled


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
    """R3D-18 on `frames` pictures of `image` x `image` pixels; layout NCHW (NCDHW) or NHWC (NDHWC)."""
    if layers != 18:
        raise ValueError(f"resnet3d has 18 layers, got {layers}")
    net = Layers("resnet3d18", {"NCHW": "NCDHW", "NHWC": "NDHWC"}.get(layout, layout), seed, dtype)
    x = net.image(batch, 3, (frames, image, image))
    x = net.conv_bn(x, "stem", scaled(64, width), (3, 7, 7), (1, 2, 2), (1, 3, 3))
    for stage in range(4):
        for unit in range(2):
            stride = 2 if stage and not unit else 1
            x = _basic(net, x, f"layer{stage + 1}.{unit}", scaled(64 << stage, width), stride)
    return net.classifier(net.global_pool(x), classes)


def _basic(net: Layers, x: Value, name: str, channels: int, stride: int) -> Value:
    y = net.conv_bn(x, f"{name}_conv1", channels, 3, stride, 1)
    y = net.conv_bn(y, f"{name}_conv2", channels, 3, 1, 1, act=None, gain=0.2)
    if stride != 1 or net.channels(x) != channels:
        x = net.conv_bn(x, f"{name}_down", channels, 1, stride, act=None)
    return net.act(y + x, "relu", name)
