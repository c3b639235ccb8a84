"""The backend of torch.compile on CUDA devices: memory, streams and graphs as PyTorch has them."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch_models import NAMES, model  # noqa: E402
from torch_watched import (  # noqa: E402
    Watched,
    close,
    compiled_regions,
    hold_parameters_written_in_place,
    hold_results_of_no_input,
    hold_returned_views,
    with_gradients,
)

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch.region import RegionWarning  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional


@pytest.fixture(autouse=True)
def full_precision(nothing_compiled: None) -> Iterator[None]:
    """Products of PyTorch's are in full precision, to be compared with."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def on_cuda(name: str) -> Any:
    module, inputs = model(name)
    return module.cuda(), tuple(each.cuda() for each in inputs)


def stack() -> Any:
    """A small network of two regions' worth of kernels, with memory between them."""
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval().cuda()


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
    hold_returned_views("cuda")


@pytest.mark.gpu
def test_results_of_no_input_on_cuda_are_new_in_each_call() -> None:
    hold_results_of_no_input("cuda")


@pytest.mark.gpu
def test_parameters_written_in_place_on_cuda_are_seen() -> None:
    hold_parameters_written_in_place("cuda")


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
    torch.testing.assert_close(found[1], wanted[1], rtol=2e-3, atol=2e-3)
    assert {str(region.device) for region in compiled_regions(watched)} == {"cpu", "cuda:0"}
    reasons = set(lw.torch.explain(function, x, w).stays)
    assert ("lgamma.default", "operator lgamma.default is not supported") in reasons
    assert not [why for _, why in reasons if "float16" in why]


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
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "length, regions, mask",
    [
        (length, regions, mask)
        for mask in ("none", "causal", "padding")
        for length, regions in ((128, 1), (50, 1), (2048, 2))
        if mask != "padding" or length <= 128  # the bound on scores is that of float32
    ],
)
def test_attention_of_halves_on_cuda(length: int, regions: int, mask: str, dtype: Any) -> None:
    """As whichever of its kernels PyTorch takes; of one sample nothing but the first key is left."""
    kept = torch.ones(2, 1, 1, length, dtype=torch.bool, device="cuda")
    kept[1, :, :, 1:] = False

    def function(x: Any, w: Any, kept: Any) -> Any:
        q, k, v = (x @ w).view(2, length, 3, 4, 64).permute(2, 0, 3, 1, 4).unbind(0)
        bias = kept.expand(2, 1, length, length) if mask == "padding" else None
        made = F.scaled_dot_product_attention(q, k, v, bias, is_causal=mask == "causal")
        return torch.relu(made.transpose(1, 2).reshape(2, length, 256) @ w[:, :256])

    x, w = torch.randn(2, length, 256, device="cuda"), torch.randn(256, 768, device="cuda") / 16
    watched = Watched(function)
    with torch.no_grad():
        found = watched(x.to(dtype), w.to(dtype), kept).float()
    rtol = 2e-2 if dtype == torch.bfloat16 else 4e-3
    torch.testing.assert_close(found, function(x, w, kept), rtol=rtol, atol=rtol)
    assert len(compiled_regions(watched)) == regions


@pytest.mark.gpu
def test_autocast_on_cuda() -> None:
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
