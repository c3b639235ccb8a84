"""Networks of newer kinds: timm's of transformers beside convolutions, blocks of language models, state spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from wild_inputs import Builder, Built, FirstOutput, floats, tokens
from wild_transformers import Logits
from wild_vision import torchvision


def _timm(name: str, side: int = 224) -> Builder:
    """A model of timm's by its name, on images of one side: small ones are of that side, too, as many require it."""

    def build(small: bool) -> Built:
        torchvision()  # which it imports
        import timm

        return timm.create_model(name, pretrained=False), (floats(1, 3, side, side),)

    return build


def _language(name: str, words: int, length: int = 64, **sizes: Any) -> Builder:
    """Some blocks of a language model of transformers, by the name of its class, in the widths of `sizes`."""

    def build(small: bool) -> Built:
        import transformers

        made = getattr(transformers, name)
        fewer = {"num_hidden_layers": 2} if small else {}
        config = made.config_class(vocab_size=words, **{**sizes, **fewer})
        return Logits(made(config).float(), ("input_ids",), use_cache=False), (
            tokens(words, 1, 16 if small else length),
        )

    return build


def _clip(small: bool) -> Built:
    """The image's and the text's encoder of CLIP, and the similarity of both."""
    import transformers

    fewer = {"num_hidden_layers": 2} if small else {}
    config = transformers.CLIPConfig(text_config={**fewer}, vision_config={**fewer})
    model = transformers.CLIPModel(config)
    given = ("input_ids", "pixel_values")
    return Logits(model, given), (tokens(49000, 1, 77), floats(1, 3, 224, 224))


def _t5(small: bool) -> Built:
    """T5's encoder and one step of its decoder."""
    import transformers

    layers = {"num_layers": 2, "num_decoder_layers": 2} if small else {}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**layers))
    given = ("input_ids", "decoder_input_ids")
    return Logits(model, given, use_cache=False), (tokens(32128, 1, 16 if small else 64), tokens(32128, 1, 4))


def _mamba(small: bool) -> Built:
    """Blocks of a selective state space, whose scan is a loop over tokens."""
    import transformers

    config = transformers.MambaConfig(
        vocab_size=1000, hidden_size=256, num_hidden_layers=1 if small else 2, state_size=16, use_cache=False
    )
    return Logits(transformers.MambaForCausalLM(config), ("input_ids",)), (tokens(1000, 1, 8 if small else 32),)


def _hubert(small: bool) -> Built:
    import transformers

    config = transformers.HubertConfig(num_hidden_layers=2 if small else 12)
    return FirstOutput(transformers.HubertModel(config), 0), (floats(1, 4000 if small else 16000),)


class UNet(nn.Module):
    """Ronneberger, Fischer and Brox's network of 2015, with padding and batch normalisation as others have it."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        widths = [width << k for k in range(depth + 1)]
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip([3, *widths[:-1]], widths, strict=True))
        pairs = list(zip(reversed(widths[1:]), reversed(widths[:-1]), strict=True))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(_twice(2 * b, b) for _, b in pairs)
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = []
        for number, block in enumerate(self.down):
            x = block(nn.functional.max_pool2d(x, 2) if number else x)
            kept.append(x)
        kept.pop()
        for wider, block in zip(self.wider, self.up, strict=True):
            x = block(torch.cat([kept.pop(), wider(x)], 1))
        return self.head(x)


def _twice(a: int, b: int) -> nn.Module:
    layers = [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1)]
    return nn.Sequential(*layers, nn.BatchNorm2d(b), nn.ReLU())


def _unet(small: bool) -> Built:
    return UNet(16 if small else 64, 4), (floats(1, 3, *[64 if small else 256] * 2),)


_LLAMA_LIKE: Mapping[str, Any] = {
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 4,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
}
_TIMM: Mapping[str, int] = {
    "cait_xxs24_224": 224,
    "coat_lite_tiny": 224,
    "convnextv2_nano": 224,
    "crossvit_9_240": 240,
    "davit_tiny": 224,
    "deit_tiny_patch16_224": 224,
    "edgenext_small": 256,
    "efficientformer_l1": 224,
    "efficientformerv2_s0": 224,
    "efficientvit_b1": 224,
    "eva02_tiny_patch14_224": 224,
    "fastvit_t8": 256,
    "focalnet_tiny_srf": 224,
    "gcvit_xxtiny": 224,
    "hrnet_w18_small": 224,
    "levit_128s": 224,
    "mambaout_femto": 224,
    "maxvit_tiny_rw_224": 224,
    "mobilenetv4_conv_small": 224,
    "mobilevit_s": 256,
    "mobilevitv2_050": 256,
    "poolformer_s12": 224,
    "pvt_v2_b0": 224,
    "repvit_m0_9": 224,
    "res2net50_26w_4s": 224,
    "resnest14d": 224,
    "sequencer2d_s": 224,
    "starnet_s1": 224,
    "twins_svt_small": 224,
    "xcit_nano_12_p16_224": 224,
}
NEWER: dict[str, Builder] = {
    **{f"timm_{name}": _timm(name, side) for name, side in _TIMM.items()},
    "new_clip": _clip,
    "new_gemma2": _language(
        "Gemma2ForCausalLM", 8000, **{**_LLAMA_LIKE, "head_dim": 64, "num_attention_heads": 8, "sliding_window": 32}
    ),
    "new_hubert": _hubert,
    "new_mamba": _mamba,
    "new_modernbert": _language(
        "ModernBertForMaskedLM",
        8000,
        128,
        num_hidden_layers=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    "new_mixtral": _language(
        "MixtralForCausalLM", 8000, **{**_LLAMA_LIKE, "intermediate_size": 1792, "num_local_experts": 4}
    ),
    "new_phi3": _language("Phi3ForCausalLM", 8000, pad_token_id=0, **{**_LLAMA_LIKE, "num_key_value_heads": 14}),
    "new_qwen2": _language("Qwen2ForCausalLM", 8000, **_LLAMA_LIKE),
    "new_qwen3": _language("Qwen3ForCausalLM", 8000, **_LLAMA_LIKE, head_dim=64),
    "new_t5": _t5,
    "new_unet": _unet,
}
"""Builders by name: those of timm need it beside PyTorch."""
