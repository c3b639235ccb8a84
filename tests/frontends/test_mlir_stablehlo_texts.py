"""StableHLO that JAX does not write, beside NumPy; what is refused, with its line; kernels of what JAX spells out."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.dialects.graph import GroupOp
from loopwright.graph.pipeline import PREPARE

RANDOM = np.random.default_rng(0)
FOLDER = Path(__file__).parent / "stablehlo"


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype("float32")


def main(line: str, arguments: str, kind: str) -> str:
    return f"func.func @main({arguments}) -> {kind} {{\n{line}\nreturn %0 : {kind}\n}}"


def evaluated(text: str, *arrays: Any) -> list[Any]:
    net = lw.from_mlir(text)
    return net.evaluate(**dict(zip(net.input_names, arrays, strict=True)))


NORM = "epsilon = 1.0e-3 : f32, feature_index = 1 : i64"


def statistics(x: Any) -> Any:
    return x.mean((0, 2)), x.var((0, 2))


def normal(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    a, b, m, v = (t[:, None] for t in (scale, offset, mean, variance))
    return (x - m) / np.sqrt(v + 1e-3) * a + b


def test_batch_normalisation_with_given_statistics_and_with_its_own() -> None:
    x, vectors = floats(4, 3, 5), [abs(floats(3)) for _ in range(4)]
    data, vector = "tensor<4x3x5xf32>", "tensor<3xf32>"
    names = ", ".join(f"%{c}: {vector}" for c in "abmv")
    line = (
        f'%0 = "stablehlo.batch_norm_inference"(%x, %a, %b, %m, %v) <{{{NORM}}}> : '
        f"({data}, {vector}, {vector}, {vector}, {vector}) -> {data}"
    )
    (found,) = evaluated(main(line, f"%x: {data}, {names}", data), x, *vectors)
    np.testing.assert_allclose(found, normal(x, *vectors), 1e-4, 1e-5)
    line = (
        f'%0:3 = "stablehlo.batch_norm_training"(%x, %a, %b) <{{{NORM}}}> : '
        f"({data}, {vector}, {vector}) -> ({data}, {vector}, {vector})"
    )
    text = f"func.func @main(%x: {data}, %a: {vector}, %b: {vector}) -> ({data}, {vector}, {vector}) {{\n{line}\n"
    text += f"return %0#0, %0#1, %0#2 : {data}, {vector}, {vector}\n}}"
    wanted = (normal(x, *vectors[:2], *statistics(x)), *statistics(x))
    for one, other in zip(evaluated(text, x, *vectors[:2]), wanted, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def test_the_gradient_of_batch_normalisation_is_that_of_finite_differences() -> None:
    x, scale, given = floats(4, 3, 5).astype("float64"), floats(3).astype("float64"), floats(4, 3, 5).astype("float64")
    data, vector = "tensor<4x3x5xf64>", "tensor<3xf64>"
    line = (
        f'%0:3 = "stablehlo.batch_norm_grad"(%x, %a, %m, %v, %g) <{{{NORM}}}> : '
        f"({data}, {vector}, {vector}, {vector}, {data}) -> ({data}, {vector}, {vector})"
    )
    text = f"func.func @main(%x: {data}, %a: {vector}, %m: {vector}, %v: {vector}, %g: {data}) -> "
    text += f"({data}, {vector}, {vector}) {{\n{line}\nreturn %0#0, %0#1, %0#2 : {data}, {vector}, {vector}\n}}"
    of_data, of_scale, of_offset = evaluated(text, x, scale, *statistics(x), given)

    def loss(x: Any, scale: Any, offset: Any) -> Any:
        return (normal(x, scale, offset, *statistics(x)) * given).sum()

    offset, step = np.zeros(3), 1e-6
    for place in ((0, 0, 0), (3, 2, 4), (1, 1, 2)):
        moved = np.zeros_like(x)
        moved[place] = step
        slope = (loss(x + moved, scale, offset) - loss(x - moved, scale, offset)) / (2 * step)
        assert np.isclose(of_data[place], slope, 1e-4, 1e-6)
    np.testing.assert_allclose(of_offset, given.sum((0, 2)), 1e-6)
    np.testing.assert_allclose(
        of_scale, (normal(x, scale, offset, *statistics(x)) / scale[:, None] * given).sum((0, 2))
    )


DYNAMIC = {
    "dynamic_reshape": (
        "%s = stablehlo.constant dense<[3, 4]> : tensor<2xi32>\n"
        "%0 = stablehlo.dynamic_reshape %x, %s : (tensor<12xf32>, tensor<2xi32>) -> tensor<3x4xf32>",
        "tensor<3x4xf32>",
        lambda x: x.reshape(3, 4),
    ),
    "dynamic_broadcast_in_dim": (
        "%s = stablehlo.constant dense<[12, 2]> : tensor<2xi32>\n"
        "%0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0] : "
        "(tensor<12xf32>, tensor<2xi32>) -> tensor<12x2xf32>",
        "tensor<12x2xf32>",
        lambda x: np.repeat(x[:, None], 2, 1),
    ),
    "get_dimension_size": (
        "%0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<12xf32>) -> tensor<i32>",
        "tensor<i32>",
        lambda x: np.int32(12),
    ),
    "real_dynamic_slice": (
        "%a = stablehlo.constant dense<1> : tensor<1xi32>\n%b = stablehlo.constant dense<9> : tensor<1xi32>\n"
        "%c = stablehlo.constant dense<3> : tensor<1xi32>\n%0 = stablehlo.real_dynamic_slice %x, %a, %b, %c : "
        "(tensor<12xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xf32>",
        "tensor<3xf32>",
        lambda x: x[1:9:3],
    ),
    "dynamic_pad": (
        "%v = stablehlo.constant dense<2.0> : tensor<f32>\n%a = stablehlo.constant dense<1> : tensor<1xi32>\n"
        "%b = stablehlo.constant dense<2> : tensor<1xi32>\n%c = stablehlo.constant dense<0> : tensor<1xi32>\n"
        "%0 = stablehlo.dynamic_pad %x, %v, %a, %b, %c : "
        "(tensor<12xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<15xf32>",
        "tensor<15xf32>",
        lambda x: np.pad(x, (1, 2), constant_values=2),
    ),
    "constant_like": (
        '%0 = "chlo.constant_like"(%x) <{value = 3.0 : f32}> : (tensor<12xf32>) -> tensor<12xf32>',
        "tensor<12xf32>",
        lambda x: np.full(12, 3.0, "float32"),
    ),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_sizes_that_are_known_may_be_operands(name: str) -> None:
    line, kind, wanted = DYNAMIC[name]
    x = floats(12)
    (found,) = evaluated(main(line, "%x: tensor<12xf32>", kind), x)
    assert found.shape == np.shape(wanted(x))
    np.testing.assert_array_equal(found, wanted(x))


def special(name: str, values: list[float]) -> Any:
    kind = f"tensor<{len(values)}xf32>"
    line = f"%0 = chlo.{name} %x : {kind} -> {kind}"
    (found,) = evaluated(main(line, f"%x: {kind}", kind), np.array(values, "float32"))
    return found


def test_special_functions_are_those_of_double_precision() -> None:
    given = [float(np.float32(x)) for x in (-8.3, -3.7, -0.2, 0.3, 0.5, 1.0, 1.5, 2.0, 7.0, 1e5)]
    found = special("lgamma", [*given, -1.0, 0.0, math.inf])
    np.testing.assert_allclose(found, [*map(math.lgamma, given), *[math.inf] * 3], rtol=1e-5, atol=1e-5)
    slopes = [(math.lgamma(x + 1e-6) - math.lgamma(x - 1e-6)) / 2e-6 for x in given]
    np.testing.assert_allclose(
        special("digamma", [*given, 0.0, -2.0]), [*slopes, math.nan, math.nan], rtol=1e-4, atol=1e-5
    )
    places = [-0.9999, -0.5, 0.0, 0.3, 0.9]
    np.testing.assert_allclose([*map(math.erf, special("erf_inv", places))], places, atol=1e-6)
    np.testing.assert_array_equal(special("erf_inv", [-1.0, 1.0, 2.0]), [-math.inf, math.inf, math.nan])


def test_next_numbers_are_numpy_s() -> None:
    ends = [0.0, 1.0, -1.0, 3e38, -1e-40, math.inf, -math.inf, math.nan]
    x, y = (np.array(each, "float32").ravel() for each in np.meshgrid(ends, ends))
    kind = f"tensor<{len(x)}xf32>"
    text = main(f"%0 = chlo.next_after %x, %y : {kind}, {kind} -> {kind}", f"%x: {kind}, %y: {kind}", kind)
    np.testing.assert_array_equal(evaluated(text, x, y)[0], np.nextafter(x, y))


CONSTANT = "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
SORT = (
    '%0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
    "%1 = stablehlo.add %a, %s : tensor<f32>\n%2 = stablehlo.compare LT, %1, %b : (tensor<f32>, tensor<f32>) -> "
    "tensor<i1>\nstablehlo.return %2 : tensor<i1>\n}) : (tensor<4xf32>) -> tensor<4xf32>"
)
REFUSED = {
    "fft": (
        "%0 = stablehlo.fft %x, type = FFT, length = [4] : (tensor<4xf32>) -> tensor<4xf32>",
        "line 2: stablehlo.fft: Fourier transforms are not supported",
    ),
    "rng_bit_generator": (
        "%1, %0 = stablehlo.rng_bit_generator %x, algorithm = DEFAULT : "
        "(tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)",
        "line 2: stablehlo.rng_bit_generator: random numbers are not drawn in a network",
    ),
    "complex": (
        "%0 = stablehlo.complex %x, %x : tensor<4xcomplex<f32>>",
        "line 2: stablehlo.complex: complex numbers are not supported",
    ),
    "all_reduce": (
        '%0 = "stablehlo.all_to_all"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        "line 2: stablehlo.all_to_all: a network runs on one device",
    ),
    "dynamic_conv": (
        '%0 = "stablehlo.dynamic_conv"(%x, %x, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
        "line 2: stablehlo.dynamic_conv: its sizes are operands",
    ),
    "dynamic_result": (
        '%0 = "stablehlo.dynamic_iota"(%x) <{iota_dimension = 0 : i64}> : (tensor<4xf32>) -> tensor<?xf32>',
        "line 2: stablehlo.dynamic_iota: tensor<?xf32> has extents that are not known",
    ),
    "unknown_size": (
        '%0 = "stablehlo.real_dynamic_slice"(%x, %i, %i, %i) : '
        "(tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xf32>",
        "line 2: stablehlo.real_dynamic_slice: a place must be a constant",
    ),
    "empty": (
        CONSTANT + "%e = stablehlo.slice %x [2:2] : (tensor<4xf32>) -> tensor<0xf32>\n"
        "%0 = stablehlo.reduce(%e init: %c) applies stablehlo.add across dimensions = [0] : "
        "(tensor<0xf32>, tensor<f32>) -> tensor<f32>",
        "line 4: stablehlo.reduce: it reads tensor<0xf32>, which has no elements",
    ),
    "axes": (
        "%0 = stablehlo.broadcast_in_dim %x, dims = [3] : (tensor<4xf32>) -> tensor<2x4xf32>",
        "line 2: stablehlo.broadcast_in_dim: it is malformed: attributes do not fit its operands",
    ),
    "number": (
        "%0 = stablehlo.constant dense<1.0e99> : tensor<f32>",
        "line 2: stablehlo.constant cannot be read: float too large to pack with f format",
    ),
    "sort": (SORT, "line 2: stablehlo.sort: its block reads a value from outside"),
    "scatter": (
        '%0 = "stablehlo.scatter"(%x, %i, %s) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({\n"
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%1 = stablehlo.sine %a : tensor<f32>\n"
        "stablehlo.return %1 : tensor<f32>\n}) : (tensor<4xf32>, tensor<1xi32>, tensor<f32>) -> tensor<4xf32>",
        "line 2: stablehlo.scatter: updates replace elements, are subtracted, or joined",
    ),
    "quantized": (
        '%0 = "stablehlo.uniform_quantize"(%x) : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32>>',
        "line 2: stablehlo.uniform_quantize: types that carry a scale are not supported",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_said_with_its_line(name: str) -> None:
    line, reason = REFUSED[name]
    kind = line.rpartition("-> ")[2] if "-> " in line else line.rpartition(": ")[2]
    arguments = "%x: tensor<4xf32>, %i: tensor<1xi32>, %s: tensor<f32>"
    with pytest.raises(lw.MlirImportError) as caught:
        lw.from_mlir(main(line, arguments, kind.partition(", ")[0].strip("()")))
    assert reason in str(caught.value)


def test_an_argument_of_unknown_extents_is_refused_with_the_line_of_its_function() -> None:
    with pytest.raises(lw.MlirImportError) as caught:
        lw.from_mlir(
            f"module {{\n{main('%0 = stablehlo.abs %x : tensor<?xf32>', '%x: tensor<?xf32>', 'tensor<?xf32>')}}}"
        )
    assert "line 2: func.func: argument 0 of 'main': tensor<?xf32> has extents that are not known" in str(caught.value)


def test_malformed_resources_are_refused() -> None:
    text = main("%0 = stablehlo.constant dense_resource<a> : tensor<1xf32>", "", "tensor<1xf32>")
    with pytest.raises(lw.MlirImportError, match="its resources are malformed"):
        lw.from_mlir(text + '{-# dialect_resources: { builtin: { a: "0x040" } } #-}')


@pytest.mark.parametrize("data", (b"\xff\xfe\x00garbage", b"\x18\x00\x00\x00\x80jax"))
def test_bytes_that_are_no_program_are_refused(data: bytes) -> None:
    with pytest.raises(lw.MlirImportError, match=r"neither text nor bytecode of MLIR; of what jax\.export gives"):
        lw.from_mlir(data)


def test_bytecode_that_is_no_artifact_is_refused() -> None:
    pytest.importorskip("jax")
    with pytest.raises(
        lw.MlirImportError, match=r"its bytecode is no portable artifact of StableHLO .*: give its text"
    ):
        lw.from_mlir(b"ML\xefR garbage")


KERNELS = {
    "normalisations": [
        "layer_norm_multiply_add", "rms_norm_multiply", "layer_norm", "softmax", "log_softmax", "log_softmax",
    ],
    "layer_norm": ["layer_norm_multiply_add"],
    "bfloat16_layers": [
        "cast", "layer_norm_multiply", "rms_norm_cast_multiply", "cast", "transpose", "einsum_multiply", "softmax_cast",
        "einsum", "log_softmax",
    ],
    "attention": ["transpose", "einsum_divide_where", "softmax", "einsum"],
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_what_jax_writes_out_is_one_kernel_as_by_the_operators_of_the_graph(name: str) -> None:
    net = lw.from_mlir(FOLDER / f"{name}.mlir").transform(f"{PREPARE},lw-graph-fuse")
    assert sorted(op.label.data for op in net.module.walk() if isinstance(op, GroupOp)) == sorted(KERNELS[name])
