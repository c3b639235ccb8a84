"""A block of a Llama from ONNX: rotary positions, keys that heads share, norms by the root mean square, SwiGLU."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from gpu_programs import check_interpreted
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import loopwright as lw
from loopwright.dialects.graph import GroupOp
from loopwright.graph.tasks import grouping_for

TOKENS, WIDTH, HEADS, KEYS, SIZE, INNER = 16, 64, 4, 2, 16, 88

NORM = """
  {x}_two = Constant <value_float = 2.0> ()
  {x}_squares = Pow ({x}, {x}_two)
  {x}_mean = ReduceMean <axes = [-1]> ({x}_squares)
  {x}_shifted = Add ({x}_mean, epsilon)
  {x}_root = Sqrt ({x}_shifted)
  {x}_inverse = Reciprocal ({x}_root)
  {x}_scaled = Mul ({x}, {x}_inverse)
  {x}_normal = Mul ({x}_scaled, {weight})
"""
ROTARY = """
  {x}_first, {x}_second = Split <axis = -1> ({x})
  {x}_negative = Neg ({x}_second)
  {x}_turned = Concat <axis = -1> ({x}_negative, {x}_first)
  {x}_cos = Mul ({x}, cos)
  {x}_sin = Mul ({x}_turned, sin)
  {x}_rotated = Add ({x}_cos, {x}_sin)
"""
HEAD = """
  {x}_product = MatMul (x_normal, {x}_weight)
  {x}_apart = Reshape ({x}_product, {shape})
  {x} = Transpose <perm = [0, 2, 1, 3]> ({x}_apart)
"""
SHARED = """
  {x}_one = Unsqueeze ({x}, two)
  {x}_many = Expand ({x}_one, groups)
  {x}_all = Reshape ({x}_many, heads)
"""
BLOCK = f"""
<ir_version: 8, opset_import: ["" : 17]>
llama (float[1, {TOKENS}, {WIDTH}] x) => (float[1, {TOKENS}, {WIDTH}] y) {{
  {NORM.format(x="x", weight="first_norm")}
  {HEAD.format(x="q", shape="many")} {HEAD.format(x="k", shape="few")} {HEAD.format(x="v", shape="few")}
  {ROTARY.format(x="q")} {ROTARY.format(x="k")}
  {SHARED.format(x="k_rotated")} {SHARED.format(x="v")}
  keys = Transpose <perm = [0, 1, 3, 2]> (k_rotated_all)
  scores = MatMul (q_rotated, keys)
  scaled = Mul (scores, factor)
  masked = Add (scaled, mask)
  weights = Softmax <axis = -1> (masked)
  values = MatMul (weights, v_all)
  beside = Transpose <perm = [0, 2, 1, 3]> (values)
  flat = Reshape (beside, rows)
  projected = MatMul (flat, o_weight)
  r = Add (x, projected)
  {NORM.format(x="r", weight="second_norm")}
  gate = MatMul (r_normal, gate_weight)
  sigmoid = Sigmoid (gate)
  silu = Mul (gate, sigmoid)
  up = MatMul (r_normal, up_weight)
  inner = Mul (silu, up)
  down = MatMul (inner, down_weight)
  y = Add (r, down)
}}
"""


def block() -> ModelProto:
    random = np.random.default_rng(0)
    angles = np.outer(np.arange(TOKENS), 1e4 ** (-np.arange(SIZE // 2) * 2 / SIZE))
    shapes = {"q": HEADS * SIZE, "k": KEYS * SIZE, "v": KEYS * SIZE, "gate": INNER, "up": INNER}
    given: dict[str, npt.ArrayLike] = {
        **{f"{name}_weight": random.standard_normal((WIDTH, n)) / WIDTH**0.5 for name, n in shapes.items()},
        "o_weight": random.standard_normal((HEADS * SIZE, WIDTH)) / WIDTH**0.5,
        "down_weight": random.standard_normal((INNER, WIDTH)) / INNER**0.5,
        **{f"{name}_norm": random.uniform(0.5, 1.5, WIDTH) for name in ("first", "second")},
        **{name: f(np.concatenate([angles, angles], -1)) for name, f in (("cos", np.cos), ("sin", np.sin))},
        "mask": np.where(np.tri(TOKENS) > 0, 0.0, -3e38),
        "epsilon": 1e-6,
        "factor": SIZE**-0.5,
    }
    sizes = {
        "many": (1, TOKENS, HEADS, SIZE),
        "few": (1, TOKENS, KEYS, SIZE),
        "groups": (1, KEYS, HEADS // KEYS, TOKENS, SIZE),
        "heads": (1, HEADS, TOKENS, SIZE),
        "rows": (1, TOKENS, HEADS * SIZE),
        "two": (2,),
    }
    model = parser.parse_model(BLOCK)
    for arrays, dtype in ((given, np.float32), (sizes, np.int64)):
        model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a, dtype), n) for n, a in arrays.items())
    onnx.checker.check_model(model)
    return model


def data() -> npt.NDArray[np.float32]:
    return np.random.default_rng(1).standard_normal((1, TOKENS, WIDTH)).astype(np.float32)


def right() -> Any:
    """The result of ONNX's reference implementation."""
    found: Any = ReferenceEvaluator(block()).run(None, {"x": data()})
    return found[0]


@pytest.mark.filterwarnings("ignore::loopwright.UntunedWarning")
def test_a_block_is_right_on_a_cpu() -> None:
    net = lw.from_onnx(block())
    np.testing.assert_allclose(net.evaluate(x=data())[0], right(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lw.compile(net, "llvm cores=1")(data()), right(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm cores=1", "cuda model=h200"])
def test_norms_and_activations_are_part_of_kernels(target: str) -> None:
    made = lw.from_onnx(block()).transform(grouping_for(lw.resolve_target(target)))
    np.testing.assert_allclose(made.evaluate(x=data())[0], right(), rtol=1e-5, atol=1e-5)
    labels = [op.label.data for op in made.module.walk() if isinstance(op, GroupOp)]
    assert sum("rms_norm" in label for label in labels) == 2
    assert sum(label == "matmul_add" for label in labels) == 2
    assert labels[-2] == "matmul_sigmoid_multiply_multiply"
    attention = "batch_matmul_multiply_add_softmax_batch_matmul"
    assert ("einsum_multiply_add" if target.startswith("cuda") else attention) in labels


@pytest.mark.slow(1.2)
def test_kernels_of_a_block_are_right_on_a_gpu() -> None:
    """Untuned, interpreted."""
    tasks, _ = lw.extract_tasks(lw.from_onnx(block()), "cuda model=h200", include_simple_tasks=True)
    assert len(tasks) > 8
    for task in tasks:
        check_interpreted(task.module, task.reference, [task.default_schedule])
