"""ONNX models that onnxruntime's quantiser made of networks with random weights: small ones, and like those in use."""

import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

Array = npt.NDArray[Any]


class Builder:
    """A network in the making; operators are added in order and return the name of their result."""

    def __init__(self, shape: Sequence[int], seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.shape = list(shape)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(values)
        return name

    def weight(self, *shape: int, fan: int | None = None) -> str:
        """Random weights that keep the size of what they multiply."""
        spread = (2.0 / (fan or int(np.prod(shape[1:])))) ** 0.5
        return self.constant((self.random.standard_normal(shape) * spread).astype(np.float32))

    def bias(self, count: int) -> str:
        return self.constant((self.random.standard_normal(count) * 0.1).astype(np.float32))

    def conv(self, x: str, cin: int, cout: int, size: int = 1, stride: int = 1, groups: int = 1) -> str:
        weight, bias = self.weight(cout, cin // groups, size, size), self.bias(cout)
        return self.add("Conv", x, weight, bias, pads=[size // 2] * 4, strides=[stride] * 2, group=groups)

    def linear(self, x: str, cin: int, cout: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.weight(cin, cout, fan=2 * cin)), self.bias(cout))

    def clip(self, x: str) -> str:
        return self.add("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6)))

    def classifier(self, x: str, cin: int, classes: int) -> str:
        flat = self.add("Flatten", self.add("GlobalAveragePool", x))
        return self.add("Gemm", flat, self.weight(classes, cin), self.bias(classes), transB=1)

    def model(self, result: str, shape: Sequence[int], name: str = "quantised") -> ModelProto:
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            name,
            [info("x", TensorProto.FLOAT, self.shape)],
            [info(result, TensorProto.FLOAT, list(shape))],
            [numpy_helper.from_array(array, key) for key, array in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def small_cnn(channels: int = 16, size: int = 28) -> ModelProto:
    """Convolutions with windows of 1 and 3, by channel and not, a residual sum, pooling, a classifier."""
    net = Builder((1, 3, size, size))
    x = net.add("Relu", net.conv("x", 3, channels, 3, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = net.conv(net.add("Relu", net.conv(x, channels, channels, 3)), channels, channels)
    y = net.add("Relu", net.add("Add", y, x))
    y = net.clip(net.conv(y, channels, channels, 3, groups=channels))
    return net.model(net.classifier(y, channels, 10), (1, 10), "cnn")


def resnet50(size: int = 224) -> ModelProto:
    """ResNet-50 (v1.5), its batch normalisations folded."""
    net = Builder((1, 3, size, size))
    x = net.add("Relu", net.conv("x", 3, 64, 7, 2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = net.add("Relu", net.conv(x, cin, width))
            y = net.conv(net.add("Relu", net.conv(y, width, width, 3, stride)), width, 4 * width)
            x = net.add("Relu", net.add("Add", y, x if block else net.conv(x, cin, 4 * width, 1, stride)))
            cin = 4 * width
    return net.model(net.classifier(x, cin, 1000), (1, 1000), "resnet50")


def mobilenet_v2(size: int = 224) -> ModelProto:
    """MobileNet v2, its batch normalisations folded."""
    net = Builder((1, 3, size, size))
    x, cin = net.clip(net.conv("x", 3, 32, 3, 2)), 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, cout, count, first in stages:
        for block in range(count):
            stride, wide = first if not block else 1, cin * expansion
            y = net.clip(net.conv(x, cin, wide)) if expansion > 1 else x
            y = net.conv(net.clip(net.conv(y, wide, wide, 3, stride, groups=wide)), wide, cout)
            x, cin = net.add("Add", y, x) if stride == 1 and cin == cout else y, cout
    return net.model(net.classifier(net.clip(net.conv(x, cin, 1280)), 1280, 1000), (1, 1000), "mobilenet_v2")


def bert(layers: int = 12, hidden: int = 768, tokens: int = 128, heads: int = 12) -> ModelProto:
    """Encoder layers as those of BERT, from embeddings (1, tokens, hidden) on."""
    net = Builder((1, tokens, hidden))
    x = "x"
    for _ in range(layers):
        x = _encoder(net, x, hidden, tokens, heads)
    return net.model(x, (1, tokens, hidden), "bert")


def _encoder(net: Builder, x: str, hidden: int, tokens: int, heads: int) -> str:
    depth = hidden // heads
    split = net.constant(np.array([1, tokens, heads, depth], np.int64))
    joined = net.constant(np.array([1, tokens, hidden], np.int64))

    def heads_of(order: list[int]) -> str:
        return net.add("Transpose", net.add("Reshape", net.linear(x, hidden, hidden), split), perm=order)

    q, k, v = heads_of([0, 2, 1, 3]), heads_of([0, 2, 3, 1]), heads_of([0, 2, 1, 3])
    scores = net.add("Mul", net.add("MatMul", q, k), net.constant(np.float32(depth**-0.5)))
    mixed = net.add("Transpose", net.add("MatMul", net.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    x = _normal(net, net.add("Add", net.linear(net.add("Reshape", mixed, joined), hidden, hidden), x), hidden)
    wide = net.linear(x, hidden, 4 * hidden)
    half = net.add("Mul", wide, net.constant(np.float32(0.5)))
    erf = net.add("Erf", net.add("Mul", wide, net.constant(np.float32(0.5**0.5))))
    wide = net.add("Mul", half, net.add("Add", erf, net.constant(np.float32(1))))
    return _normal(net, net.add("Add", net.linear(wide, 4 * hidden, hidden), x), hidden)


def _normal(net: Builder, x: str, hidden: int) -> str:
    ones, zeros = np.ones(hidden, np.float32), np.zeros(hidden, np.float32)
    return net.add("LayerNormalization", x, net.constant(ones), net.constant(zeros), axis=-1)


def inputs_of(model: ModelProto, seed: int = 1) -> dict[str, Array]:
    """Random inputs."""
    random = np.random.default_rng(seed)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


class _Samples(CalibrationDataReader):
    def __init__(self, feeds: Sequence[dict[str, Array]]) -> None:
        self.feeds: Iterator[dict[str, Array]] = iter(feeds)

    def get_next(self) -> dict[str, Array] | None:
        return next(self.feeds, None)


def quantised(
    model: ModelProto,
    form: QuantFormat = QuantFormat.QDQ,
    data: QuantType = QuantType.QUInt8,
    weights: QuantType = QuantType.QInt8,
    per_channel: bool = True,
    reduce_range: bool = False,
) -> ModelProto:
    """The model quantised by what three random inputs give.

    With `reduce_range`, weights have 7 bits: sums of two products of bytes saturate in onnxruntime on AVX2 otherwise.
    """
    feeds = [inputs_of(model, seed) for seed in range(1, 4)]
    with _errors_alone(), tempfile.TemporaryDirectory() as folder:
        plain, made = Path(folder, "plain.onnx"), Path(folder, "quantised.onnx")
        onnx.save(model, plain)
        quantize_static(
            plain,
            made,
            _Samples(feeds),
            quant_format=form,
            per_channel=per_channel,
            activation_type=data,
            weight_type=weights,
            reduce_range=reduce_range,
        )
        return onnx.load(made)


def quantised_in_each_run(model: ModelProto) -> ModelProto:
    """The model with integer products of data that are quantised by their own range in each run."""
    with _errors_alone(), tempfile.TemporaryDirectory() as folder:
        plain, made = Path(folder, "plain.onnx"), Path(folder, "quantised.onnx")
        onnx.save(model, plain)
        quantize_dynamic(plain, made)
        return onnx.load(made)


@contextmanager
def _errors_alone() -> Iterator[None]:
    """Nothing of what onnxruntime's quantiser advises by the root logger, whose level is as before then."""
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def as_written(model: ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Results of onnxruntime, operator by operator: its integer kernels saturate between where fused ones run."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, feeds)
    return found
