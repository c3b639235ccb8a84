"""The backend of torch.compile: regions, what stays between them, explanations, failures, threads and options."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch_models import NAMES, model  # noqa: E402
from torch_watched import Watched, close, compiled_regions  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.backends.targets import resolve_target  # noqa: E402
from loopwright.dialects.target import parse_target  # noqa: E402
from loopwright.frontends.torch import partition  # noqa: E402
from loopwright.frontends.torch.decompositions import decompositions, export_decompositions  # noqa: E402
from loopwright.frontends.torch.discovery import converters  # noqa: E402
from loopwright.frontends.torch.options import TorchOptions  # noqa: E402
from loopwright.frontends.torch.region import RegionWarning  # noqa: E402
from loopwright.frontends.torch.versions import Versions  # noqa: E402
from loopwright.graph.builders import BuildError  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


@pytest.mark.few(3)
@pytest.mark.parametrize("name", NAMES)
def test_model_is_one_region(name: str) -> None:
    module, inputs = model(name)
    watched = Watched(module)
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))
        close(watched(*inputs), module(*inputs))
    (region,) = watched.regions
    assert region.failure is None and region.statistics.compilations == 1
    assert all(name.startswith("view") for name in watched.stays)


def test_backend_is_found_by_its_name() -> None:
    assert "loopwright" in torch._dynamo.list_backends()
    compiled = torch.compile(lambda x: torch.softmax(x * 2, -1), backend="loopwright", options={"versions": 2})
    x = torch.randn(3, 4)
    close(compiled(x), torch.softmax(x * 2, -1))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tuned": 1}, "has no option 'tuned'; it has target, records, tune, freeze, versions, buckets, check"),
        ({"target": "opencl"}, "for targets of kind llvm or cuda, got target 'opencl'"),
        ({"tune": "beside"}, "option tune is seconds or 'background', got 'beside'"),
        ({"tune": -1.0}, "option tune is seconds or 'background', got -1.0"),
        ({"buckets": {0: (8, 1)}}, "option buckets is extents of at least 1 in increasing order"),
        (
            {"records": "missing.jsonl"},
            "option records: there is no file 'missing.jsonl', and without tune none is made",
        ),
        ({"records": "/", "tune": 1.0}, "option records is the path of a file, and '/' is a folder"),
        ({"records": 5, "tune": 1.0}, "option records is the path of a file, got 5"),
        ({"versions": 0}, "option versions is a number of at least 1, got 0"),
    ],
)
def test_wrong_options_are_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TorchOptions.of(options)


def test_unsupported_operators_stay_between_maximal_regions() -> None:
    def function(x: Any, w: Any) -> Any:
        y = torch.relu(x @ w + 1)
        return torch.tanh(torch.lgamma(y + 1) @ w) * 2

    x, w = torch.randn(4, 8), torch.randn(8, 8)
    watched = Watched(function)
    close(watched(x, w), function(x, w))
    assert len(watched.regions) == 2 and watched.stays == ["lgamma"]
    report = lw.torch.explain(function, x, w)
    assert [len(graph.regions) for graph in report.graphs] == [2]
    assert report.flops_share == 1.0
    assert report.stays == {("lgamma.default", "operator lgamma.default is not supported"): 1}
    assert str(report).splitlines() == [
        "1 graph: 7 of 8 operators in 2 regions, 100.0% of the floating-point operations",
        "  stays PyTorch's: 1 x lgamma.default: operator lgamma.default is not supported",
    ]


def test_explanation_counts_what_pytorch_computes() -> None:
    def function(x: Any) -> Any:
        return torch.relu(x @ x + 1), x.half() @ x.half()

    report = lw.torch.explain(function, torch.randn(8, 8))
    assert report.flops_share == 0.5
    assert (
        "mm.default",
        "products of matrices of float16 stay PyTorch's, for want of matrix units that schedules use",
    ) in report.stays


def test_explanation_names_operators_as_they_were_traced() -> None:
    report = lw.torch.explain(lambda x: (x @ x + 1).view(2, -1), torch.randn(8, 8))
    assert report.stays == {("view.default", "a view that PyTorch makes of a result"): 1}


def test_features_of_images_replace_embeddings_in_one_region() -> None:
    """As models of images and text have it; the mask is one value a row, and counted by rows."""

    def function(tokens: Any, table: Any, features: Any) -> Any:
        embedded = torch.nn.functional.embedding(tokens, table) * 2
        return embedded.masked_scatter((tokens == 9).unsqueeze(-1).expand_as(embedded), features.relu()).sin()

    tokens = torch.tensor([[1, 9, 9, 2, 3], [9, 4, 5, 9, 9]])
    table, features = torch.randn(10, 6), torch.randn(1, 5, 6)
    report = lw.torch.explain(function, tokens, table, features)
    assert not report.stays and len(report.graphs[0].regions) == 1
    gm = make_fx(function, decomposition_table=dict(decompositions()))(tokens, table, features)
    assert [node.meta["val"].shape for node in gm.graph.nodes if "cumsum" in str(node.target)] == [(10,)]
    compiled = torch.compile(function, backend="loopwright")
    for given in (tokens, tokens.flip(0), torch.full_like(tokens, 3)):
        close(compiled(given, table, features), function(given, table, features))


def test_explanation_names_graph_breaks() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x) + 1
        torch._dynamo.graph_break()
        return torch.relu(y - 2) * 3

    report = lw.torch.explain(function, torch.randn(3))
    assert len(report.graphs) == 2 and sum(report.breaks.values()) == 1
    assert "graph break: 1 x" in str(report)


def test_explanation_of_what_torch_compile_does_not_take() -> None:
    eager = torch._dynamo.disable(torch.tanh)
    report = lw.torch.explain(lambda x: eager(x), torch.randn(3, 2, 4))
    assert str(report).startswith("torch.compile takes no graph out of the model, which runs in PyTorch")


def test_operators_of_one_form_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To see what can be: another type, another shape, and memory in another order are other forms."""
    seen: list[str] = []
    refusal = partition.refusal
    monkeypatch.setattr(partition, "refusal", lambda node, *others: seen.append(node.name) or refusal(node, *others))

    def function(x: Any) -> Any:
        y = torch.relu(torch.relu(torch.relu(x) * 2) * 2) * 3
        return torch.relu(y.t()) + torch.relu(y[1:]).sum() + torch.relu(y.double()).sum()

    x = torch.randn(4, 4)
    report = lw.torch.explain(function, x)
    assert not report.stays
    assert sum(name.startswith("relu") for name in seen) == 4
    assert sum(name.startswith("mul") for name in seen) == 2
    close(torch.compile(function, backend="loopwright")(x), function(x))


