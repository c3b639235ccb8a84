"""The backend of torch.compile for CUDA devices that are not there: which operators are taken, and what is compiled."""

import gc
import warnings
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

torch: Any = pytest.importorskip("torch")

from fake_pycuda import FakeDriver, Library, installed  # noqa: E402
from torch._subclasses import fake_tensor  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner  # noqa: E402
from torch_watched import Watched, close, compiled_regions  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.backends.cuda import launches  # noqa: E402
from loopwright.backends.cuda.driver import MissingCuda  # noqa: E402
from loopwright.backends.targets import resolve_target  # noqa: E402
from loopwright.dialects.graph import GroupOp  # noqa: E402
from loopwright.frontends.torch import devices  # noqa: E402
from loopwright.frontends.torch import region as region_module  # noqa: E402
from loopwright.frontends.torch.decompositions import decompositions  # noqa: E402
from loopwright.frontends.torch.graph import CompiledGraph  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.frontends.torch.region import RegionWarning  # noqa: E402
from loopwright.graph.layout import in_layout  # noqa: E402
from loopwright.graph.tasks import grouping_for  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")

nn: Any = torch.nn
F: Any = torch.nn.functional
H200 = "cuda model=h200"
to_copy: Any = torch.ops.aten._to_copy.default


def graph_of(function: Any, *shapes: tuple[int, ...], device: str = "cuda:0", **options: Any) -> CompiledGraph:
    """A function on tensors of a device that is taken not to be there, also where it is."""
    with FakeTensorMode():
        inputs = [torch.empty(shape, device=device) for shape in shapes]
        gm = make_fx(function, decomposition_table=dict(decompositions()))(*inputs)
    gm.graph.eliminate_dead_code()
    with patch.object(torch.cuda, "device_count", lambda: 0):
        return CompiledGraph(gm, "inference", frozenset(), TorchOptions.of(options))


def stays(graph: CompiledGraph) -> set[tuple[str, str]]:
    return {(str(node), why) for node, why in graph.stays.items()}


def small(x: Any, w: Any) -> Any:
    return torch.relu(F.conv2d(x, w)) + torch.arange(6, device=x.device)


def test_tensors_on_cuda_are_compiled_for_their_device() -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    graph = graph_of(small, (2, 3, 8, 8), (4, 3, 3, 3))
    (region,) = graph.regions
    assert region.device == torch.device("cuda:0") and not graph.stays
    net, (given, made) = region.network({}), region.ports({})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = lw.compile(in_layout(net, "auto"), H200, processes=1)
    assert compiled.plan.target.startswith("cuda model=h200")
    assert [place for place, _ in given] == [0, 1] and [port.shape for port in made] == [(2, 4, 6, 6)]


def test_a_region_is_on_one_device() -> None:
    """Regions of two devices are not joined, and what has tensors of both stays between them."""

    def function(x: Any, y: Any) -> Any:
        there = to_copy(torch.softmax(x * 2, -1), device=torch.device("cuda:0"))
        return torch.softmax(there + 1, -1), torch.softmax(y - 1, -1)

    with FakeTensorMode():
        x, y = torch.empty(3, 4), torch.empty(3, 4, device="cuda:0")
        gm = make_fx(function, decomposition_table=dict(decompositions()))(x, y)
    graph = CompiledGraph(gm, "inference", frozenset(), TorchOptions())
    assert [str(region.device) for region in graph.regions] == ["cpu", "cuda:0"]
    assert len({region.name for region in graph.regions}) == 2
    assert stays(graph) == {("_to_copy", "it has tensors on cpu and cuda:0")}


