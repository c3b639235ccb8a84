"""Branches, loops and sequences that are resolved when a model is imported, beside onnxruntime."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser

import loopwright as lw
from loopwright.frontends.onnx import control

HEADER = '<ir_version: 9, opset_import: ["" : 21]>'


def model(text: str) -> ModelProto:
    return parser.parse_model(HEADER + text)


CASES: dict[str, str] = {
    "a loop of known length": """
        tested (float[2,3] x) => (float[2,3] y, float[n,2,3] all) {
            trips = Constant <value = int64 {4}> ()
            y, all = Loop (trips, "", x)
            <body = step (int64 i, bool going, float[2,3] a) => (bool on, float[2,3] b, float[2,3] c) {
                on = Identity (going)
                k = CastLike (i, a)
                b = Add (a, k)
                c = Mul (b, x)
            }>
        }""",
    "a loop that a known condition ends": """
        tested (float[3] x) => (float[3] y, int64 n) {
            go = Constant <value = bool {1}> ()
            zero = Constant <value = int64 {0}> ()
            n, y = Loop ("", go, zero, x)
            <body = step (int64 i, bool going, int64 count, float[3] a) => (bool on, int64 more, float[3] b) {
                one = Constant <value = int64 {1}> ()
                most = Constant <value = int64 {3}> ()
                more = Add (count, one)
                on = Less (more, most)
                b = Mul (a, x)
            }>
        }""",
    "a loop within a loop, with a branch": """
        tested (float[3] x) => (float[3] y) {
            two = Constant <value = int64 {2}> ()
            y = Loop (two, "", x) <body = outer (int64 i, bool g, float[3] a) => (bool h, float[3] b) {
                h = Identity (g)
                three = Constant <value = int64 {3}> ()
                b = Loop (three, "", a) <body = inner (int64 j, bool p, float[3] c) => (bool q, float[3] d) {
                    q = Identity (p)
                    same = Equal (i, j)
                    d = If (same) <
                        then_branch = yes () => (float[3] u) { w = CastLike (j, c)
                                                               u = Mul (c, w) },
                        else_branch = no () => (float[3] v) { s = Add (i, j)
                                                              t = CastLike (s, c)
                                                              v = Add (c, t) }>
                }>
            }>
        }""",
    "a scan": """
        tested (float[2] start, float[4,2] x, float[2,4] z) => (float[2] last, float[4,2] sums, float[2,4] turned) {
            last, sums, turned = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                scan_output_axes = [0, 1], scan_output_directions = [1, 0],
                body = step (float[2] s, float[2] a, float[2] b) => (float[2] t, float[2] u, float[2] v) {
                    m = Mul (a, b)
                    t = Add (s, m)
                    u = Identity (t)
                    v = Sub (t, b)
                }> (start, x, z)
        }""",
    "sequences of known length": """
        tested (float[2,7] x) => (float[2,9] y, int64 n, float[5,2] rows) {
            three = Constant <value = int64 {3}> ()
            parts = SplitToSequence <axis = 1> (x, three)
            last = SequenceAt (parts, minus)
            minus2 = Constant <value = int64 {-2}> ()
            longer = SequenceInsert (parts, last, minus2)
            more = SequenceInsert (longer, last)
            n = SequenceLength (more)
            y = ConcatFromSequence <axis = 1> (more)
            single = SplitToSequence <axis = 1, keepdims = 0> (x)
            fewer = SequenceErase (single, three)
            least = SequenceErase (fewer)
            rows = ConcatFromSequence <axis = 0, new_axis = 1> (least)
        }""".replace("last = Seq", "minus = Constant <value = int64 {-1}> ()\n            last = Seq"),
    "sequences that a loop fills": """
        tested (float[3] x) => (float[2,3] y) {
            none = SequenceEmpty ()
            two = Constant <value = int64 {2}> ()
            all = Loop (two, "", none) <body = step (int64 i, bool g, seq(float[3]) s) => (bool h, seq(float[3]) t) {
                h = Identity (g)
                k = CastLike (i, x)
                a = Sub (x, k)
                t = SequenceInsert (s, a)
            }>
            y = ConcatFromSequence <axis = 0, new_axis = 1> (all)
        }""",
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_resolved_gives_what_onnxruntime_gives(case: str) -> None:
    proto, rng = model(CASES[case]), np.random.default_rng(0)
    feeds: dict[str, Any] = {
        info.name: rng.standard_normal([dim.dim_value for dim in info.type.tensor_type.shape.dim]).astype(np.float32)
        for info in proto.graph.input
    }
    wanted = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    for got, theirs in zip(lw.from_onnx(proto).evaluate(**feeds), wanted, strict=True):
        assert got.dtype == theirs.dtype and got.shape == theirs.shape
        np.testing.assert_allclose(got, theirs, rtol=1e-5, atol=1e-6)


BODY = "<body = step (int64 i, bool g, float[3] a) => (bool h, float[3] b) { h = Identity (g) b = Add (a, x) }>"
REFUSED: dict[str, tuple[str, str]] = {
    "a condition of the data": (
        """tested (float[3] x) => (float[3] y) {
            go = Constant <value = bool {1}> ()
            y = Loop ("", go, x) <body = step (int64 i, bool g, float[3] a) => (bool h, float[3] b) {
                b = Add (a, x)
                s = ReduceSum <keepdims = 0> (b)
                k = CastLike (i, s)
                h = Less (s, k)
            }>
        }""",
        "Loop 'y': whether it goes on depends on values that are not known",
    ),
    "a count that is an input": (
        f'tested (float[3] x, int64 n) => (float[3] y) {{ y = Loop (n, "", x) {BODY} }}',
        "number of iterations 'n' must be a constant",
    ),
    "too many iterations": (
        f"""tested (float[3] x) => (float[3] y) {{
            n = Constant <value = int64 {{5000}}> ()
            y = Loop (n, "", x) {BODY}
        }}""",
        "5,000 iterations or more; a loop is unrolled, with at most 40",
    ),
    "a loop without an end": (
        f'tested (float[3] x) => (float[3] y) {{ y = Loop ("", "", x) {BODY} }}',
        "41 iterations or more; a loop is unrolled, with at most 40",
    ),
    "a sequence as an output": (
        "tested (float[3] x) => (seq(float[3]) y) { y = SequenceConstruct (x, x) }",
        "output 'y' is a sequence, not a tensor",
    ),
    "a place that a sequence does not have": (
        """tested (float[3] x) => (float[3] y) {
            s = SequenceConstruct (x, x)
            two = Constant <value = int64 {2}> ()
            y = SequenceAt (s, two)
        }""",
        "position 2 is not in a sequence of 2",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_known_is_refused(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, said = REFUSED[case]
    monkeypatch.setattr(control, "MOST_ITERATIONS", 40)  # a loop is followed up to there, at a millisecond each
    with pytest.raises(lw.OnnxImportError, match=said):
        lw.from_onnx(model(text))


def test_a_count_that_is_an_input_may_be_given() -> None:
    proto = model(REFUSED["a count that is an input"][0])
    x = np.array([1, -2, 3], np.float32)
    for count in (0, 1, 3):
        (got,) = lw.onnx.InferenceSession(proto).run(None, {"x": x, "n": np.array(count)})
        np.testing.assert_allclose(got, x * (1 + count))
