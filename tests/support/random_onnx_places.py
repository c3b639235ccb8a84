"""Random ONNX operators that read at places between elements, at places that pools gave, and deformed windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_onnx import Graph, Tensor
from random_onnx_windows import image


def grid_sample(g: Graph) -> None:
    if g.opset < 16:
        return
    x = image(g, spatial=3 if g.opset >= 20 and g.chance(0.3) else 2)
    count = x.rank - 2
    sides = [g.choose((1, 2, 3, 5)) for _ in range(count)]
    places = g.weight((x.shape[0], *sides, count), "float32", scale=0.7)
    names = ("linear", "nearest", "cubic") if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    mode = g.choose(names if count == 2 else names[:2])
    padding = g.choose(("zeros", "border", "reflection"))
    g.add("GridSample", [x, places], mode=mode, padding_mode=padding, align_corners=g.number(0, 1))


def regions(g: Graph) -> None:
    x = image(g, spatial=2)
    count = g.number(1, 4)
    corners = g.rng.random((count, 4)) * np.array([x.shape[3], x.shape[2]] * 2)
    boxes = np.concatenate([np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1)
    which = g.constant(g.rng.integers(0, x.shape[0], count).astype(np.int64))
    attributes: dict[str, Any] = {"output_height": g.number(1, 3), "output_width": g.number(1, 4)}
    attributes |= {"sampling_ratio": g.number(1, 3), "spatial_scale": float(g.choose((1.0, 0.5)))}
    if g.opset >= 16:
        attributes["coordinate_transformation_mode"] = g.choose(("half_pixel", "output_half_pixel"))
    attributes["mode"] = "avg"  # the largest element onnxruntime takes before it weighs them
    g.add("RoiAlign", [x, g.constant(boxes.astype(np.float32)), which], **attributes)


def unpool(g: Graph) -> None:
    """A pool with its places, and the way back."""
    x = image(g, spatial=2)
    if any(n % 2 for n in x.shape[2:]):  # of which onnxruntime has no place for the last
        return
    kept, places = g.add("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    g.add("MaxUnpool", [kept, places], kernel_shape=[2, 2], strides=[2, 2])


def odd_resize(g: Graph) -> None:
    """Crops, symmetric halves of pixels, sizes that keep the aspect, and axes by number."""
    x = image(g, spatial=2)
    mode = g.choose(("linear", "nearest", "cubic"))
    attributes: dict[str, Any] = {"mode": mode}
    sides = [max(1, int(n * g.choose((0.5, 1, 1.5, 2)))) for n in x.shape[2:]]
    roi: Tensor | None = None
    place = g.choose(("tf_crop_and_resize", "half_pixel_symmetric", "half_pixel"))
    if place == "half_pixel_symmetric" and g.opset < 19:
        place = "half_pixel"
    attributes["coordinate_transformation_mode"] = place
    if place == "tf_crop_and_resize":
        attributes["mode"] = g.choose(("linear", "nearest"))  # outside of images onnxruntime's cubic has no other value
        attributes["extrapolation_value"] = float(g.choose((0.0, 0.5, -1.0)))
        roi = _crop(g, [a != b for a, b in zip(sides, x.shape[2:], strict=True)])
    if g.opset >= 18 and place != "tf_crop_and_resize" and g.chance(0.6):
        attributes["axes"] = [2, 3] if g.chance(0.5) else [3, 2]
        wanted = sides if attributes["axes"] == [2, 3] else sides[::-1]
        if g.chance(0.5):
            attributes["keep_aspect_ratio_policy"] = g.choose(("not_larger", "not_smaller"))
        g.add("Resize", [x, None, None, g.constant(np.array(wanted, np.int64))], **attributes)
        return
    empty = None if g.opset >= 13 else g.constant(np.zeros(0, np.float32))
    sizes = g.constant(np.array([*x.shape[:2], *sides], np.int64))
    g.add("Resize", [x, roi or empty, empty, sizes], **attributes)


def _crop(g: Graph, moved: list[bool]) -> Tensor:
    """A part of each axis whose extent changes, for onnxruntime crops no other; no place but 0 and 1 is at an edge."""
    parts = [g.choose(((0.0, 1.0), (0.21, 0.93), (-0.13, 0.71), (0.0, 1.23), (0.87, 0.06))) for _ in moved]
    first, last = ([part[k] if m else float(k) for part, m in zip(parts, moved, strict=True)] for k in range(2))
    return g.constant(np.array([0, 0, *first, 1, 1, *last], np.float32))


def deformed(g: Graph) -> None:
    if g.opset < 19:
        return
    x = image(g, spatial=2)
    kernel, made = g.choose(((1, 1), (2, 2), (3, 3), (3, 1))), g.choose((1, 2, 4))
    pads = [g.number(0, 1) for _ in range(4)]
    sides = [x.shape[2 + d] + pads[d] + pads[2 + d] - kernel[d] + 1 for d in range(2)]
    if min(sides) < 1:
        return
    size = kernel[0] * kernel[1]
    w = g.weight((made, x.shape[1], *kernel), "float32", 0.4)
    offset = g.weight((x.shape[0], 2 * size, *sides), "float32", 0.6)
    given: list[Tensor | None] = [x, w, offset]
    if g.chance(0.5):
        given.append(g.weight((made,), "float32") if g.chance(0.6) else None)
        given.append(g.weight((x.shape[0], size, *sides), "float32"))
    g.add("DeformConv", given, kernel_shape=list(kernel), pads=pads)