def test_composite_operators_are_taken_apart_by_tracing() -> None:
    """PyTorch's table of their decompositions, which takes long to fill, changes nothing."""
    module, inputs = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (torch.randn(2, 5, 8),)

    def function(x: Any) -> Any:
        images = nn.functional.interpolate(module(x)[None], scale_factor=2, mode="bilinear")
        return nn.functional.pad(nn.functional.normalize(images, dim=-1), (1, 1, 1, 1), mode="reflect").flatten(1)

    operators = []
    for table in (decompositions(), export_decompositions()):
        with torch.no_grad():
            gm = make_fx(function, decomposition_table=dict(table))(*inputs)
        operators.append([str(node.target) for node in gm.graph.nodes])
    assert len(decompositions()) < len(export_decompositions()) and operators[0] == operators[1]


def test_random_operators_are_pytorchs() -> None:
    function = lambda x: nn.functional.dropout(torch.relu(x) + 1, 0.5) * 2  # noqa: E731
    x = torch.randn(100)
    watched = Watched(function)
    torch.manual_seed(3)
    found = watched(x)
    assert 20 < (found == 0).sum() < 80
    assert "rand" in " ".join(watched.stays) or "dropout" in " ".join(watched.stays)


def test_tensors_of_other_devices_stay_pytorchs() -> None:
    def function(x: Any) -> Any:
        return torch.relu(x.to("meta") * 2) + torch.arange(4, device="meta")

    report = lw.torch.explain(function, torch.ones(3, 4))
    assert report.graphs[0].regions == ()
    assert {why for _, why in report.stays} == {"tensors on meta stay PyTorch's"}


