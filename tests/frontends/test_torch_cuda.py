"""The backend of torch.compile on CUDA devices: memory, streams and graphs as PyTorch has them.

What needs no device: which operators are taken, and what is compiled for them.
"""

import gc
import threading
import warnings
from collections.abc import Iterator
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
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch_models import NAMES, model  # noqa: E402
from torch_watched import Watched, close, with_gradients  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.backends.cuda import launches  # noqa: E402
from loopwright.backends.cuda.driver import MissingCuda  # noqa: E402
from loopwright.frontends.torch import devices  # noqa: E402
from loopwright.frontends.torch import region as region_module  # noqa: E402
from loopwright.frontends.torch.decompositions import decompositions  # noqa: E402
from loopwright.frontends.torch.graph import CompiledGraph  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.frontends.torch.region import Region, RegionWarning  # noqa: E402
from loopwright.graph.layout import in_layout  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional
H200 = "cuda model=h200"
to_copy: Any = torch.ops.aten._to_copy.default


@pytest.fixture(autouse=True)
def full_precision(nothing_compiled: None) -> Iterator[None]:
    """Products of PyTorch's are in full precision, to be compared with."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


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
    net, given, made = region.network({})
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


def test_products_of_halves_stay_pytorchs_on_cuda_too() -> None:
    def function(x: Any) -> Any:
        half = to_copy(x * 2 + 1, dtype=torch.float16)
        return torch.mm(half, half)

    graph = graph_of(function, (8, 8))
    assert ("mm", "products of matrices of float16 stay PyTorch's") in stays(graph)


efficient_attention: Any = torch.ops.aten._scaled_dot_product_efficient_attention.default


def attention_layer(log_sumexp: bool = False, **options: Any) -> Any:
    """A layer of attention, as PyTorch brings it to its operators on CUDA."""

    def layer(x: Any, w: Any) -> Any:
        n, length, width = x.shape
        q, k, v = (x @ w).view(n, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4).unbind(0)
        made = efficient_attention(q, k, v, None, log_sumexp, **options)[0]
        return torch.relu(made.transpose(1, 2).reshape(n, length, width) + x)

    return layer


def test_short_attention_on_cuda_is_one_region() -> None:
    graph = graph_of(attention_layer(), (2, 16, 64), (64, 192))
    assert len(graph.regions) == 1 and not graph.stays
    for length, options in ((1024, {}), (16, {"log_sumexp": True}), (16, {"dropout_p": 0.5})):
        graph = graph_of(attention_layer(**options), (2, length, 64), (64, 192))
        assert str(efficient_attention) in {str(node.target) for node in graph.module.graph.nodes}
        assert len(graph.regions) == 2, "before it and after it"


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}, {"bias": True}])
def test_attention_taken_apart_is_pytorchs(options: dict[str, Any]) -> None:
    function = decompositions()[efficient_attention]
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 9, 8), torch.randn(2, 4, 9, 8)
    bias = torch.randn(2, 1, 6, 9) if options.pop("bias", False) else None
    found, *others = function(q, k, v, bias, False, **options)
    close(found, F.scaled_dot_product_attention(q, k, v, bias, **options))
    with FakeTensorMode():
        like = [torch.empty(each.shape, device="cuda") for each in (q, k, v)]
        wanted = efficient_attention(*like, None, False)
    assert [each.shape for each in (found, *others)] == [each.shape for each in wanted]
    assert found.stride() == wanted[0].stride()


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


# -- on a device ------------------------------------------------------------------------------------------------------


def on_cuda(name: str) -> Any:
    module, inputs = model(name)
    return module.cuda(), tuple(each.cuda() for each in inputs)


def stack() -> Any:
    """A small network of two regions' worth of kernels, with memory between them."""
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval().cuda()


def compiled_regions(watched: Watched) -> list[Region]:
    """The regions, all of which run in our kernels."""
    assert watched.regions and [region.failure for region in watched.regions] == [None] * len(watched.regions)
    assert all(region.compiled is not None for region in watched.regions)
    return watched.regions


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_model_on_cuda(name: str) -> None:
    module, inputs = on_cuda(name)
    watched = Watched(module)
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))
        close(watched(*inputs), module(*inputs))
    for region in compiled_regions(watched):
        assert region.device == torch.device("cuda:0")


