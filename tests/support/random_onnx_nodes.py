"""Nodes of random ONNX graphs: families of operators by theme, each a function that adds one of them to a graph."""

from __future__ import annotations

from collections.abc import Sequence

from random_onnx import Graph, RefusedError
from random_onnx_elements import (
    batch_norm,
    binary,
    bits,
    cast,
    clip,
    compare,
    dropout,
    group_norm,
    instance_norm,
    layer_norm,
    logic,
    other_norm,
    position,
    reduction,
    running_sum,
    softmax,
    unary,
    where,
)
from random_onnx_moves import (
    concat,
    cut,
    expand,
    flatten,
    gather,
    gather_elements,
    gather_nd,
    made,
    one_hot,
    other_moves,
    pad,
    reshape,
    scatter,
    scatter_nd,
    shape_of,
    split,
    squeeze,
    tile,
    transpose,
    trilu,
    unsqueeze,
)
from random_onnx_places import deformed, grid_sample, odd_resize, regions, unpool
from random_onnx_quantised import (
    conv_between,
    integer_conv,
    integer_product,
    microsoft,
    product_between,
)
from random_onnx_recurrent import order, recurrent, running_product
from random_onnx_values import Step
from random_onnx_windows import (
    attention,
    conv,
    conv_transpose,
    dequantize,
    einsum,
    gemm,
    global_pool,
    matmul,
    pool,
    quantize,
    quantized_conv,
    quantized_product,
    resize,
    space,
)

TRIES = 60


def grow(graph: Graph, count: int) -> None:
    """Add nodes until there are `count`."""
    theme = graph.choose(THEMES)
    for _ in range(TRIES * count):
        if len(graph.nodes) >= count:
            return
        steps: Sequence[Step] = theme if graph.chance(0.65) else GENERAL
        try:
            graph.choose(steps)(graph)
        except RefusedError:
            continue


ELEMENTWISE: tuple[Step, ...] = (unary, unary, unary, binary, binary, binary, clip, where, compare, cast)
MOVES: tuple[Step, ...] = (
    reshape,
    transpose,
    squeeze,
    unsqueeze,
    concat,
    split,
    cut,
    pad,
    expand,
    tile,
    flatten,
    gather,
)
GENERAL: tuple[Step, ...] = (
    *ELEMENTWISE,
    *MOVES,
    *(reduction, reduction, position, running_sum, softmax, logic, bits, dropout, matmul, gemm, einsum),
    *(gather_elements, gather_nd, scatter, scatter_nd, one_hot, trilu, shape_of, made, other_moves, layer_norm),
    *(order, running_product),
)
IMAGE: tuple[Step, ...] = (
    *(conv, conv, conv, conv, pool, pool, batch_norm, batch_norm, unary, unary, binary, binary, concat, resize),
    *(
        conv_transpose,
        global_pool,
        space,
        pad,
        instance_norm,
        group_norm,
        other_norm,
        reduction,
        transpose,
        split,
        clip,
    ),
    *(odd_resize, grid_sample, regions, unpool, deformed),
)
SEQUENCE: tuple[Step, ...] = (
    *(matmul, matmul, gemm, layer_norm, layer_norm, softmax, attention, binary, binary, unary, transpose, reshape),
    *(gather, einsum, reduction, where, split, concat, cut, unsqueeze),
)
QUANTIZED: tuple[Step, ...] = (
    *(quantize, quantize, dequantize, dequantize, quantized_product, quantized_conv, quantized_conv, matmul, conv),
    *(unary, binary, pool, clip, cast),
    *(conv_between, conv_between, product_between, integer_conv, integer_product, microsoft, microsoft),
)
RECURRENT: tuple[Step, ...] = (
    *(recurrent, recurrent, recurrent, matmul, unary, binary, transpose, reshape, concat, cut, squeeze, reduction),
)
THEMES: tuple[tuple[Step, ...], ...] = (
    *(IMAGE, IMAGE, IMAGE, SEQUENCE, SEQUENCE, QUANTIZED, QUANTIZED, RECURRENT, GENERAL, GENERAL),
)
