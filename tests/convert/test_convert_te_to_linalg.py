"""Tensor expressions as linalg, bufferized and compiled by MLIR's own passes, against the te interpreter."""

from collections.abc import Sequence

import numpy as np
import pytest
import stock_mlir
from effort import everything
from hypothesis import given, settings
from late_notes import noting
from lowered_runs import exact_inputs
from random_schedules import workloads
from sample_workloads import SAMPLES
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg.ops import GenericOp, YieldOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from loopwright import te
from loopwright.dialects.interpret.te import run_te
from loopwright.passes.convert.convert_te_to_linalg import convert_te_to_linalg
from loopwright.passes.pipeline_text import apply_schedule

CPU = "llvm cores=2 vector_bytes=32"
PASSES = f"{stock_mlir.TO_BUFFERS},{stock_mlir.TO_LLVM}"


def converted(workload: ModuleOp) -> ModuleOp:
    """Return what a workload becomes: nothing of ours is left, and its generic text parses back to the same."""
    module = workload.clone()
    convert_te_to_linalg(module)
    module.verify()
    assert not {op.name for op in module.walk() if op.name.startswith("lw")}
    text = stock_mlir.generic(module)
    assert "lw." not in text
    again = Parser(stock_mlir.context(), text).parse_module()
    again.verify()
    assert stock_mlir.generic(again) == text
    return module


def hold(workload: ModuleOp, inputs: Sequence[np.ndarray], rtol: float = 1e-5) -> None:
    """Run a workload as linalg on arrays, and compare."""
    module = converted(workload)
    wanted = run_te(workload, inputs)
    outputs = [stock_mlir.unwritten_like(array) for array in wanted]
    stock_mlir.run(module, inputs, outputs, PASSES)
    for got, expected in zip(outputs, wanted, strict=True):
        with noting(workload):
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-5)


@pytest.mark.few(5)
@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    workload = te.create_module(SAMPLES[name](), CPU)
    hold(workload, exact_inputs(workload))


@given(workloads())
@settings(max_examples=60 if everything() else 8)
@pytest.mark.slow(1.2)
def test_random_workloads(workload: ModuleOp) -> None:
    hold(workload, exact_inputs(workload), 1e-4)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(12)
def test_samples_parse_back(name: str) -> None:
    module = converted(te.create_module(SAMPLES[name](), CPU))
    assert any(isinstance(op, GenericOp) for op in module.walk())


def test_padding_and_truths_and_unsigned_numbers() -> None:
    n = 23
    a, b = te.placeholder((n,), "uint8", "a"), te.placeholder((n,), "float32", "b")
    shifted = te.compute((n,), lambda i: te.if_then_else(i >= 3, a[i - 3], a[0] + 250), name="shifted")
    least = te.compute((n,), lambda i: te.minimum(shifted[i], a[n - 1 - i]), name="least")
    above = te.compute((n,), lambda i: b[i] > 0.5, name="above")
    whole = te.compute((n,), lambda i: (b[i] * 100).astype("int32"), name="whole")
    workload = te.create_module([a, b, least, above, whole], CPU)
    rng = np.random.default_rng(0)
    b_values = rng.standard_normal(n).astype(np.float32)
    hold(workload, [rng.integers(0, 256, n, dtype=np.uint8), b_values])


def generics(module: ModuleOp) -> list[GenericOp]:
    return [op for op in module.walk() if isinstance(op, GenericOp)]


def test_a_matrix_product_reads_by_maps_alone() -> None:
    (product,) = generics(converted(te.create_module(SAMPLES["matmul_f64"](), CPU)))
    assert [str(each.data) for each in product.indexing_maps] == [
        "(d0, d1, d2) -> (d0, d2)",
        "(d0, d1, d2) -> (d2, d1)",
        "(d0, d1, d2) -> (d0, d1)",
    ]
    assert [each.data.value for each in product.iterator_types] == ["parallel", "parallel", "reduction"]
    assert not any(isinstance(op, tensor.ExtractOp) for op in product.walk())


def test_a_pair_is_reduced_to_two_results() -> None:
    pair = generics(converted(te.create_module(SAMPLES["argmax"](), CPU)))[0]
    assert len(pair.results) == 2
    last = pair.body.block.last_op
    assert isinstance(last, YieldOp) and len(last.operands) == 2


def test_a_window_gets_an_operand_that_says_its_extents() -> None:
    pool = generics(converted(te.create_module(SAMPLES["avg_pool_nhwc"](), CPU)))[0]
    assert [str(value.type) for value in pool.inputs][-1] == "tensor<2x2xf32>"


def test_other_levels_are_refused() -> None:
    module = te.create_module(SAMPLES["dense"](), CPU)
    apply_schedule(module, "lw-lower-te-to-loop")
    with pytest.raises(PassFailedException, match="'main' is not on tensors: convert it before it is lowered"):
        convert_te_to_linalg(module)
