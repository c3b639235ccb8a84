"""Networks of transformers: text, speech, images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from wild_inputs import Builder, Built, FirstOutput, floats, tokens
from wild_vision import torchvision


class Logits(nn.Module):
    """A model of transformers as a function of tensors, to one tensor."""

    def __init__(
        self, model: nn.Module, names: Sequence[str] = ("input_ids", "attention_mask"), **options: Any
    ) -> None:
        super().__init__()
        self.model, self.names, self.options = model, tuple(names), options

    def forward(self, *inputs: Tensor) -> Tensor:
        given = dict(zip(self.names, inputs, strict=False))
        return self.model(**given, **self.options, return_dict=False)[0]


def _transformers() -> Any:
    torchvision()  # which it imports, if it is there
    import transformers

    return transformers


class Decode(nn.Module):
    """One token behind kept keys and values: GPT-2's next step."""

    def __init__(self, model: nn.Module, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, token: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        cache = _transformers().DynamicCache()
        for k in range(self.layers):
            cache.update(keys[k], values[k], k)
        return self.model(input_ids=token, past_key_values=cache, use_cache=True).logits


def _text(name: str, words: int, small_length: int = 16, length: int = 128, **options: Any) -> Builder:
    """A model by the name of its class, of published widths and of less layers where it is small."""

    def build(small: bool) -> Built:
        transformers = _transformers()
        made = getattr(transformers, name)
        fewer = {"num_hidden_layers": 2} if small else {}
        config = made.config_class(vocab_size=words, **{**options, **fewer})
        n = small_length if small else length
        mask = torch.ones(1, n, dtype=torch.int64)
        mask[0, -n // 8 :] = 0
        return Logits(made(config)), (tokens(words, 1, n), mask)

    return build


def _gpt2(small: bool, layers: int = 12) -> Any:
    transformers = _transformers()
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2 if small else layers))


def _gpt2_prefill(small: bool) -> Built:
    return Logits(_gpt2(small), ("input_ids",), use_cache=False), (tokens(50257, 1, 16 if small else 64),)


def _gpt2_decode(small: bool) -> Built:
    layers, past = (2, 15) if small else (12, 63)
    model = Decode(_gpt2(small), layers)
    return model, (tokens(50257, 1, 1), floats(layers, 1, 12, past, 64), floats(layers, 1, 12, past, 64))


def _llama_prefill(small: bool) -> Built:
    """Blocks of TinyLlama's width: rotary positions, keys that heads share, norms by the root mean square, SwiGLU."""
    transformers = _transformers()
    config = transformers.LlamaConfig(
        vocab_size=32000,
        hidden_size=256 if small else 2048,
        intermediate_size=704 if small else 5632,
        num_hidden_layers=2 if small else 4,
        num_attention_heads=8 if small else 32,
        num_key_value_heads=2 if small else 4,
        max_position_embeddings=2048,
    )
    model = transformers.LlamaForCausalLM(config)
    return Logits(model, ("input_ids",), use_cache=False), (tokens(32000, 1, 16 if small else 64),)


def _encoder_of(name: str, inputs: Callable[[bool], tuple[Tensor, ...]], **options: Any) -> Builder:
    """A model by the name of its class that takes one tensor, of published widths and of less layers where small."""

    def build(small: bool) -> Built:
        made = getattr(_transformers(), name)
        fewer = {key: 2 for key in ("num_layers", "encoder_layers", "num_hidden_layers") if small and key in options}
        first = FirstOutput(made(made.config_class(**{**options, **fewer})), 0)
        return first, inputs(small)

    return build


def _whisper(small: bool) -> Built:
    transformers = _transformers()
    layers, frames = (2, 200) if small else (4, 3000)
    config = transformers.WhisperConfig(encoder_layers=layers, max_source_positions=frames // 2)  # "tiny"
    return FirstOutput(transformers.WhisperModel(config).encoder, 0), (floats(1, 80, frames),)


def _pixels(side: int) -> Callable[[bool], tuple[Tensor, ...]]:
    return lambda small: (floats(1, 3, *[64 if small else side] * 2),)


def _detr(small: bool) -> Built:
    transformers = _transformers()
    fewer = {"depths": [1, 1, 1, 1]} if small else {}
    backbone = transformers.ResNetConfig(out_features=["stage4"], **fewer)
    layers = dict.fromkeys(("encoder_layers", "decoder_layers"), 1 if small else 6)
    config = transformers.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone, **layers
    )
    return FirstOutput(transformers.DetrForObjectDetection(config), "logits"), _pixels(512)(small)


TEXT: dict[str, Builder] = {
    "hf_bert_base": _text("BertModel", 30522),
    "hf_deberta_v2": _text(
        "DebertaV2Model",
        5000,
        hidden_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=1024,
        relative_attention=True,
        position_buckets=256,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
    ),
    "hf_detr": _detr,
    "hf_distilbert": _text("DistilBertModel", 30522),
    "hf_gpt2_decode": _gpt2_decode,
    "hf_gpt2_prefill": _gpt2_prefill,
    "hf_llama_prefill": _llama_prefill,
    "hf_segformer_b0": _encoder_of("SegformerForSemanticSegmentation", _pixels(512), num_labels=150),
    "hf_t5_encoder": _encoder_of(
        "T5EncoderModel", lambda small: (tokens(32128, 1, 16 if small else 128),), num_layers=6
    ),
    "hf_wav2vec2": _encoder_of(
        "Wav2Vec2Model", lambda small: (floats(1, 4000 if small else 32000),), num_hidden_layers=12
    ),
    "hf_whisper_encoder": _whisper,
}