def test_reasons_outlive_the_copies_that_fusing_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch may sort a graph by copying it, once regions are fused: those of another device come after that."""
    fuse = CapabilityBasedPartitioner.fuse_partitions

    def copied(partitioner: Any, *arguments: Any, **options: Any) -> Any:
        gm, copy = fuse(partitioner, *arguments, **options), torch.fx.Graph()
        copy.output(copy.graph_copy(gm.graph, {}))
        gm.graph = copy
        return gm

    monkeypatch.setattr(CapabilityBasedPartitioner, "fuse_partitions", copied)

    def function(x: Any, y: Any) -> Any:
        ordered = torch.softmax(y * 2, -1).lgamma()
        return torch.softmax(x * 2, -1), torch.softmax(ordered * 3, -1)

    with FakeTensorMode():
        x, y = torch.empty(3, 4), torch.empty(3, 4, device="cuda:0")
        gm = make_fx(function, decomposition_table=dict(decompositions()))(x, y)
    graph = CompiledGraph(gm, "inference", frozenset(), TorchOptions())
    assert stays(graph) == {("lgamma", "operator lgamma.default is not supported")}
    assert graph.stays.keys() <= set(graph.module.graph.nodes)
    inside = {str(node.target) for region in graph.regions for node in region.graph.graph.nodes}
    assert sorted(str(region.device) for region in graph.regions) == ["cpu", "cuda:0", "cuda:0"]
    assert "aten.lgamma.default" not in inside


def test_a_target_that_is_named_leaves_other_devices_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_tensor, "init_gpu_context", lambda device: None)  # there may be one device, or none
    shapes = ((2, 3, 8, 8), (4, 3, 3, 3))
    assert not graph_of(small, *shapes, target="llvm").regions
    assert {why for _, why in stays(graph_of(small, *shapes, target="llvm"))} == {"tensors on cuda:0 stay PyTorch's"}
    assert not graph_of(small, *shapes, device="cpu", target=H200).regions
    assert len(graph_of(small, *shapes, target=H200).regions) == 1
    assert len(graph_of(small, *shapes, device="cuda:1").regions) == 1


def halves(dtype: Any) -> Any:
    """A product and a convolution of 16-bit floats, and what belongs to them."""

    def function(x: Any, w: Any) -> Any:
        x, w = (to_copy(each * 2, dtype=dtype) for each in (x, w))
        made = F.conv2d(x, w, padding=1).flatten(2)
        return torch.matmul(made, made.transpose(1, 2))

    return function


WITHOUT_UNITS = "for want of matrix units that schedules use"


@pytest.mark.parametrize(
    ("dtype", "target", "left"),
    [
        (torch.float16, H200, []),
        (torch.bfloat16, H200, []),
        (torch.float16, "cuda model=v100", ["bmm", "convolution"]),
        (torch.float16, None, ["bmm", "convolution"]),
    ],
)
def test_products_of_halves_are_ours_where_there_are_matrix_units(dtype: Any, target: str | None, left: Any) -> None:
    """Of a device that is not here, and not said to be any, nothing is known."""
    graph = graph_of(halves(dtype), (2, 3, 8, 8), (4, 3, 3, 3), **({"target": target} if target else {}))
    assert sorted(name for name, why in stays(graph) if why.endswith(WITHOUT_UNITS)) == left
    operators = {str(node.target) for region in graph.regions for node in region.graph.graph.nodes}
    assert ("aten.convolution.default" in operators) != bool(left)


def test_large_products_of_halves_stay_pytorchs() -> None:
    def function(x: Any) -> Any:
        x = to_copy(x * 2, dtype=torch.float16)
        return F.gelu(x @ x)

    graph = graph_of(function, (1024, 1024), target=H200)
    assert ("mm", "products of matrices of float16 with 1,073,741,824 terms are faster in PyTorch") in stays(graph)
    assert len(graph_of(function, (1023, 1023), target=H200).regions) == 1
    graph = graph_of(halves(torch.float16), (8, 64, 128, 128), (128, 64, 3, 3), target=H200)
    assert ("convolution", "convolutions of float16 with 9,663,676,416 terms are faster in PyTorch") in stays(graph)


efficient: Any = torch.ops.aten._scaled_dot_product_efficient_attention.default
flash: Any = torch.ops.aten._scaled_dot_product_flash_attention.default
cudnn: Any = torch.ops.aten._scaled_dot_product_cudnn_attention.default
CALLS: dict[str, Any] = {
    "efficient": lambda q, k, v, bias, causal, scale: efficient(q, k, v, bias, False, 0.0, causal, scale=scale),
    "cudnn": lambda q, k, v, bias, causal, scale: cudnn(q, k, v, bias, False, 0.0, causal, scale=scale),
    "flash": lambda q, k, v, bias, causal, scale: flash(q, k, v, 0.0, causal, scale=scale),
}
HALF = torch.float16


def attention_layer(call: Any, heads: int = 4, dtype: Any = None) -> Any:
    """A layer of attention, as PyTorch brings it to its operators on CUDA: of a row of x and of a matrix."""

    def layer(x: Any, w: Any) -> Any:
        x, w = (each if dtype is None else to_copy(each * 2, dtype=dtype) for each in (x, w))
        n, length, width = x.shape
        q, k, v = (x @ w).view(n, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
        made = call(q, k, v)[0]
        return torch.relu(made.transpose(1, 2).reshape(n, length, width) + x)

    return layer


def why_attention_stays(call: Any, rows: int, size: int, dtype: Any = None, target: str = H200) -> str | None:
    """Return why attention of four heads of `rows` x `size` stays PyTorch's; the rest of its layer is ours."""
    graph = graph_of(attention_layer(call, dtype=dtype), (1, rows, 4 * size), (4 * size, 12 * size), target=target)
    why = next((each for name, each in stays(graph) if name.startswith("_scaled")), None)
    assert len(graph.regions) == (1 if why is None else 2), "before it and after it"
    return why


