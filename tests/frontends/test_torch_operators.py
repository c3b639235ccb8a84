"""Operators of core ATen as networks, beside PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch_programs import PROGRAMS, Wrapped  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.discovery import converters  # noqa: E402
from loopwright.frontends.torch.recurrent_operator import recurrent_layer  # noqa: E402


@pytest.mark.few(40)
@pytest.mark.parametrize("name", PROGRAMS)
def test_operator_gives_what_pytorch_gives(name: str) -> None:
    program = PROGRAMS[name]
    net = lw.from_exported(torch.export.export(Wrapped(program.function), program.inputs))
    given = dict(zip(net.input_names, (x.numpy() for x in program.inputs), strict=True))
    expected = program.function(*program.inputs)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    found = net.evaluate(**given)
    for value, wanted in zip(found, expected, strict=True):
        assert (value.shape, value.dtype) == (tuple(wanted.shape), wanted.numpy().dtype)
        np.testing.assert_allclose(value, wanted.numpy(), rtol=program.rtol, atol=1e-5)


def test_each_converter_is_of_an_operator_that_pytorch_has() -> None:
    recurrent_layer()  # defines our own

    def has(name: str) -> bool:
        namespace, _, rest = name.rpartition("::")
        packet, _, overload = rest.partition(".")
        return hasattr(getattr(getattr(torch.ops, namespace or "aten"), packet, None), overload)

    assert not [name for name in converters() if not has(name) and not name.startswith("transformers::")]


def _grouped_fallback() -> Any:
    """The operator of transformers, or one of its name where that is not here."""
    name = "transformers::grouped_mm_fallback"
    found = getattr(torch.ops.transformers, "grouped_mm_fallback", None)

    def grouped(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        made, start = input.new_zeros(input.shape[0], weight.shape[2]), 0
        for matrix, end in zip(weight, offs.tolist(), strict=True):
            made[start:end] = input[start:end] @ matrix
            start = end
        return made

    if found is None:
        found = torch.library.custom_op(name, grouped, mutates_args=())
        found.register_fake(lambda x, w, ends: x.new_empty(x.shape[0], w.shape[2]))
    return found


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("ends", [[3, 3, 5, 9], [0, 0, 2, 7], [9, 9, 9, 9]])
def test_rows_are_multiplied_by_the_matrices_of_their_groups(ends: list[int], transposed: bool) -> None:
    grouped, x, weight = (
        _grouped_fallback(),
        torch.randn(9, 6),
        torch.randn(4, 5, 6) if transposed else torch.randn(4, 6, 5),
    )

    def function(x: Any, weight: Any, ends: Any) -> Any:
        return grouped(x, weight.transpose(1, 2) if transposed else weight, ends)

    given = (x, weight, torch.tensor(ends, dtype=torch.int32))
    net = lw.from_exported(exported(function, *given))
    (found,) = net.evaluate(**dict(zip(net.input_names, (each.numpy() for each in given), strict=True)))
    np.testing.assert_allclose(found, function(*given).numpy(), rtol=1e-5, atol=1e-5)


def test_experts_whose_tokens_are_counted_and_sorted_are_one_region() -> None:
    grouped, weight = _grouped_fallback(), torch.randn(4, 5, 6)

    def function(x: Any, router: Any) -> Any:
        chosen = (x @ router).argmax(-1)
        order = chosen.argsort()
        ends = torch.histc(chosen.float(), bins=4, min=0, max=3).cumsum(0).int()
        return grouped(x[order], weight.transpose(1, 2), ends)[order.argsort()]

    (graph,) = lw.torch.explain(function, torch.randn(9, 6), torch.randn(6, 4)).graphs
    assert len(graph.regions) == 1 and not graph.stays


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this PyTorch has no grouped products")
def test_pytorchs_grouped_products_are_imported() -> None:
    given = torch.randn(8, 16), torch.randn(3, 16, 8), torch.tensor([2, 2, 8], dtype=torch.int32)

    def function(x: Any, weight: Any, ends: Any) -> Any:
        return torch._grouped_mm(x.bfloat16(), weight.bfloat16(), offs=ends).float()

    net = lw.from_exported(exported(function, *given))
    (found,) = net.evaluate(**dict(zip(net.input_names, (each.numpy() for each in given), strict=True)))
    np.testing.assert_allclose(found, function(*given).numpy(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3)])
def test_attention_lies_in_memory_as_its_queries(order: tuple[int, ...]) -> None:
    """Programs have views of it that are made in no other order, and a contiguous() that is not traced."""
    shape = [2, 3, 5, 4]
    back = sorted(range(4), key=order.__getitem__)

    def function(x: Any) -> Any:
        made = torch.nn.functional.scaled_dot_product_attention(x.permute(back), x.permute(back) * 2, x.permute(back))
        turned = made.permute(order)
        return turned.contiguous().view(turned.shape[0] * turned.shape[1], -1) * 2

    x = torch.randn([shape[d] for d in order])
    net = lw.from_exported(torch.export.export(Wrapped(function), (x,), strict=False))
    (found,) = net.evaluate(**{net.input_names[0]: x.numpy()})
    np.testing.assert_allclose(found, function(x).numpy(), rtol=1e-5, atol=1e-5)
    (graph,) = lw.torch.explain(function, x).graphs
    assert len(graph.regions) == 1 and not graph.stays


def exported(function: Any, *inputs: Any) -> Any:
    return torch.export.export(Wrapped(function), inputs)


def test_all_reasons_are_listed() -> None:
    program = exported(lambda x: (torch.i0(x), torch.i0(x + 1), torch.special.i1(x), x.relu()), torch.randn(3, 4))
    with pytest.raises(lw.TorchImportError) as refused:
        lw.from_exported(program, name="unusual")
    assert str(refused.value) == (
        "program 'unusual' cannot be imported, for 2 reasons:\n"
        "  operator i0.default is not supported\n"
        "  operator special_i1.default is not supported"
    )


def test_parameters_are_constants_on_the_same_memory() -> None:
    module = torch.nn.Linear(40, 30)
    net = lw.from_exported(torch.export.export(module, (torch.randn(2, 40),)))
    (weight,) = [array for array in net.params.values() if array.shape == (30, 40)]
    assert weight.ctypes.data == module.weight.data_ptr()


def test_outputs_that_are_no_tensors_are_left_out() -> None:
    attention = torch.nn.MultiheadAttention(8, 2).eval()
    x = torch.randn(3, 1, 8)
    net = lw.from_exported(exported(lambda x: (None, attention(x, x, x, need_weights=False), 3), x))
    (found,) = net.evaluate(**{net.input_names[0]: x.numpy()})
    np.testing.assert_allclose(found, attention(x, x, x)[0].detach().numpy(), atol=1e-5)
    with pytest.raises(lw.TorchImportError, match="it returns no tensor"):
        lw.from_exported(exported(lambda x: (None, 3), x))


def test_program_that_keeps_state_is_refused() -> None:
    class Counter(torch.nn.Module):
        count: Any

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.count.add_(1)
            return x + self.count

    program = torch.export.export(Counter(), (torch.randn(2),))
    with pytest.raises(lw.TorchImportError, match="it writes count, and networks keep no state"):
        lw.from_exported(program)


def test_program_of_a_file(tmp_path: Any) -> None:
    torch.export.save(exported(lambda x: x.relu() + 1, torch.randn(2, 3)), tmp_path / "program.pt2")
    net = lw.from_exported(tmp_path / "program.pt2")
    assert [value.shape for value in net.outputs.values()] == [(2, 3)]


def test_what_is_no_program_is_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"from_exported takes a program of torch.export or a path, got Linear"):
        lw.from_exported(torch.nn.Linear(2, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_program_of_halves_is_a_network_of_halves(dtype: Any) -> None:
    """Of torch.export everything is ours; PyTorch's own results are rounded in other places."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.Flatten(2), torch.nn.LayerNorm(36)
    )
    module = module.append(torch.nn.Linear(36, 5)).eval().to(dtype)
    x = torch.randn(2, 3, 6, 6, dtype=dtype)
    net = lw.from_exported(torch.export.export(module, (x,)))
    (name,) = net.input_names
    (found,) = net.evaluate(**{name: x.view(torch.int16).numpy().view(net.inputs[name].dtype)})
    wanted = module(x).detach().float().numpy()
    assert np.abs(found.astype(np.float32) - wanted).max() < 0.02 * np.abs(wanted).max()