@pytest.mark.gpu
def test_embedding_and_layer_norm_on_cuda() -> None:
    module = nn.Sequential(nn.Embedding(64, 48), nn.LayerNorm(48), nn.Linear(48, 8)).eval().cuda()
    watched, tokens = Watched(module), torch.arange(40, device="cuda").view(4, 10)
    with torch.no_grad():
        close(watched(tokens), module(tokens))
    compiled_regions(watched)


@pytest.mark.gpu
def test_weights_that_are_not_packed_are_pytorchs() -> None:
    module = nn.Sequential(nn.Embedding(64, 48), nn.LayerNorm(48)).eval().cuda()
    watched = Watched(module)
    with torch.no_grad():
        watched(torch.arange(5, device="cuda"))
    (region,) = compiled_regions(watched)
    bound: Any = region._bound
    assert module[0].weight.data_ptr() in bound.loaded.constants.addresses
    assert bound.loaded.constants.own.nbytes < 64 * 48


@pytest.mark.gpu
def test_kernels_run_in_the_current_stream() -> None:
    """The input is written late, by work that the stream has yet to do."""
    module, x = stack(), torch.zeros(2, 3, 16, 16, device="cuda")
    watched, late = Watched(module), torch.randn(2, 3, 16, 16, device="cuda")
    with torch.no_grad():
        watched(x)
        wanted = module(late)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            x.copy_(late)
            found = watched(x)
            assert not side.query(), "the call waited for the stream"
        side.synchronize()
    close(found, wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["resnet", "mlp", "encoder"])
def test_cuda_graph_is_captured_and_replayed(name: str) -> None:
    module, (x,) = on_cuda(name)
    watched = Watched(module)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                watched(x)
        torch.cuda.current_stream().wait_stream(side)
        compiled_regions(watched)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = watched(x)
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            graph.replay()
            close(found, module(x))
        close(watched(x), module(x))


@pytest.mark.gpu
def test_parameters_written_before_a_capture_are_pytorchs_in_it() -> None:
    """Nothing can be compiled or loaded in a capture; a call after it does that."""
    module, x = stack(), torch.randn(2, 3, 16, 16, device="cuda")
    watched = Watched(module)
    with torch.no_grad():
        watched(x)
        module[0].weight.mul_(1.5)
        module(x)
        graph = torch.cuda.CUDAGraph()
        with pytest.warns(RegionWarning, match="runs in PyTorch in this CUDA graph"), torch.cuda.graph(graph):
            found = watched(x)
        graph.replay()
        close(found, module(x))
        close(watched(x), module(x))
    (region,) = compiled_regions(watched)
    assert region.statistics.compilations == 2


@pytest.mark.gpu
def test_a_captured_graph_keeps_the_constants_that_it_reads() -> None:
    module, x = stack(), torch.randn(2, 3, 16, 16, device="cuda")
    watched = Watched(module)
    with torch.no_grad():
        watched(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = watched(x)
        before = module(x)
        module[1].running_mean.add_(1.0)
        close(watched(x), module(x))
        gc.collect()
        filled = [torch.full((1 << 16,), 7.0, device="cuda") for _ in range(64)]
        graph.replay()
        close(found, before)
    del filled


@pytest.mark.gpu
@pytest.mark.parametrize("layout", ["channels_last", "permuted", "transposed", "offset"])
def test_strided_inputs_on_cuda_are_read_where_they_are(layout: str) -> None:
    x = {
        "channels_last": lambda: torch.randn(2, 3, 8, 8, device="cuda").contiguous(memory_format=torch.channels_last),
        "permuted": lambda: torch.randn(2, 8, 8, 3, device="cuda").permute(0, 3, 1, 2),
        "transposed": lambda: torch.randn(2, 3, 8, 8, device="cuda").transpose(2, 3),
        "offset": lambda: torch.randn(2, 2, 3, 8, 8, device="cuda")[1],
    }[layout]()
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval().cuda()
    watched = Watched(module)
    with torch.no_grad():
        found, wanted = watched(x), module(x)
    close(found, wanted)
    assert found.stride() == wanted.stride()
    assert compiled_regions(watched)[0].statistics.copied_inputs == 0


@pytest.mark.gpu
def test_inputs_with_gaps_or_at_odd_addresses_are_copied() -> None:
    wide, long = torch.randn(4, 20, device="cuda"), torch.randn(41, device="cuda")
    function = lambda x: torch.softmax(x * 2, -1)  # noqa: E731
    watched = Watched(function)
    for number, x in enumerate((wide[:, ::2], long[1:].view(4, 10))):
        close(watched(x), function(x))
        assert sum(region.statistics.copied_inputs for region in compiled_regions(watched)) == number + 1


@pytest.mark.gpu
def test_returned_views_share_memory_on_cuda() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x) * 2
        wide = y.view(2, 2, 3)
        return y, wide, wide.sum(0)

    watched = Watched(function)
    y, wide, total = watched(torch.ones(4, 3, device="cuda"))
    assert wide.data_ptr() == y.data_ptr() and wide.shape == (2, 2, 3)
    y.zero_()
    assert not wide.any() and (total == 4).all()


