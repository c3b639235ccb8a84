"""StableHLO that JAX lowered, beside what JAX computes; the texts and results are files, so that JAX is not needed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_reading import read_graph

import loopwright as lw
from loopwright.dialects.numpy_types import teach_numpy
from loopwright.frontends.mlir.reader import read_text

FOLDER = Path(__file__).parent / "stablehlo"
DATA = np.load(FOLDER / "data.npz")
NAMES = sorted(file.stem for file in FOLDER.glob("*.mlir"))
COMPILED = ("attention", "convolution_block", "functions", "integers", "pooling", "reductions", "scatters", "shapes")


def arguments(net: lw.Network, name: str) -> dict[str, Any]:
    teach_numpy("bfloat16")
    values = net.inputs.values()
    return {v.name: DATA[f"{name}.in{k}"].astype(v.dtype) for k, v in enumerate(values)}


def require_equal(net: lw.Network, name: str, results: list[Any]) -> None:
    dtypes = [v.dtype for v in net.outputs.values()]
    assert f"{name}.out{len(results)}" not in DATA
    for number, (result, dtype) in enumerate(zip(results, dtypes, strict=True)):
        wanted = DATA[f"{name}.out{number}"]
        assert result.shape == wanted.shape and str(result.dtype) == dtype
        assert dtype == str(wanted.dtype) or dtype == "bfloat16"
        tolerance = 2e-2 if dtype in ("float16", "bfloat16") else 2e-4
        np.testing.assert_allclose(result.astype("float64"), wanted.astype("float64"), tolerance, tolerance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(19)
def test_a_program_of_jax_computes_what_jax_does(name: str) -> None:
    net = lw.from_mlir(FOLDER / f"{name}.mlir")
    require_equal(net, name, net.evaluate(**arguments(net, name)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.few(2)
def test_every_stage_parses_back(name: str) -> None:
    """The program as it was read, in the generic form, and the network."""
    read = str(read_text((FOLDER / f"{name}.mlir").read_text(), name).module)
    again = read_text(read, name)
    assert str(again.module) == read
    net = lw.from_mlir(again.module)
    require_equal(net, name, net.evaluate(**arguments(net, name)))
    text = str(net)
    assert str(read_graph(text)) == text
    grouped = str(net.transform("lw-graph-simplify,dce,lw-graph-fuse"))
    assert str(read_graph(grouped)) == grouped


@pytest.mark.few(2)
@pytest.mark.parametrize("name", COMPILED)
def test_kernels_of_a_program_compute_what_jax_does(name: str) -> None:
    net = lw.from_mlir(FOLDER / f"{name}.mlir")
    executor = lw.compile(net, "llvm", processes=1).executor()
    results = executor(*arguments(net, name).values())
    require_equal(net, name, list(results) if isinstance(results, tuple) else [results])


def test_the_generic_form_is_read_as_the_pretty_one() -> None:
    pytest.importorskip("jax")
    from jax_programs import PROGRAMS

    for name in ("mlp", "attention", "convolution_block", "reductions", "loops"):
        net = lw.from_mlir(PROGRAMS[name].text(generic=True))
        require_equal(net, name, net.evaluate(**arguments(net, name)))


def test_the_files_are_what_jax_lowers_now() -> None:
    """Another version of JAX may lower otherwise: its programs are imported, too."""
    pytest.importorskip("jax")
    from jax_programs import PROGRAMS

    assert sorted(PROGRAMS) == NAMES
    for name, program in PROGRAMS.items():
        net = lw.from_mlir(program.text())
        require_equal(net, name, net.evaluate(**arguments(net, name)))


def test_a_module_of_jax_and_a_portable_artifact_are_read() -> None:
    jax = pytest.importorskip("jax")
    from jax import export

    x = DATA["layer_norm.in0"]

    def centred(x: Any) -> Any:
        return x - x.mean(-1, keepdims=True)

    lowered = jax.jit(centred).lower(x)
    exported = export.export(jax.jit(centred))(x)
    for source in (lowered.compiler_ir("stablehlo"), exported.mlir_module_serialized):
        net = lw.from_mlir(source)
        np.testing.assert_allclose(net.evaluate(**{net.input_names[0]: x})[0], centred(x), atol=1e-6)


REFUSED = {
    "custom_call": (
        "%0 = stablehlo.custom_call @my_kernel(%x) {api_version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>",
        "line 3: stablehlo.custom_call: it calls 'my_kernel', which is code outside of the program",
    ),
    "rng": (
        "%0 = stablehlo.rng %x, %x, %x, distribution = UNIFORM : "
        "(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "line 3: stablehlo.rng: random numbers are not drawn in a network",
    ),
    "unknown": (
        '%0 = "stablehlo.frobnicate"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        "line 3: stablehlo.frobnicate: it is not supported",
    ),
    "type": (
        "%0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xcomplex<f32>>",
        "line 3: stablehlo.convert: element type complex<f32> is not one of float16",
    ),
    "syntax": ("%0 = stablehlo.slice %x [0:2 : (tensor<4xf32>) -> tensor<2xf32>", "line 3: stablehlo.slice cannot be"),
    "loop": (
        "%0 = stablehlo.while(%i = %x) : tensor<4xf32> cond {\n"
        "%1 = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%2 = stablehlo.reduce(%i init: %1) applies stablehlo.add across dimensions = [0] : "
        "(tensor<4xf32>, tensor<f32>) -> tensor<f32>\n"
        "%3 = stablehlo.compare LT, %2, %1 : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "stablehlo.return %3 : tensor<i1>\n} do {\nstablehlo.return %i : tensor<4xf32>\n}",
        "line 3: stablehlo.while: how often it loops depends on the inputs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_said_with_its_line(name: str) -> None:
    line, reason = REFUSED[name]
    text = (
        f"module {{\nfunc.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{line}\nreturn %x : tensor<4xf32>\n}}\n}}"
    )
    with pytest.raises(lw.MlirImportError) as caught:
        lw.from_mlir(text)
    assert reason in str(caught.value)


def test_every_reason_is_listed() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>, %n: tensor<?xf32>) -> tensor<4xf32> {
      %0 = "stablehlo.sort"(%x) ({}) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = stablehlo.custom_call @other(%0) : (tensor<4xf32>) -> tensor<4xf32>
      %2 = stablehlo.custom_call @other(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    with pytest.raises(lw.MlirImportError) as caught:
        lw.from_mlir(text)
    found = "\n".join(caught.value.reasons)
    assert "tensor<?xf32> has extents that are not known" in found
    assert "line 3: stablehlo.sort" in found and "line 5: stablehlo.custom_call" in found and "line 4" not in found


def test_a_function_is_chosen_by_name() -> None:
    text = """
    func.func private @half(%x: tensor<2xf32>) -> tensor<2xf32> {
      %c = stablehlo.constant dense<5.000000e-01> : tensor<2xf32>
      %0 = stablehlo.multiply %x, %c : tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    func.func @first(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = call @half(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
    func.func @second(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      return %x, %x : tensor<2xf32>, tensor<2xf32>
    }"""
    x = np.array([2.0, 4.0], "float32")
    assert lw.from_mlir(text).evaluate(x=x)[0].tolist() == [1.0, 2.0]
    net = lw.from_mlir(text, function="second")
    assert net.name == "second" and net.output_names == ["output0", "output1"]
    assert [a.tolist() for a in lw.compile(net, "llvm", processes=1).executor()(x)] == [[2.0, 4.0]] * 2
    with pytest.raises(lw.MlirImportError, match="there is no function 'third'; there are half, first, second"):
        lw.from_mlir(text, function="third")


def test_locations_are_passed_over() -> None:
    text = """
    #loc1 = loc("x")
    module @jit_f {
      func.func public @main(%x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
        %0 = stablehlo.tanh %x : tensor<4xf32> loc(#loc3)
        %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("a.py":3:4 to :8)
        return %1 : tensor<4xf32> loc(#loc)
      } loc(#loc)
    } loc(#loc)
    #loc = loc(unknown)
    #loc3 = loc("jit(f)/tanh"(#loc1))"""
    x = np.arange(4, dtype="float32")
    np.testing.assert_allclose(lw.from_mlir(text).evaluate(x=x)[0], -np.tanh(x), 1e-6)
    with pytest.raises(lw.MlirImportError, match="a location is not closed"):
        lw.from_mlir(text.rpartition("))")[0])


def test_bits_of_floats_are_floats() -> None:
    """Infinity and NaN are written as their bits; so are blobs of constants."""
    text = """
    func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<2xf16>, tensor<2xf32>) {
      %0 = stablehlo.constant dense<[0x7F800000, 0xFF800000, 1.5]> : tensor<3xf32>
      %1 = stablehlo.constant dense<[0xFC00, 2.0]> : tensor<2xf16>
      %2 = stablehlo.constant dense_resource<blob> : tensor<2xf32>
      %3 = stablehlo.add %x, %0 : tensor<3xf32>
      return %3, %1, %2 : tensor<3xf32>, tensor<2xf16>, tensor<2xf32>
    }
    {-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}"""
    found = lw.from_mlir(text).evaluate(x=np.zeros(3, "float32"))
    assert [a.tolist() for a in found] == [[np.inf, -np.inf, 1.5], [-np.inf, 2.0], [1.0, 2.0]]
    with pytest.raises(lw.MlirImportError, match=r"line 5: stablehlo.constant: the values of dense_resource<blob>"):
        lw.from_mlir(text.partition("{-#")[0])