def test_norm_of_halves_by_statistics_in_single_precision() -> None:
    """As autocast leaves it: a convolution gives halves, and statistics stay float32."""
    norm = torch.nn.BatchNorm2d(3).eval()
    given = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    x = torch.randn(2, 3, 4, 4).half()
    net = lw.from_exported(exported(lambda x: torch.native_batch_norm(x, *given, False, 0.1, norm.eps)[0], x))
    (found,) = net.evaluate(**{net.input_names[0]: x.numpy()})
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, norm(x.float()).detach().numpy(), rtol=2e-3, atol=1e-3)


def test_groups_of_halves_under_autocast() -> None:
    """Weights are of float32 there, and the result of the data's type."""
    norm, x = torch.nn.GroupNorm(2, 4), torch.randn(2, 4, 3, 3).bfloat16()
    with torch.no_grad():
        norm.weight.copy_(torch.rand(4)), norm.bias.copy_(torch.rand(4))
        wanted = torch.native_group_norm(x, norm.weight, norm.bias, 2, 4, 9, 2, norm.eps)[0]
    net = lw.from_exported(
        exported(lambda x: torch.native_group_norm(x, norm.weight, norm.bias, 2, 4, 9, 2, norm.eps)[0], x)
    )
    (name,) = net.input_names
    (found,) = net.evaluate(**{name: x.view(torch.int16).numpy().view(net.inputs[name].dtype)})
    assert wanted.dtype == torch.bfloat16 and net.outputs and str(found.dtype) == "bfloat16"
    np.testing.assert_allclose(found.astype(np.float32), wanted.float().numpy(), rtol=1e-2, atol=1e-2)


