"""Workloads: the DAG reads as people write it, operations are counted, keys are stable."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.target import Target, target_of
from loopwright.search.workload import ComputeDAG, Workload, as_workload, register_workload


@lw.register_workload
def conv2d_layer(N, H, W, CO, CI, KH, KW, stride, padding):  # type: ignore[no-untyped-def]
    data = te.placeholder((N, CI, H, W), name="data")
    kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
    bias = te.placeholder((1, CO, 1, 1), name="bias")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    return [data, kernel, bias, topi.nn.relu(conv + bias)]


SEED = (1, 7, 7, 512, 512, 3, 3, (1, 1), (1, 1))


def dag_of(*tensors: te.Tensor) -> str:
    return str(ComputeDAG.from_tensors(tensors))


def test_the_seed_convolution_prints_as_people_write_it() -> None:
    assert str(conv2d_layer.dag(*SEED)) == (
        "data = PLACEHOLDER [1, 512, 7, 7]\n"
        "pad_temp(i0, i1, i2, i3) = select(1 <= i2 < 8 && 1 <= i3 < 8, data[i0, i1, i2 - 1, i3 - 1], 0.0)\n"
        "kernel = PLACEHOLDER [512, 512, 3, 3]\n"
        "compute(nn, ff, yy, xx) += pad_temp[nn, rc, yy + ry, xx + rx] * kernel[ff, rc, ry, rx]\n"
        "bias = PLACEHOLDER [1, 512, 1, 1]\n"
        "T_add(ax0, ax1, ax2, ax3) = compute[ax0, ax1, ax2, ax3] + bias[ax0, ax1, 0, 0]\n"
        "T_relu(i0, i1, i2, i3) = max(T_add[i0, i1, i2, i3], 0.0)"
    )


def test_other_forms_of_stages() -> None:
    x = te.placeholder((4, 5), name="x")
    k = te.reduce_axis((1, 5), "k")
    assert dag_of(x, te.compute((4,), lambda i: te.max(x[i, k], axis=k), "m")).endswith("m(i) max= x[i, k + 1]")
    assert dag_of(x, te.compute((4,), lambda i: te.min(x[i, k], axis=k), "m")).endswith("m(i) min= x[i, k + 1]")
    assert dag_of(x, te.compute((4,), lambda i: te.prod(x[i, k], axis=k), "m")).endswith("m(i) *= x[i, k + 1]")
    assert dag_of(x, te.compute((4, 5), lambda i, j: (x[i, j] - (x[i, j] + 1)) / (x[i, j] * 2), "c")).endswith(
        "c(i, j) = (x[i, j] - (x[i, j] + 1.0)) / (x[i, j] * 2.0)"
    )
    guarded = te.compute((5, 5), lambda i, j: te.select(te.all(i < 4, i % 2 == 0), x[i, j], -1.5), "c")
    assert dag_of(x, guarded).endswith("c(i, j) = select(i < 4 && i % 2 == 0, x[i, j], -1.5)")
    diagonal = te.compute((4, 5), lambda i, j: te.select(i == j, 1.0, te.select(x[i, j] > 0, 2.0, 3.0)), "c")
    assert dag_of(x, diagonal).endswith("c(i, j) = select(i - j == 0, 1.0, select(x[i, j] > 0.0, 2.0, 3.0))")
    whole = te.placeholder((4,), "int8", "w")
    assert dag_of(whole, te.compute((4,), lambda i: whole[3 - i].astype("int32") * i // 3, "c")) == (
        "w = PLACEHOLDER [4] int8\nc(i) = int32(w[3 - i]) * i // 3"
    )
    places = dag_of(whole, topi.argmax(whole, 0)).splitlines()[1]
    assert places.startswith("T_argmax_v0(), T_argmax_v1() combine= (k0, w[k0]) from (2147483647, -128) by ")
    assert "combine= (k1, select(" in dag_of(x, topi.argmax(x, 1))  # floats by keys


def test_a_long_shared_value_gets_a_line_of_its_own() -> None:
    x = te.placeholder((4,), name="x")

    def element(i: te.Expr) -> te.Expr:
        long = te.exp(x[i] * 1.25 + 3.0) / (te.sqrt(x[i]) + te.tanh(x[i] - 1.0) * 2.0)
        return long * long

    lines = dag_of(x, te.compute((4,), element, "c")).splitlines()
    assert lines[1:] == [
        "c(i) = t0 * t0",
        "    where t0 = exp(x[i] * 1.25 + 3.0) / (sqrt(x[i]) + tanh(x[i] - 1.0) * 2.0)",
    ]


def test_flops() -> None:
    points = 512 * 7 * 7
    assert conv2d_layer.dag(*SEED).flops == 2 * points * 512 * 9 + points + points
    a, b = te.placeholder((32, 48)), te.placeholder((48, 16))
    assert ComputeDAG.from_tensors([a, b, topi.matmul(a, b)]).flops == 2 * 32 * 48 * 16
    c, d = te.placeholder((32, 48), "int8"), te.placeholder((48, 16), "int8")
    assert ComputeDAG.from_tensors([c, d, topi.matmul(c, d)]).flops == 2 * 32 * 48 * 16
    assert ComputeDAG.from_tensors([a, topi.nn.pad(a, (1, 1))]).flops == 0
    assert ComputeDAG.from_tensors([a, topi.transpose(a)]).flops == 0
    assert ComputeDAG.from_tensors([a, topi.exp(a * 2.0)]).flops == 2 * 32 * 48
    branches = te.compute((32, 48), lambda i, j: te.select(a[i, j] > 0, te.exp(a[i, j]) + 1.0, a[i, j]))
    assert ComputeDAG.from_tensors([a, branches]).flops == 2 * 32 * 48


def test_key_is_name_arguments_and_hash() -> None:
    name, args, digest = json.loads(conv2d_layer.key(*SEED))
    assert (name, args) == ("conv2d_layer", [1, 7, 7, 512, 512, 3, 3, [1, 1], [1, 1]])
    assert digest == conv2d_layer.dag(*SEED).hash
    assert len(digest) == 16
    assert conv2d_layer.key(*(np.int64(a) if isinstance(a, int) else a for a in SEED)) == conv2d_layer.key(*SEED)
    assert conv2d_layer.dag(2, *SEED[1:]).hash != digest
    with pytest.raises(TypeError, match="workload 'w': arguments must be numbers, strings"):
        conv2d_layer.dag(*SEED).workload_key("w", [object()])


def test_key_is_the_same_in_another_process() -> None:
    program = (
        "from loopwright import te, topi\n"
        "from loopwright.search.workload import ComputeDAG\n"
        "a, b = te.placeholder((8, 8), name='a'), te.placeholder((8, 8), name='b')\n"
        "print(ComputeDAG.from_tensors([a, b, topi.nn.gelu(topi.matmul(a, b))]).workload_key('w', (8,)))\n"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(keys) == 1


def test_target_is_no_part_of_the_workload() -> None:
    dag = conv2d_layer.dag(*SEED)
    module = dag.for_target(Target(cores=2))
    assert target_of(module) == Target(cores=2)
    again = ComputeDAG.from_module(module)
    assert again.hash == dag.hash
    assert "lw.target" in module.attributes
    assert dag.text_for(Target(cores=2)) == str(module)


def test_registering() -> None:
    @register_workload("mm")
    def matmul(n: int) -> list[te.Tensor]:
        a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
        return [a, b, topi.matmul(a, b)]

    assert isinstance(matmul, Workload) and matmul.name == "mm"
    assert [t.shape for t in matmul(5)] == [(5, 5)] * 3
    assert as_workload(matmul) is matmul
    assert as_workload(matmul.function).name == "matmul"


def test_padding_and_types_are_in_the_hash() -> None:
    """Of the same shapes: TVM's key, of the printed graph, has neither."""
    shifted = conv2d_layer.dag(*SEED[:-1], (2, 0, 0, 2))
    assert shifted.func.function_type == conv2d_layer.dag(*SEED).func.function_type
    assert shifted.hash != conv2d_layer.dag(*SEED).hash

    def doubled(dtype: str) -> ComputeDAG:
        a = te.placeholder((4,), name="a", dtype=dtype)
        return ComputeDAG.from_tensors([a, te.compute((4,), lambda i: a[i] + a[i], name="b")])

    assert doubled("float32").hash != doubled("float16").hash


