"""torch.compile by loopwright: element types, and the precision that products of them have."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch_models import model  # noqa: E402
from torch_watched import Watched, close  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


def test_integer_and_boolean_tensors() -> None:
    def function(x: Any, mask: Any) -> Any:
        return torch.where(mask & (x > 2), x * 2, -x), (x % 3 == 0) | mask

    x, mask = torch.arange(12).view(3, 4), torch.arange(12).view(3, 4) % 2 == 0
    watched = Watched(function)
    close(watched(x, mask), function(x, mask))
    assert len(watched.regions) == 1


def test_autocast_falls_back_where_no_instruction_multiplies_its_type() -> None:
    module, inputs = model("mlp")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found, wanted = Watched(module)(*inputs), module(*inputs)
        report = lw.torch.explain(module, *inputs, options={"target": "llvm model=haswell"})
    torch.testing.assert_close(found, wanted, rtol=5e-2, atol=5e-2)
    assert (
        "addmm.default",
        "products of matrices of bfloat16 stay PyTorch's, for want of matrix units that schedules use",
    ) in report.stays


def test_products_of_bfloat16_are_ours_on_cpus_with_instructions_for_them() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 5)).bfloat16().eval()
    x = torch.randn(2, 3, 8, 8).bfloat16()
    with torch.no_grad():
        report = lw.torch.explain(module, x, options={"target": "llvm model=sapphirerapids"})
        assert len(report.graphs[0].regions) == 1 and report.flops_share == 1 and not report.stays
        torch.testing.assert_close(Watched(module)(x), module(x), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("layer", [nn.ConvTranspose2d(8, 8, 3), nn.Conv3d(8, 8, (1, 3, 3))], ids=["transposed", "3-D"])
def test_convolutions_of_bfloat16_that_pytorch_is_faster_at_stay_its(layer: nn.Module) -> None:
    x = torch.randn(1, 8, 1, 8, 8) if isinstance(layer, nn.Conv3d) else torch.randn(1, 8, 8, 8)
    module = nn.Sequential(layer, nn.ReLU()).bfloat16().eval()
    with torch.no_grad():
        report = lw.torch.explain(module, x.bfloat16(), options={"target": "llvm model=sapphirerapids"})
    reason = "convolutions that are transposed or over three axes of bfloat16 stay PyTorch's"
    assert any(name == "convolution.default" and why.startswith(reason) for name, why in report.stays)


def test_convolutions_of_float16_are_ours_on_cpus() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 5)).half().eval()
    x = torch.randn(2, 3, 8, 8).half()
    with torch.no_grad():
        report = lw.torch.explain(module, x)
        assert {name for name, why in report.stays if "a view" not in why} == {"addmm.default"}
        torch.testing.assert_close(Watched(module)(x), module(x), rtol=1e-2, atol=1e-2)


class Norms(nn.Module):
    """A norm by stored statistics, and one over channels with a scale alone, of each image."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(16) if kind == "batch" else nn.LayerNorm(16, bias=False)
        for name, values in self.norm.state_dict().items():
            if values.ndim:
                values.uniform_(0.3, 2) if "mean" not in name else values.normal_()

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(x) if isinstance(self.norm, nn.BatchNorm2d) else self.norm(x.transpose(1, 3)))


@pytest.mark.parametrize("kind", ["batch", "layer"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_norms_of_halves_are_rounded_once(kind: str, dtype: Any) -> None:
    torch.manual_seed(0)
    module = Norms(kind).eval().to(dtype)
    x = torch.randn(4, 16, 20, 20).to(dtype)
    watched = Watched(module)
    with torch.no_grad():
        found, own = watched(x), module(x)
        exact = module.double()(x.double())
    assert len(watched.regions) == 1 and not watched.stays
    assert (found - exact).abs().mean() < 1.1 * (own - exact).abs().mean()


def test_precision_of_products_is_an_option() -> None:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)).eval()
    x = torch.randn(32, 64)
    with torch.no_grad():
        got = torch.compile(model, backend="loopwright", options={"precision": "tf32"})(x)
        want = model(x)
    assert 0 < (got - want).abs().max() <= 4e-3 * want.abs().max()
    with pytest.raises(ValueError, match="precision is float16 or bfloat16 or tf32 or tf32x3"):
        TorchOptions.of({"precision": "int4"})
