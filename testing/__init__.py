"""Well-known networks with random weights, to tune, measure and test with; weights follow from the seed alone."""

from typing import TYPE_CHECKING

from ..dialects.classic_words import names_of_module as _names_of_module
from .bert import bert_encoder_layer as bert_encoder_layer
from .dcgan import dcgan as dcgan
from .densenet import densenet as densenet
from .dqn import dqn as dqn
from .inception import inception_v3 as inception_v3
from .lstm import lstm as lstm
from .mlp import mlp as mlp
from .mobilenet import mobilenet as mobilenet
from .mobilenet import mobilenet_v2 as mobilenet_v2
from .resnet import resnet as resnet
from .resnet3d import resnet3d as resnet3d
from .squeezenet import squeezenet as squeezenet
from .transformer import transformer_decoder as transformer_decoder
from .transformer import transformer_encoder as transformer_encoder
from .vgg import vgg as vgg
from .zoo import NETWORKS as NETWORKS
from .zoo import network as network

if not TYPE_CHECKING:  # type checkers know the names above
    __getattr__ = _names_of_module("loopwright.testing")