def test_shapes_have_a_version_each_up_to_a_bound() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU()).eval()
    watched = Watched(module, dynamic=True, versions=2)
    with torch.no_grad():
        for rows in (2, 3, 4, 5, 3):
            x = torch.randn(rows, 6)
            close(watched(x), module(x))
    assert len(watched.graphs) == 2


@pytest.mark.parametrize("buckets", [{}, {0: (8, 16)}])
def test_shapes_beyond_the_bound_are_not_traced(
    buckets: dict[int, tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    traces: list[None] = []
    traced = Versions._traced

    def counted(*given: Any) -> Any:
        traces.append(None)
        return traced(*given)

    monkeypatch.setattr(Versions, "_traced", counted)
    watched = Watched(lambda x: torch.softmax(x * 2, 0) + 1, dynamic=True, versions=2, buckets=buckets)
    with torch.no_grad():
        for rows in (2, 3, 4, 5, 4, 5):
            x = torch.randn(rows, 6)
            close(watched(x), torch.softmax(x * 2, 0) + 1)
        before = len(traces)
        for rows in (4, 5, 9):
            watched(torch.randn(rows, 6))
    assert len(watched.graphs) == 2 and len(traces) == before


def test_exceptions_of_a_model_pass_through() -> None:
    def function(x: Any) -> Any:
        if x.shape[0] > 2:
            raise KeyError("too long")
        return x.relu() + 1

    watched = Watched(function)
    with pytest.raises(KeyError, match="too long"):
        watched(torch.ones(3))
    close(watched(torch.ones(2)), torch.full((2,), 2.0))


def test_threads_share_a_compiled_model() -> None:
    module, inputs = model("mlp")
    watched = Watched(module)
    with torch.no_grad():
        wanted = watched(*inputs)

    def call(_: int) -> Any:
        with torch.no_grad():
            return watched(*inputs)

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(call, range(50)):
            close(found, wanted)
    bound = watched.regions[0]._bound
    assert bound is not None and len(bound.frames) <= 3, "memory for each thread that ran at once"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (BuildError("kernel k does not compile: no"), "kernel k does not compile: no"),
        (KeyError("k"), "a bug of loopwright, KeyError: 'k'"),
    ],
)
def test_region_that_does_not_compile_runs_in_pytorch(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, own_cache: Any
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("loopwright.graph.compiler.compile", fail)
    module, inputs = model("mlp")
    with torch.no_grad(), pytest.warns(RegionWarning, match=f"fused_0 runs in PyTorch: {sentence}"):
        watched = Watched(module)
        close(watched(*inputs), module(*inputs))
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))


def test_operators_whose_converter_has_a_bug_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(node: Any) -> Any:
        raise IndexError("no such axis")

    monkeypatch.setitem(converters(), "tanh.default", fail)
    why = "operator tanh.default is not converted: a bug of loopwright, IndexError: no such axis"
    report = lw.torch.explain(lambda x: torch.tanh(x * 2 + 1), torch.randn(3))
    assert report.stays == {("tanh.default", why): 1}


def test_checked_kernels() -> None:
    module, inputs = model("mlp")
    with torch.no_grad():
        close(Watched(module, check=True)(*inputs), module(*inputs))


@pytest.mark.slow
def test_tuning_before_the_first_call(tmp_path: Any, quick_measuring: None) -> None:
    module, inputs = model("mlp")
    records = tmp_path / "records.jsonl"
    watched = Watched(module, tune=5.0, records=records)
    with torch.no_grad():
        close(watched(*inputs), module(*inputs))
    compiled = watched.regions[0].compiled
    assert compiled is not None and any(kernel.tuned for kernel in compiled.kernels)


def test_optimized_module() -> None:
    module, inputs = model("encoder")
    optimized = lw.torch.optimize(module, inputs)
    with torch.no_grad():
        close(optimized(*inputs), module(*inputs))
        module.layers[0].linear1.weight.mul_(2)
        close(optimized(*inputs), module(*inputs))
    with pytest.raises(ValueError, match=r"compiled for torch.float32\[2, 6, 32\], got torch.float32\[1, 6, 32\]"):
        optimized(inputs[0][:1])