@pytest.mark.parametrize("name", CALLS)
def test_short_attention_on_cuda_is_one_region_with_its_layer(name: str) -> None:
    def call(q: Any, k: Any, v: Any) -> Any:
        return CALLS[name](q, k, v, None, False, None)

    assert why_attention_stays(call, 16, 16) is None
    assert why_attention_stays(call, 1024, 16) == "attention of float32 with 4,194,304 scores is faster in PyTorch"
    assert why_attention_stays(call, 16, 16, HALF) is None
    assert why_attention_stays(call, 896, 64, HALF) is None
    long = "attention of float16 with 268,435,456 terms a product is faster in PyTorch"
    assert why_attention_stays(call, 1024, 64, HALF) == long
    uneven = "attention of float16 with 2,408,704 scores is faster in PyTorch"
    assert why_attention_stays(call, 776, 64, HALF) == uneven, "16 does not divide 776"
    assert why_attention_stays(call, 200, 64, torch.bfloat16) is None


def test_attention_of_halves_is_pytorchs_without_matrix_units() -> None:
    graph = graph_of(attention_layer(flash, dtype=HALF), (1, 16, 64), (64, 192), target="cuda model=v100")
    assert any(
        name == "_scaled_dot_product_flash_attention" and why.endswith(WITHOUT_UNITS) for name, why in stays(graph)
    )


def test_attention_that_is_more_than_one_stays_pytorchs() -> None:
    def with_sums(q: Any, k: Any, v: Any) -> Any:
        made, sums, *_ = efficient(q, k, v, None, True)
        return (made + sums.sum(),)

    def with_few_keys(q: Any, k: Any, v: Any) -> Any:
        return flash(q, k.narrow(2, 0, 8), v.narrow(2, 0, 8), is_causal=True)

    def grouped(q: Any, k: Any, v: Any) -> Any:
        return flash(q, k.narrow(1, 0, 2), v.narrow(1, 0, 2))

    refused = {
        "attention with dropout stays PyTorch's": lambda q, k, v: flash(q, k, v, 0.5),
        "attention whose gradients read its sums stays PyTorch's": with_sums,
        "causal attention of other queries than keys stays PyTorch's": with_few_keys,
        "attention of 4 heads of queries to 2 of keys stays PyTorch's": grouped,
    }
    for why, call in refused.items():
        assert why_attention_stays(call, 16, 16, HALF) == why


@pytest.mark.parametrize(
    "name, options",
    [
        (name, options)
        for options in ({}, {"causal": True}, {"scale": -0.3}, {"scale": 0.0}, {"bias": True})
        for name in CALLS
        if (name, options) != ("flash", {"bias": True})  # which takes none
    ],
)
def test_attention_is_what_pytorch_computes(name: str, options: dict[str, Any]) -> None:
    """Of other queries than keys; a row of the bias leaves no key, and gives 0."""
    keys = 6 if name == "flash" and options.get("causal") else 9
    shapes = ((2, 4, 6, 8), (2, 4, keys, 8), (2, 4, keys, 5), (2, 4, 6, keys))
    causal, scale, biased = options.get("causal", False), options.get("scale"), options.get("bias", False)

    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        v = F.pad(v, (0, 3))  # kernels of PyTorch's take values as long as queries
        return CALLS[name](q, k, v, bias if biased else None, causal, scale)[0] + 1

    graph = graph_of(function, *shapes)
    (region,) = graph.regions
    net, (_, (port,)) = region.network({}), region.ports({})
    given = dict(zip(("q", "k", "v", "bias"), (torch.randn(shape) for shape in shapes), strict=True))
    q, k, v, bias = given.values()
    bias[1, 2, 3] = bias[:, :, 2, 1:] = -torch.inf
    (made,) = net.evaluate(**{name: given[name.removesuffix("_1")].numpy() for name in net.input_names})
    found = torch.as_strided(torch.from_numpy(made.reshape(-1)), port.shape, port.strides)
    wanted = F.scaled_dot_product_attention(
        q, k, F.pad(v, (0, 3)), bias if biased else None, is_causal=causal, scale=scale
    )
    close(found, wanted.nan_to_num() + 1)


