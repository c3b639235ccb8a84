"""Open extents that are padded to a few: where results are shown to be the same, and refused where they may not be."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch_models import model  # noqa: E402
from torch_watched import Watched, close  # noqa: E402

import loopwright as lw  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn
F: Any = torch.nn.functional


def paddings(watched: Watched) -> list[str]:
    return [graph.padding for graph in watched.graphs]


def test_batches_of_a_bucket_share_a_version() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    watched = Watched(module, dynamic=True, buckets={0: (4, 8)})
    with torch.no_grad():
        for rows in (3, 2, 4, 5, 8, 9, 7):
            x = torch.randn(rows, 6)
            found, wanted = watched(x), module(x)
            close(found, wanted)
            assert found.stride() == wanted.stride() and found.shape == wanted.shape
    assert paddings(watched) == ["padded: [3, 6] to [4, 6]", "padded: [5, 6] to [8, 6]", ""], "9 is beyond all buckets"


def batched(x: Any) -> Any:
    """A model whose samples are computed one by one, of (N, 3, 8, 8)."""
    return torch.softmax(F.max_pool2d(F.conv2d(x, torch.ones(4, 3, 3, 3) / 27), 2).flatten(1), -1)


def tokens(x: Any) -> Any:
    """Layers by place, of (N, L, 8): what is done to each place knows nothing of others."""
    return F.layer_norm(F.gelu(x) / 8, (8,)).transpose(0, 1)


HARMLESS = {
    "batch": (batched, (5, 3, 8, 8), {0: (6,)}, [6, 3, 8, 8]),
    "places": (tokens, (2, 5, 8), {1: (8,)}, [2, 8, 8]),
    "both": (tokens, (3, 5, 8), {0: (4,), 1: (8,)}, [4, 8, 8]),
    "numbers": (lambda x: (torch.relu(x) + 1, x.shape[0] + 1), (3, 4), {0: (4,)}, [4, 4]),
    "places_of_input": (lambda x: torch.arange(x.shape[0])[:, None] * x + 1, (3, 4), {0: (4,)}, [4, 4]),
    "merged": (lambda x: (x.reshape(-1, 4) @ torch.ones(4, 2)).reshape(-1, 5, 2) + 1, (3, 5, 4), {0: (8,)}, [8, 5, 4]),
}
REFUSED = {
    "sum": (lambda x: torch.relu(x).sum(0), {0: (8,)}, "operator sum of"),
    "mean": (lambda x: torch.relu(x).mean(0), {0: (8,)}, "operator mean of"),
    "softmax": (lambda x: torch.softmax(x * 2, 0), {0: (8,)}, "depends on the extent"),
    "flip": (lambda x: torch.flip(x, (0,)) * 2 + 1, {0: (8,)}, "depends on the extent"),
    "share": (lambda x: torch.relu(x) / x.shape[0], {0: (8,)}, "has other values"),
    "product": (lambda x: torch.relu(x).T @ x, {0: (8,)}, "depends on the extent"),
    "joined": (lambda x: torch.cat([x, x * 2]) + 1, {0: (8,)}, "depends on the extent"),
    "last": (lambda x: torch.relu(x)[-1:] * 2, {0: (8,)}, "depends on the extent"),
    "inner": (lambda x: torch.relu(x).reshape(-1) + 1, {1: (8,)}, "depends on the extent"),
    "neighbours": (lambda x: F.avg_pool1d(x[None], 3, 1, 1) + 1, {1: (8,)}, "depends on the extent"),
    "unknown": (lambda x: torch.lgamma(torch.relu(x) + 1) * 2, {0: (8,)}, "operator lgamma.default is not supported"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_padding_that_changes_nothing_is_done(name: str) -> None:
    function, shape, buckets, wide = HARMLESS[name]
    x = torch.randn(shape)
    watched = Watched(function, dynamic=True, buckets=buckets)
    for _ in range(2):
        found, wanted = watched(x), function(x)
        close(found, wanted)
    if torch.is_tensor(found):
        assert found.stride() == wanted.stride()
    assert paddings(watched) == [f"padded: {list(shape)} to {wide}"]


@pytest.mark.parametrize("name", REFUSED)
def test_padding_that_may_change_something_is_refused(name: str) -> None:
    function, buckets, why = REFUSED[name]
    x = torch.randn(5, 6)
    watched = Watched(function, dynamic=True, buckets=buckets)
    close(watched(x), function(x))
    (padding,) = paddings(watched)
    assert padding.startswith("not padded: ") and why in padding


def test_refusals_are_explained() -> None:
    report = lw.torch.explain(lambda x: torch.relu(x).sum(0), torch.randn(5, 6), options={"buckets": {0: (8,)}})
    assert "  not padded: operator sum of sum depends on the extent" in str(report).splitlines()
    report = lw.torch.explain(lambda x: torch.relu(x) * 2, torch.randn(5, 6), options={"buckets": {0: (8,)}})
    assert "  padded: [5, 6] to [8, 6]" in str(report).splitlines()


def test_padding_repeats_what_occurs() -> None:
    """Rows of zeros would divide by zero, and are no place of an embedding's table that begins elsewhere."""

    def function(x: Any, y: Any) -> Any:
        return (x // y).to(torch.float32) * 2

    x, y = torch.arange(10, 15), torch.arange(1, 6)
    watched = Watched(function, dynamic=True, buckets={0: (8,)})
    close(watched(x, y), function(x, y))
    assert paddings(watched) == ["padded: [5] to [8]"]


def test_a_transformer_is_padded_by_sample_but_not_by_length() -> None:
    module, _ = model("gpt")
    watched = Watched(module, dynamic=True, buckets={0: (4,)})
    tokens = torch.randint(0, 50, (3, 7))
    with torch.no_grad():
        close(watched(tokens), module(tokens))
        assert paddings(watched) == ["padded: [3, 7] to [4, 7]"]
        torch._dynamo.reset()
        watched = Watched(module, dynamic=True, buckets={1: (8,)})
        close(watched(tokens), module(tokens))
    assert paddings(watched)[0].startswith("not padded: ")


def test_gradients_of_padded_graphs_are_those_of_pytorch() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    watched, x = Watched(module, dynamic=True, buckets={0: (8,)}), torch.randn(5, 6)

    def gradients(call: Any) -> list[Any]:
        module.zero_grad()
        call(x).square().sum().backward()
        return [parameter.grad.clone() for parameter in module.parameters()]

    for found, wanted in zip(gradients(watched), gradients(module), strict=True):
        close(found, wanted)


def test_versions_are_counted_by_bucket() -> None:
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU()).eval()
    watched = Watched(module, dynamic=True, versions=1, buckets={0: (8,)})
    with torch.no_grad():
        for rows in (2, 3, 8, 9, 10):
            x = torch.randn(rows, 6)
            close(watched(x), module(x))
    assert len(watched.graphs) == 1