def product(n: int):  # type: ignore[no-untyped-def]
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    return [a, b, topi.matmul(a, b)]


def test_a_registered_workload_is_found_by_name_and_by_key() -> None:
    made = register_workload("tests_found", product)
    by_name = lw.SearchTask("tests_found", (5,), target="llvm cores=1")
    by_key = lw.SearchTask(workload_key=by_name.workload_key, target="llvm cores=1")
    assert by_name.workload_key == by_key.workload_key == made.key(5) and by_key.args == (5,)
    assert lw.SearchTask("matmul", (5, 5, 5, "float32"), target="llvm cores=1").name == "matmul"  # one that is shipped
    with pytest.raises(ValueError, match=r"there is no workload 'tests_lost'; there are: .*tests_found"):
        lw.SearchTask("tests_lost")
    with pytest.raises(ValueError, match="'tests_found' computes something else now than when its key was made"):
        lw.SearchTask(workload_key='["tests_found", [5], "0123456789abcdef"]')
    with pytest.raises(ValueError, match=r"not a workload key: tests_found; one is JSON"):
        lw.SearchTask(workload_key="tests_found")


def test_a_name_is_taken_by_another_function_only_on_purpose() -> None:
    def first(n: int):  # type: ignore[no-untyped-def]
        return product(n)

    def second(n: int):  # type: ignore[no-untyped-def]
        return product(n)

    made = register_workload("tests_taken", first)
    assert register_workload("tests_taken", first) == made  # defined again
    said = "workload 'tests_taken' is registered already, of .*first; override=True puts this one in its place"
    with pytest.raises(ValueError, match=said):
        register_workload("tests_taken", second)
    assert register_workload("tests_taken", second, override=True).function is second
    assert lw.SearchTask("tests_taken", (2,), target="llvm cores=1").args == (2,)