def test_a_layer_of_attention_in_halves_has_seven_kernels() -> None:
    """Queries, keys and values at once, attention, a product and a norm, and two and a norm."""

    def encoder(x: Any, *weights: Any) -> Any:
        n, length, width = x.shape
        wq, wk, wv, wo, w1, w2 = weights
        q, k, v = (F.linear(x, w).view(n, length, 4, 16).transpose(1, 2) for w in (wq, wk, wv))
        made = flash(q, k, v)[0].transpose(1, 2).reshape(n, length, width)
        x = F.layer_norm(x + F.linear(made, wo), (width,))
        return F.layer_norm(x + F.linear(F.gelu(F.linear(x, w1)), w2), (width,))

    shapes = ((1, 32, 64), *[(64, 64)] * 4, (256, 64), (64, 256))
    with FakeTensorMode():
        inputs = [torch.empty(shape, device="cuda:0", dtype=HALF) for shape in shapes]
        gm = make_fx(encoder, decomposition_table=dict(decompositions()))(*inputs)
    gm.graph.eliminate_dead_code()
    graph = CompiledGraph(gm, "inference", frozenset(range(1, 7)), TorchOptions(target=H200))
    (region,) = graph.regions
    nodes = [node for node in region.graph.graph.nodes if node.op == "placeholder"]
    drawn = {k: torch.randn(tuple(nodes[k].meta["val"].shape)).to(HALF) for k in region.static}
    net = region.network(drawn)
    grouped = net.transform(grouping_for(resolve_target(H200)))
    labels = [op.label.data for op in grouped.module.walk() if isinstance(op, GroupOp)]
    assert len(labels) == 7 and "einsum_softmax_einsum" in labels


def test_without_a_driver_regions_run_in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(index: int) -> Any:
        raise MissingCuda("no GPU here to run on: running on CUDA needs pycuda, which is not installed")

    monkeypatch.setattr(devices, "target_of_device", missing)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    graph = graph_of(small, (2, 3, 8, 8), (4, 3, 3, 3))
    with FakeTensorMode(), pytest.warns(RegionWarning, match="fused_0 runs in PyTorch: no GPU .* needs pycuda"):
        (region,) = graph.regions
        inputs = torch.empty(2, 3, 8, 8, device="cuda"), torch.empty(4, 3, 3, 3, device="cuda")
        assert region(*inputs).shape == (2, 4, 6, 6)


class Recorded(FakeDriver):
    """A driver that runs nothing: it keeps the addresses of each launch."""

    def __init__(self) -> None:
        super().__init__({})
        self.launches: list[tuple[int, ...]] = []

    def launched(self, name: str, grid: Any, block: Any, args: tuple[int, ...], shared_size: int) -> None:
        self.launches.append(args)


class MainMemory(devices.Cuda):
    """A CUDA device whose memory is the CPU's: what runs there is only told."""

    def target(self, asked: str | None) -> str:
        return H200


def test_launches_take_the_memory_of_tensors_and_the_current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    fake, streams, capturing, waits = Recorded(), [3], [False], []
    library = Library(fake)
    stream = SimpleNamespace(synchronize=lambda: waits.append("upload"))
    monkeypatch.setattr(launches, "library", lambda: library)
    allocator = devices._allocator
    monkeypatch.setattr(region_module, "region_device", MainMemory)
    monkeypatch.setattr(devices, "_allocator", lambda kind: allocator("cpu"))
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[-1])
    monkeypatch.setattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: capturing[-1], raising=False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: streams[-1], raising=False)
    recorded: list[Any] = []
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, given: recorded.append(given))
    module = nn.Sequential(nn.Embedding(64, 48), nn.LayerNorm(48), nn.Softmax(-1)).eval()
    watched, tokens = Watched(module), torch.arange(16)
    with installed(fake), torch.no_grad():
        found = watched(tokens)
        (region,) = compiled_regions(watched)
        bound: Any = region._bound
        given = {address for launch in fake.launches for address in launch}
        assert {tokens.data_ptr(), module[0].weight.data_ptr(), found.data_ptr()} <= given
        assert len(fake.launches) == len(library.streams) and set(library.streams) == {3} and waits == ["upload"]
        assert len(recorded) == 1 and not bound.loaded.captured
        first = len(fake.launches)
        streams.append(4)
        capturing.append(True)
        watched(torch.arange(18)[1:17])
        assert region.statistics.copied_inputs == 1, "8 bytes after a multiple of 16"
        assert set(library.streams[first:]) == {4} and len(recorded) == 2 and bound.loaded.captured
        module[0].weight.mul_(2)
        with pytest.warns(RegionWarning, match="fused_0 runs in PyTorch in this CUDA graph"):
            close(watched(tokens), module(tokens))
        capturing.append(False)
        watched(tokens)
        assert region._captured == [bound] and region._bound is not bound
        del watched, region, bound
        torch._dynamo.reset()
        gc.collect()
    assert waits == ["upload"] * 2
