"""One encoder layer of BERT-base (Devlin et al. 2018)."""

from __future__ import annotations

from ..dialects.classic_words import knows_classic_words
from ..graph.network import Network
from ._layers import Layers
from .transformer import Blocks


@knows_classic_words
def bert_encoder_layer(
    batch: int = 1,
    sequence: int = 128,
    hidden: int = 768,
    heads: int = 12,
    inner: int = 3072,
    seed: int = 0,
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Network:
    """Self-attention and feed-forward on `batch` sequences of `sequence` tokens; no mask, no dropout.

    The input `data` is (batch, sequence, hidden), as is the output. The layout makes no difference.
    """
    layers = Layers("bert_encoder_layer", layout, seed, dtype)
    blocks = Blocks(layers, batch, hidden, heads, inner, epsilon=1e-12)
    x = blocks.rows(layers.input("data", (batch, sequence, hidden)))
    return layers.finish(blocks.sequences(blocks.feed_forward(blocks.attend(x)), "hidden"))