@pytest.mark.gpu
def test_results_of_no_input_on_cuda_are_new_in_each_call() -> None:
    module = nn.Linear(3, 4).eval().cuda()
    watched = Watched(lambda: (module.weight * 2 + 1, torch.arange(3, device="cuda") * 2 + 1))
    with torch.no_grad():
        for _ in range(2):
            weight, places = watched()
            close(weight, module.weight * 2 + 1)
            close(places, torch.tensor([1, 3, 5], device="cuda"))
            weight.zero_()
            places.zero_()


@pytest.mark.gpu
def test_parameters_written_in_place_on_cuda_are_seen() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval().cuda()
    watched, x = Watched(module), torch.randn(1, 3, 6, 6, device="cuda")
    with torch.no_grad():
        for _ in range(5):
            close(watched(x), module(x))
            module[0].weight.mul_(1.5)
            module[1].running_mean.add_(0.25)
    (region,) = compiled_regions(watched)
    assert region.statistics.compilations == 4, "after two updates, parameters are inputs"


@pytest.mark.gpu
def test_parameters_that_are_no_constants_on_cuda() -> None:
    module, x = stack(), torch.randn(2, 3, 16, 16, device="cuda")
    watched = Watched(module, freeze=False)
    with torch.no_grad():
        close(watched(x), module(x))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = watched(x)
        module[0].weight.mul_(2)
        graph.replay()
        close(found, module(x))
    assert compiled_regions(watched)[0].statistics.compilations == 1


@pytest.mark.gpu
def test_calls_leave_no_memory_behind() -> None:
    module, x = stack(), torch.randn(8, 3, 32, 32, device="cuda")
    watched = Watched(module)
    with torch.no_grad():
        for _ in range(3):
            watched(x)
        torch.cuda.synchronize()
        allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        for _ in range(200):
            watched(x)
        torch.cuda.synchronize()
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (allocated, reserved)


@pytest.mark.gpu
def test_calls_do_not_wait_for_the_device() -> None:
    module, x = stack(), torch.randn(2, 3, 16, 16, device="cuda")
    watched = Watched(module)
    with torch.no_grad():
        wanted = watched(x)
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = watched(x)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    close(found, wanted)


@pytest.mark.gpu
def test_streams_in_turn_do_not_share_memory_in_use() -> None:
    module = stack()
    watched, streams = Watched(module), [torch.cuda.Stream() for _ in range(3)]
    inputs = [torch.randn(8, 3, 32, 32, device="cuda") for _ in streams]
    with torch.no_grad():
        wanted = [module(x) for x in inputs]
        watched(inputs[0])
        torch.cuda.synchronize()
        for _ in range(30):
            found = []
            for stream, x in zip(streams, inputs, strict=True):
                with torch.cuda.stream(stream):
                    found.append(watched(x))
            torch.cuda.synchronize()
            close(found, wanted)


