"""Operators behind results that are sized by values: quicker ones in NumPy than ONNX's own, and products in kernels."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .versions import Versions

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

Array = npt.NDArray[Any]
Compile = Callable[["ModelProto"], Versions]

_PRODUCTS = {"Conv": "conv", "ConvTranspose": "conv_transpose", "Gemm": "gemm", "MatMul": "matmul"}
"""Operators with weights that compute each row of the outermost axis of their data by itself, and their modules."""


def tail_operators(weights: Mapping[str, TensorProto], version: int, compiled: Compile) -> list[type]:
    """Return classes for ONNX's reference evaluator, of operators of the standard domain.

    Those with `weights` of the model run in kernels: rows are as many as the data before say, and are padded to the
    next power of two, each of which is `compiled` once. `version` is that of the operator set.
    """
    made = [_boxes_chosen(), _boxes_pooled(), _scattered()]
    return made + [_product(_of_reference(*each), weights, version, compiled) for each in _PRODUCTS.items()]


def _of_reference(operator: str, file: str) -> Any:
    """Return the class that ONNX's evaluator has for the newest version of an operator."""
    module = importlib.import_module(f"onnx.reference.ops.op_{file}")
    return max((key, kind) for key, kind in vars(module).items() if key.split("_")[0] == operator)[1]


# -- in NumPy ---------------------------------------------------------------------------------------------------------


def _boxes_chosen() -> type:
    from onnx.reference.op_run import OpRun

    class NonMaxSuppression(OpRun):
        """The best boxes of each class, without those that overlap a better one."""

        def _run(
            self,
            boxes: Array,
            scores: Array,
            most: Array | None = None,
            overlap: Array | None = None,
            least: Array | None = None,
            center_point_box: int | None = None,
        ) -> tuple[Array]:
            count, threshold = int(_number(most, 0)), _number(overlap, 0)
            corners = _corners(boxes, bool(center_point_box))
            found = []
            for image, of_classes in enumerate(scores):
                for kind, each in enumerate(of_classes):
                    order = np.argsort(-each, kind="stable")
                    if least is not None and np.size(least):
                        order = order[each[order] > _number(least, 0)]
                    kept = chosen_boxes(corners[image], order, count, threshold)
                    found.append(np.stack(np.broadcast_arrays(image, kind, kept), axis=1))
            return (np.concatenate(found).astype(np.int64) if found else np.zeros((0, 3), np.int64),)

    return NonMaxSuppression


def _number(given: Array | None, default: float) -> Any:
    return default if given is None or not np.size(given) else np.asarray(given).reshape(-1)[0]