def lone(n: int):  # type: ignore[no-untyped-def]
    return product(n)[-1]


def forgetful(n: int):  # type: ignore[no-untyped-def]
    return product(n)[1:]


register: Any = register_workload
search_task: Any = lw.SearchTask


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: register(3), TypeError, "a workload is a function that returns tensors, got int 3"),
        (lambda: register(lambda: product(2)), TypeError, "a lambda has no name to be registered by"),
        (lambda: register(product, product), TypeError, "takes a name before the function"),
        (lambda: register("a")(conv2d_layer), TypeError, "'conv2d_layer' is registered already"),
        (lambda: search_task(3), TypeError, "a workload is a function that returns tensors, its .* name, .* got int"),
        (lambda: search_task(), TypeError, "a workload or of a workload_key: give one of them"),
        (lambda: search_task(product, 3), TypeError, "args are the arguments of the workload, in a list .*, got 3"),
        (lambda: search_task(product), TypeError, r"workload 'product': missing a required argument: 'n'; .* \(\)"),
        (lambda: search_task(product, (1, 2)), TypeError, r"'product': too many positional arguments; .* \(1, 2\)"),
        (lambda: search_task(lone, (2,)), TypeError, "'lone' must return the list of .* returns one tensor, 'T_m"),
        (lambda: search_task(lambda: None), TypeError, "must return the list of .* and returns NoneType"),
        (lambda: search_task(lambda: [3]), TypeError, "must return the list of .* and returns a list with int"),
        (
            lambda: search_task(forgetful, (2,)),
            ValueError,
            r"workload 'forgetful' returns \[b, T_matmul\]: placeholder 'a' is read, but is not in the list: list",
        ),
        (
            lambda: search_task(lambda n: product(n)[:2], (2,)),
            ValueError,
            r"workload '<lambda>' returns \[a, b\]: there is no computed tensor in the list",
        ),
    ],
)
def test_misuse_is_one_sentence(make, error, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)