def test_running_sums_of_halves_are_rounded_once() -> None:
    x = torch.rand(2, 400, generator=torch.Generator().manual_seed(0)).half()
    net = lw.from_exported(exported(lambda x: x.cumsum(1), x))
    (found,) = net.evaluate(**{net.input_names[0]: x.numpy()})
    exact = x.double().cumsum(1).numpy()
    assert found.dtype == np.float16 and np.abs(found - exact).max() <= np.spacing(exact.astype("float16")).max() / 2


def _rows() -> Any:
    rows = torch.randn(5, 9, generator=torch.Generator().manual_seed(3))
    rows[1, 3] = float("nan")
    rows[2] = rows[2].round()
    return rows


WHOLE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "median": (lambda x: (x.median(1)[0], x.median(0, keepdim=True)[0], x.median()), _rows()),
    "kthvalue": (lambda x: (x.kthvalue(3, 1)[0], x.kthvalue(9, 1, True)[0]), _rows()),
    "cummax": (lambda x: (*x.cummax(1), *x.cummin(0)), _rows()),
    "logcumsumexp": (lambda x: x.logcumsumexp(1) + (x * 50).logcumsumexp(0), _rows().nan_to_num()),
    "histc": (lambda x: (x.histc(5, -1, 1), x.histc(4), (x * 0).histc(3)), _rows().nan_to_num()),
    "of integers": (lambda x: (x.median(1)[0], *x.cummax(1)), torch.arange(20).reshape(4, 5) * 7 % 11),
    "lgamma": (torch.lgamma, torch.tensor([-3.7, -1.0, -0.2, 0.0, 0.3, 1.0, 1.5, 7.0, 1e5, float("inf")])),
    "digamma": (torch.digamma, torch.tensor([-3.7, -1.0, -0.2, 0.0, 0.3, 1.0, 1.5, 7.0, 1e5, float("nan")])),
    "erfinv": (torch.erfinv, torch.tensor([-1.0, -0.9999, -0.5, 0.0, 0.3, 0.999999, 1.0, 1.5])),
    "half": (torch.lgamma, torch.tensor([0.3, 4.0, 70.0], dtype=torch.float16)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_programs_have_operators_that_stay_pytorch_s_elsewhere(name: str) -> None:
    function, x = WHOLE[name]
    net = lw.from_exported(exported(function, x))
    expected = function(x)
    found = net.evaluate(**{net.input_names[0]: x.numpy()})
    for value, wanted in zip(found, expected if isinstance(expected, tuple) else [expected], strict=True):
        assert (value.shape, value.dtype) == (tuple(wanted.shape), wanted.numpy().dtype)
        np.testing.assert_allclose(value, wanted.numpy(), rtol=1e-3 if name == "half" else 1e-5, atol=1e-5)
