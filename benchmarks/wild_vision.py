"""torchvision, also where its compiled operators do not fit the PyTorch that is installed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def torchvision() -> Any:
    """Import torchvision; where its build is one for another PyTorch, suppression of boxes is written in Python.

    Its networks need no more than that (`roi_align` has a form in Python of its own).
    """
    try:
        import torchvision as found
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        return _with_operators_in_python()
    return found


def _with_operators_in_python() -> Any:
    boxes = "Tensor dets, Tensor scores"
    torch.library.define("torchvision::nms", f"({boxes}, float iou_threshold) -> Tensor")
    torch.library.define("torchvision::qnms", f"({boxes}, float iou_threshold) -> Tensor")
    torch.library.impl("torchvision::nms", "CompositeExplicitAutograd", _suppressed)
    import torchvision as found

    found.ops.boxes._assert_has_ops = lambda: None
    return found


def _suppressed(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """The boxes that no better one covers by more than the threshold, the best first."""
    order, area = scores.argsort(descending=True, stable=True), (boxes[:, 2:] - boxes[:, :2]).prod(1)
    kept: list[Tensor] = []
    while order.numel():
        best, order = order[0], order[1:]
        kept.append(best)
        low, high = torch.maximum(boxes[best, :2], boxes[order, :2]), torch.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        order = order[shared <= threshold * (area[best] + area[order] - shared)]
    return torch.stack(kept) if kept else order
