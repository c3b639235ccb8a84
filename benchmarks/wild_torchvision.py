"""Networks of torchvision: classes, segmentation, detection, video."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from wild_inputs import Builder, Built, FirstOutput, floats
from wild_vision import torchvision


class Dense(nn.Module):
    """The dense part of a detector: the pyramid of its backbone and its heads, before anything depends on data."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head

    def forward(self, x: Tensor) -> list[Tensor]:
        features = list(self.backbone(x).values())
        return list(self.head(features).values())


class Detector(nn.Module):
    """A whole detector: images to boxes, scores and labels, as many as the data has."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> list[Tensor]:
        found = self.model(list(x))[0]
        return [found["boxes"], found["scores"]]


def _vision(name: str, pixels: int = 224, least: int = 64, **options: Any) -> Builder:
    def build(small: bool) -> Built:
        side = least if small else pixels
        return torchvision().models.get_model(name, weights=None, **options), (floats(1, 3, side, side),)

    return build


def _vit(small: bool) -> Built:
    side = 64 if small else 224
    return torchvision().models.vit_b_16(weights=None, image_size=side), (floats(1, 3, side, side),)


def _inception(small: bool) -> Built:
    side = 96 if small else 299
    return torchvision().models.inception_v3(aux_logits=False, init_weights=False), (floats(1, 3, side, side),)


def _video(small: bool) -> Built:
    side = 32 if small else 112
    return torchvision().models.video.r3d_18(weights=None), (floats(1, 3, 4 if small else 8, side, side),)


def _segmentation(name: str) -> Builder:
    def build(small: bool) -> Built:
        side = 64 if small else 256
        made = torchvision().models.get_model(name, weights=None, weights_backbone=None, num_classes=21)
        return FirstOutput(made, "out"), (floats(1, 3, side, side),)

    return build


def _detection(name: str, pixels: int, wrap: Callable[[nn.Module], nn.Module], **options: Any) -> Builder:
    def build(small: bool) -> Built:
        side = 128 if small else pixels
        made = torchvision().models.get_model(name, weights=None, weights_backbone=None, num_classes=21, **options)
        return wrap(made), (torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0)),)

    return build


VISION: dict[str, Builder] = {
    "det_fasterrcnn_full": _detection(
        "fasterrcnn_mobilenet_v3_large_320_fpn",
        320,
        Detector,
        rpn_pre_nms_top_n_test=100,
        rpn_post_nms_top_n_test=50,
        box_detections_per_img=20,
    ),
    "det_retinanet_r50_fpn_heads": _detection("retinanet_resnet50_fpn", 320, Dense),
    "det_ssdlite320_full": _detection(
        "ssdlite320_mobilenet_v3_large", 320, Detector, topk_candidates=20, detections_per_img=20
    ),
    "det_ssdlite320_heads": _detection("ssdlite320_mobilenet_v3_large", 320, Dense),
    "seg_deeplabv3_mobilenet_v3_large": _segmentation("deeplabv3_mobilenet_v3_large"),
    "seg_deeplabv3_resnet50": _segmentation("deeplabv3_resnet50"),
    "seg_fcn_resnet50": _segmentation("fcn_resnet50"),
    "seg_lraspp_mobilenet_v3_large": _segmentation("lraspp_mobilenet_v3_large"),
    "tv_convnext_tiny": _vision("convnext_tiny"),
    "tv_densenet121": _vision("densenet121"),
    "tv_efficientnet_b0": _vision("efficientnet_b0"),
    "tv_inception_v3": _inception,
    "tv_mobilenet_v2": _vision("mobilenet_v2"),
    "tv_mobilenet_v3_large": _vision("mobilenet_v3_large"),
    "tv_r3d_18": _video,
    "tv_regnet_y_400mf": _vision("regnet_y_400mf"),
    "tv_resnet18": _vision("resnet18"),
    "tv_resnet50": _vision("resnet50"),
    "tv_resnext50_32x4d": _vision("resnext50_32x4d"),
    "tv_shufflenet_v2_x1_0": _vision("shufflenet_v2_x1_0"),
    "tv_squeezenet1_1": _vision("squeezenet1_1"),
    "tv_swin_t": _vision("swin_t"),
    "tv_swin_v2_t": _vision("swin_v2_t"),
    "tv_vit_b_16": _vit,
}