def test_optimized_module_has_the_structure_of_results() -> None:
    class Named(nn.Module):
        def forward(self, x: Any, *, scale: Any) -> Any:
            return {"sum": x + scale, "parts": [x * scale, torch.relu(x)]}

    x, scale = torch.randn(3, 4), torch.randn(4)
    optimized = lw.torch.optimize(Named(), (x,), {"scale": scale})
    close(optimized(x, scale=scale), Named()(x, scale=scale))


def test_optimized_module_must_keep_no_state() -> None:
    with pytest.raises(ValueError, match=r"the module writes .*running_mean.*: torch.compile takes such modules"):
        lw.torch.optimize(nn.BatchNorm1d(3).train(), (torch.randn(4, 3),))


def test_the_front_end_loads_without_pytorch() -> None:
    program = "import sys, loopwright as lw; lw.torch.optimize; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "False"


def test_the_front_end_loads_without_the_compiler() -> None:
    """A process whose networks are kept never needs it, and it takes 1.1 s of CPU to load."""
    heavy = ("loopwright.te", "loopwright.topi", "loopwright.graph.network", "loopwright.passes.lower")
    program = (
        f"import sys, loopwright as lw; lw.torch.optimize; print(*(name for name in sys.modules if name in {heavy}))"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not run.stdout.strip()


def test_kernels_take_no_more_threads_than_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread for each of several processes, a second one of ours waits for a core at each kernel's end."""
    four, own = resolve_target("llvm cores=4"), resolve_target("llvm").cores
    monkeypatch.setattr("loopwright.frontends.torch.devices.resolve_target", lambda _: four)
    threads, (module, inputs) = torch.get_num_threads(), model("mlp")
    try:
        for asked, target, cores in ((1, None, 1), (3, None, 3), (8, None, own), (1, "llvm cores=2", 2)):
            torch.set_num_threads(asked)
            torch._dynamo.reset()
            watched = Watched(module, target=target)
            with torch.no_grad():
                close(watched(*inputs), module(*inputs))
            (region,) = compiled_regions(watched)
            assert region.compiled is not None
            assert parse_target(region.compiled.package.plan.target).cores == cores
    finally:
        torch.set_num_threads(threads)


def test_kernels_run_on_the_threads_of_pytorch() -> None:
    """There are no more threads than PyTorch has, and none of them is kept to a CPU."""
    program = """
import glob, torch, loopwright as lw
from loopwright.backends.llvm.runtime import openmp_of_torch

torch.set_num_threads(2)
x, w = torch.randn(1, 64, 64, 64), torch.randn(64, 64, 3, 3)
right = torch.nn.functional.conv2d(x, w, padding=1)
before = len(glob.glob("/proc/self/task/*"))
net = lw.Network()
net.output(net.conv2d(net.input("x", (1, 64, 64, 64)), net.input("w", (64, 64, 3, 3)), padding=1))
run = lw.compile(net, "llvm cores=2").executor()
print(openmp_of_torch() is None or len(glob.glob("/proc/self/task/*")) == before)
for _ in range(3):
    (found,) = run(x.numpy(), w.numpy())
    print(torch.allclose(torch.from_numpy(found), torch.nn.functional.conv2d(x, w, padding=1), atol=1e-3))
print(openmp_of_torch() is None or len(glob.glob("/proc/self/task/*")) == before)
print(len({l for p in glob.glob("/proc/self/task/*/status") for l in open(p) if l.startswith("Cpus_allowed:")}))
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split() == [*["True"] * 5, "1"]


def test_checks_of_values_are_said_to_be_pytorchs() -> None:
    def counted(x: Any) -> Any:
        return nn.functional.one_hot(x, 5).float().mean(0) * 2

    (name, why) = next(iter(lw.torch.explain(counted, torch.tensor([1, 4, 2])).stays))
    assert name == "_assert_async.msg" and why == "a check of values, which PyTorch makes"