def _corners(boxes: Array, is_centred: bool) -> Array:
    """Bring boxes (..., 4) to their lower and upper corners: two coordinates each."""
    if is_centred:
        half = boxes[..., 2:] / 2
        return np.concatenate([boxes[..., :2] - half, boxes[..., :2] + half], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def chosen_boxes(corners: Array, order: Array, most: int, overlap: float) -> Array:
    """Return places of boxes (N, 4) in an order, without those that share more than `overlap` with one before."""
    kept = np.zeros(0, np.int64)
    for start in range(0, len(order), _AT_ONCE):
        if len(kept) >= most:
            break
        some = order[start : start + _AT_ONCE]
        some = some[~_overlapping(corners[some], corners[kept], overlap).any(axis=1)]
        pairs, gone = _overlapping(corners[some], corners[some], overlap), np.zeros(len(some), bool)
        is_kept = np.zeros(len(some), bool)
        for place, others in enumerate(pairs):
            if not gone[place]:
                is_kept[place] = True
                gone |= others
        kept = np.concatenate([kept, some[is_kept]])
    return kept[:most]


def _overlapping(some: Array, others: Array, overlap: float) -> Array:
    """Tell which boxes share more with which others than a part of both: (some, others)."""
    low = np.maximum(some[:, None, :2], others[None, :, :2])
    high = np.minimum(some[:, None, 2:], others[None, :, 2:])
    sides = np.maximum(high - low, 0)
    shared = sides[..., 0] * sides[..., 1]
    area, of_others = (np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (some, others))
    both = area[:, None] + of_others - shared
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = (shared > 0) & (area[:, None] > 0) & (of_others > 0) & (both > 0) & (shared / both > overlap)
    return found


_AT_ONCE = 64
"""Boxes that are compared with each other at once: 1,000 of 20 classes take 19 ms with 64 and 22 with 128 (Xeon,
Emerald Rapids, one core)."""


def _boxes_pooled() -> type:
    reference = _of_reference("RoiAlign", "roi_align")

    class RoiAlign(reference):  # type: ignore[valid-type, misc]
        """Boxes of feature maps brought to one size: means of bins, as two products with few rows and columns."""

        def _run(self, x: Array, boxes: Array, images: Array, **options: Any) -> tuple[Array]:
            given: dict[str, Any] = {"mode": "avg", "sampling_ratio": 0, "spatial_scale": 1.0}
            given |= {name: value for name, value in options.items() if value is not None}
            if str(given["mode"]).lower() != "avg":
                result: tuple[Array] = super()._run(x, boxes, images, **options)
                return result
            is_half = given.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
            size = int(given.get("output_height", 1)), int(given.get("output_width", 1))
            made = np.zeros((len(boxes), x.shape[1], *size), x.dtype)
            for number, (box, image) in enumerate(zip(boxes * given["spatial_scale"], images, strict=True)):
                sides = [
                    _bins(box[1 - axis], box[3 - axis], x.shape[2 + axis], size[axis], given["sampling_ratio"], is_half)
                    for axis in (0, 1)
                ]
                (rows, down), (columns, across) = sides
                made[number] = down @ x[int(image)][:, rows, columns] @ across.T
            return (made,)

    return RoiAlign


def _bins(begin: float, end: float, extent: int, bins: int, samples: int, is_half: bool) -> tuple[slice, Array]:
    """Return the elements that one side of a box reads, and what share of each is in a bin: (bins, elements)."""
    begin, end = begin - 0.5 * is_half, end - 0.5 * is_half
    length = end - begin if is_half else max(end - begin, 1.0)
    count = int(samples) if samples > 0 else int(np.ceil(length / bins))
    if count <= 0:
        return slice(0, 1), np.zeros((bins, 1), np.float32)
    at = begin + (np.arange(bins * count) + 0.5) * (length / bins / count)
    is_inside = (at >= -1.0) & (at <= extent)
    at = np.clip(at, 0, extent - 1)
    low = np.floor(at).astype(np.int64)
    high, past = np.minimum(low + 1, extent - 1), at - low
    first, last = int(low.min()), int(high.max()) + 1
    shares = np.zeros((bins, last - first))
    of = np.repeat(np.arange(bins), count)
    np.add.at(shares, (of, low - first), (1 - past) * is_inside / count)
    np.add.at(shares, (of, high - first), past * is_inside / count)
    return slice(first, last), shares.astype(np.float32)


def _scattered() -> type:
    reference = _of_reference("ScatterElements", "scatter_elements")

    class ScatterElements(reference):  # type: ignore[valid-type, misc]
        """Elements written at places along an axis, all at once."""

        def _run(
            self, x: Array, places: Array, updates: Array, axis: int | None = None, reduction: str | None = None
        ) -> tuple[Array]:
            if reduction not in (None, "none", "", b"none") or places.shape != updates.shape or not places.size:
                result: tuple[Array] = super()._run(x, places, updates, axis=axis, reduction=reduction)
                return result
            axis, made = int(axis or 0) % x.ndim, np.copy(x)
            index: list[Any] = list(np.ogrid[tuple(slice(n) for n in places.shape)])
            index[axis] = places
            made[tuple(index)] = updates
            return (made,)

    return ScatterElements


# -- in kernels -------------------------------------------------------------------------------------------------------


def _product(reference: Any, weights: Mapping[str, TensorProto], version: int, compiled: Compile) -> type:
    """Return the class of an operator whose weights are the model's: kernels, by the number of rows."""

    def _run(self: Any, x: Array, *others: Array, **options: Any) -> Any:
        node = self.onnx_node
        is_of_rows = x.dtype == np.float32 and x.ndim > 1 and not options.get("transA")
        if not is_of_rows or any(name and name not in weights for name in node.input[1:]):
            return reference._run(self, x, *others, **options)
        rows = 1 << max(len(x) - 1, 0).bit_length()
        padded = np.concatenate([x, np.zeros((rows - len(x), *x.shape[1:]), x.dtype)]) if rows > len(x) else x
        if not hasattr(self, "versions"):
            self.versions = compiled(_model_of(node, x.ndim, weights, version))
        (made,) = self.versions.run({node.input[0]: padded})
        return (made[: len(x)],)

    return type(reference.__name__.split("_")[0], (reference,), {"_run": _run, "__doc__": "In kernels of ours."})


def _model_of(node: NodeProto, rank: int, weights: Mapping[str, TensorProto], version: int) -> ModelProto:
    """Return a model of one node, whose first input has open extents."""
    from onnx import TensorProto, TypeProto, helper

    given = helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, [None] * rank)
    held = [weights[name] for name in node.input[1:] if name]
    outputs = [helper.make_value_info(name, TypeProto()) for name in node.output]
    graph = helper.make_graph([node], node.op_type, [given], outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
