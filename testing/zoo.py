"""The networks of this folder by name, as command lines have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..graph.network import Network
from .bert import bert_encoder_layer
from .dcgan import dcgan
from .densenet import densenet
from .dqn import dqn
from .inception import inception_v3
from .lstm import lstm
from .mlp import mlp
from .mobilenet import mobilenet, mobilenet_v2
from .resnet import STAGES as RESNETS
from .resnet import resnet
from .resnet3d import resnet3d
from .squeezenet import squeezenet
from .transformer import transformer_decoder, transformer_encoder
from .vgg import STAGES as VGGS
from .vgg import vgg

NETWORKS: Mapping[str, Callable[..., Network]] = {
    **{f"resnet-{n}": partial(resnet, n) for n in RESNETS},
    **{f"resnet3d-{n}": partial(resnet3d, n) for n in RESNETS},
    "mobilenet": mobilenet,
    "mobilenet_v2": mobilenet_v2,
    **{f"vgg-{n}": partial(vgg, n) for n in VGGS},
    "squeezenet_v1.1": squeezenet,
    "inception_v3": inception_v3,
    "densenet-121": partial(densenet, 121),
    "dcgan": dcgan,
    "dqn": dqn,
    "mlp": mlp,
    "lstm": lstm,
    "transformer_encoder": transformer_encoder,
    "transformer_decoder": transformer_decoder,
    "bert_encoder_layer": bert_encoder_layer,
}
"""Name -> a function of `batch`, `layout`, `seed`, `dtype` and the network's own options."""


def network(name: str, batch: int = 1, layout: str = "NCHW", dtype: str = "float32", **options: Any) -> Network:
    """A network by name, of elements of the float type `dtype`; ValueError with the names there are."""
    if name not in NETWORKS:
        raise ValueError(f"there is no network '{name}'; there are {', '.join(NETWORKS)}")
    return NETWORKS[name](batch=batch, layout=layout, dtype=dtype, **options)