@pytest.mark.gpu
def test_threads_on_streams_of_their_own() -> None:
    module, x = stack(), torch.randn(2, 3, 16, 16, device="cuda")
    watched = Watched(module)
    with torch.no_grad():
        watched(x)
    torch.cuda.synchronize()
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            generator = torch.Generator("cuda").manual_seed(seed)
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(50):
                    mine = torch.randn(2, 3, 16, 16, device="cuda", generator=generator)
                    close(watched(mine), module(mine))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    bound: Any = compiled_regions(watched)[0]._bound
    assert len(bound.frames) <= 3


@pytest.mark.gpu
def test_parts_that_stay_pytorchs_on_cuda() -> None:
    def function(x: Any, w: Any) -> Any:
        y = torch.relu(x @ w + 1)
        there = torch.softmax(y.cpu() * 2, -1)
        return torch.tanh((y + 1).lgamma() @ w) * there.cuda(), x.half() @ w.half()

    x, w = torch.randn(4, 8, device="cuda"), torch.randn(8, 8, device="cuda")
    watched = Watched(function)
    found, wanted = watched(x, w), function(x, w)
    close(found[0], wanted[0])
    torch.testing.assert_close(found[1], wanted[1])
    assert {str(region.device) for region in compiled_regions(watched)} == {"cpu", "cuda:0"}
    reasons = set(lw.torch.explain(function, x, w).stays)
    assert ("lgamma.default", "operator lgamma.default is not supported") in reasons
    assert ("mm.default", "products of matrices of float16 stay PyTorch's") in reasons


@pytest.mark.gpu
@pytest.mark.parametrize("length, regions", [(32, 1), (600, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_on_cuda(length: int, regions: int, causal: bool) -> None:
    def function(x: Any, w: Any) -> Any:
        q, k, v = (x @ w).view(2, length, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        made = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return torch.relu(made.transpose(1, 2).reshape(2, length, 64) @ w[:, :64])

    x, w = torch.randn(2, length, 64, device="cuda"), torch.randn(64, 192, device="cuda") / 8
    watched = Watched(function)
    with torch.no_grad(), sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        close(watched(x, w), function(x, w))
        close(watched(x, w), function(x, w))
    assert len(compiled_regions(watched)) == regions


@pytest.mark.gpu
def test_autocast_on_cuda_falls_back() -> None:
    module, inputs = on_cuda("mlp")
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        found, wanted = Watched(module)(*inputs), module(*inputs)
    torch.testing.assert_close(found, wanted, rtol=5e-2, atol=5e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["mlp", "gpt"])
def test_gradients_on_cuda_are_those_of_pytorch(name: str) -> None:
    module, inputs = on_cuda(name)
    compiled_regions(with_gradients(module, inputs))


@pytest.mark.gpu
def test_optimized_module_on_cuda() -> None:
    module, inputs = on_cuda("resnet")
    optimized = lw.torch.optimize(module, inputs)
    with torch.no_grad():
        close(optimized(*inputs), module(*inputs))
    with pytest.raises(ValueError, match=r"compiled for torch.float32\[2, 3, 32, 32\] on cuda:0, got torch.float32"):
        optimized(inputs[0].cpu())


@pytest.mark.gpu
def test_network_of_a_program_on_cuda() -> None:
    module, inputs = on_cuda("mlp")
    net = lw.from_exported(torch.export.export(module, inputs))
    with torch.no_grad():
        wanted = module(*inputs)
    (found,) = net.evaluate(**dict(zip(net.input_names, (each.cpu().numpy() for each in inputs), strict=True)))
    close(torch.from_numpy(found), wanted.cpu())


@pytest.mark.gpu
def test_inference_mode_and_shapes_on_cuda() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8)).eval().cuda()
    watched = Watched(module, dynamic=True, versions=2)
    with torch.inference_mode():
        for rows in (2, 3, 4, 2):
            x = torch.randn(rows, 6, device="cuda")
            close(watched(x), module(x))


@pytest.mark.gpu
def test_the_second_device() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    module, (x,) = model("mlp")
    module, x = module.to("cuda:1"), x.to("cuda:1")
    watched = Watched(module)
    with torch.no_grad():
        close(watched(x), module(x))
        close(watched(x), module(x))
    assert torch.cuda.current_device() == 0
    assert {str(region.device) for region in compiled_regions(watched)} == {"cuda:1"}
