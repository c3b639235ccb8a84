"""Inputs that functions write under torch.compile: in place where only slices are new, by a copy otherwise."""

import random
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch_watched import Watched, close, compiled_regions  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright.frontends.torch import written_inputs  # noqa: E402
from loopwright.frontends.torch.fx import name_of  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_compiled")
nn: Any = torch.nn


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have inputs of all sizes written in place."""
    monkeypatch.setattr(written_inputs, "LEAST_BYTES", 0)


def cache() -> Any:
    return torch.arange(64.0).reshape(1, 2, 8, 4)


def arguments(call: int) -> tuple[Any, Any, Any]:
    """A cache, a row of it, and the row's place."""
    return cache() + call, torch.full((1, 2, 1, 4), 0.5) - call, torch.tensor([(call + 3) % 8])


def writers(watched: Watched) -> list[str]:
    """Names of the calls that write inputs in the one graph of a function, in order."""
    (graph,) = watched.graphs
    names = [name_of(node) for node in graph.module.graph.nodes if node.op == "call_function"]
    return [name for name in names if name.startswith(("write_", "copy_"))]


def held(function: Any, given: Callable[[int], tuple[Any, ...]] = arguments) -> Watched:
    """Hold results and inputs to PyTorch's in three calls, and which of the inputs are returned."""
    watched = Watched(function)
    for call in range(3):
        ours, theirs = given(call), given(call)
        found, wanted = watched(*ours), function(*theirs)
        close(found, wanted)
        for one, other in zip(ours, theirs, strict=True):
            close(one, other)
        assert [found is each for each in ours] == [wanted is each for each in theirs]
    return watched


def by_index_copy(c: Any, k: Any, p: Any) -> Any:
    c.index_copy_(2, p, k)
    return (c * 2).sum(-1)


def by_index(c: Any, k: Any, p: Any) -> Any:
    c[:, :, p] = k * 2 + 1
    return (c * 2).sum(-1)


def by_slice(c: Any, k: Any, p: Any) -> Any:
    c[:, :, 3:4] = k * 2 + 1
    return (c * 2).sum(-1)


def by_steps(c: Any, k: Any, p: Any) -> Any:
    c[:, :, 1::2] = k
    return (c * 2).sum(-1)


def by_selection(c: Any, k: Any, p: Any) -> Any:
    c[0, :, -5, 1:] = 7.0
    c[:, :, 2] = k[:, :, 0]
    return (c * 2).sum(-1)


def at_places_of_a_slice(c: Any, k: Any, p: Any) -> Any:
    c[:1][:, 1:, p] = k[:, 1:]
    return (c * 2).sum(-1)


def added(c: Any, k: Any, p: Any) -> Any:
    c[:, :, p] = 0.0
    c.index_add_(2, p, k)
    return (c * 2).sum(-1)


def added_to_a_slice(c: Any, k: Any, p: Any) -> Any:
    c[:, 1:].index_add_(2, p, k[:, 1:])
    return (c * 2).sum(-1)


def of_another_type(c: Any, k: Any, p: Any) -> Any:
    c[:, :, 1:2] = (k * 10).to(torch.float64)
    return c * 2


def of_what_was_there(c: Any, k: Any, p: Any) -> Any:
    mean = (c * 2).mean(2, keepdim=True)
    c.index_copy_(2, p, k + mean)
    return (c * 3).sum(-1)


def moved_on(c: Any, k: Any, p: Any) -> Any:
    c[:, :, :-1] = c[:, :, 1:].clone()
    c[:, :, -1:] = k
    return (c * 2).sum(-1)


def read_between(c: Any, k: Any, p: Any) -> Any:
    c[:, :, 1:2] = k * 2
    total = (c * 2).sum(2, keepdim=True)
    c[:, :, 2:3] = total
    return c * 1 + total


def returned(c: Any, k: Any, p: Any) -> Any:
    c.index_copy_(2, p, k)
    return c


@pytest.mark.parametrize(
    "function",
    [
        by_index_copy,
        by_index,
        by_slice,
        by_steps,
        by_selection,
        at_places_of_a_slice,
        added,
        added_to_a_slice,
        of_another_type,
        of_what_was_there,
        moved_on,
        read_between,
        returned,
    ],
)
def test_slices_are_written_in_place(function: Any) -> None:
    assert "copy_.default" not in writers(held(function))


def old_returned(c: Any, k: Any, p: Any) -> Any:
    old = c.clone()
    c.index_copy_(2, p, k)
    return old


def old_read(c: Any, k: Any, p: Any) -> Any:
    old = (c * 2).sum(-1) + 1
    c.index_copy_(2, p, k)
    return old, (c * 3).sum(-1)


def new_returned(c: Any, k: Any, p: Any) -> Any:
    new = c.index_copy(2, p, k)
    c.copy_(new)
    return new


def view_returned(c: Any, k: Any, p: Any) -> Any:
    c.index_copy_(2, p, k)
    return c[:, :, :4]


def swapped(c: Any, k: Any, p: Any) -> Any:
    row = k.clone()
    k.copy_(c[:, :, :1])
    c[:, :, :1] = row
    return row * 2


def copied_before_it_is_written(c: Any, k: Any, p: Any) -> Any:
    k.copy_(c[:, :, :1])
    c.mul_(2.0)
    return k + 1


def where_a_mask_holds(c: Any, k: Any, p: Any) -> Any:
    c.masked_fill_(c > 20, 1.0)
    return (c * 2).sum(-1)


@pytest.mark.parametrize(
    "function",
    [
        old_returned,
        old_read,
        new_returned,
        view_returned,
        swapped,
        copied_before_it_is_written,
        where_a_mask_holds,
    ],
)
def test_other_writes_are_copies_at_the_end(function: Any) -> None:
    found = writers(held(function))
    assert found and set(found) == {"copy_.default"}


def test_results_are_no_views_of_inputs_that_are_written() -> None:
    c, k, p = arguments(0)
    new = Watched(new_returned)(c, k, p)
    before = new.clone()
    c.zero_()
    assert torch.equal(new, before)


def with_another(c: Any, d: Any, p: Any) -> Any:
    c[:, :, p] = 1.0
    return d * 2 + 1


def twice(call: int) -> tuple[Any, Any, Any]:
    c = cache() + call
    return c, c, torch.tensor([call])


def overlapping(call: int) -> tuple[Any, Any, Any]:
    c = cache() + call
    return c[:, :, :6], c[:, :, 2:], torch.tensor([call])


def transposed(call: int) -> tuple[Any, Any, Any]:
    return (cache() + call).transpose(1, 2), cache(), torch.tensor([1])


def with_gaps(call: int) -> tuple[Any, Any, Any]:
    return torch.full((1, 2, 16, 8), float(call))[:, :, ::2, :4], cache(), torch.tensor([call])


@pytest.mark.parametrize("given", [twice, overlapping, transposed, with_gaps])
def test_inputs_may_share_memory_and_lie_in_any_order(given: Any) -> None:
    held(with_another, given)


@pytest.mark.parametrize("given", [transposed, with_gaps])
def test_what_reads_the_written_memory_takes_its_order(given: Any) -> None:
    def function(c: Any, d: Any, p: Any) -> Any:
        c[:, :, p] = 1.0
        return (c * 2).reshape(-1, 4) @ torch.ones(4, 3), c.reshape(-1).sum()

    assert writers(held(function, given)) == ["write_places"]


def test_places_from_the_end_and_several_times() -> None:
    held(by_index, lambda call: (cache(), torch.ones(1, 2, 1, 4), torch.tensor([-1 - call])))
    held(by_index, lambda call: (cache(), torch.full((1, 2, 2, 4), float(call)), torch.tensor([2, 2])))


def test_places_outside_are_refused_as_by_pytorch() -> None:
    watched = Watched(by_index)
    with pytest.raises(IndexError, match="out of bounds"):
        watched(cache(), torch.ones(1, 2, 1, 4), torch.tensor([8]))


@pytest.mark.parametrize("options", [{}, {"dynamic": True}, {"dynamic": True, "buckets": {2: (8, 16)}}])
def test_places_may_be_numbers_that_change(options: Any) -> None:
    def function(c: Any, k: Any, place: int) -> Any:
        c[:, :, place : place + 1] = k
        return (c * 2).sum(-1)

    watched, ours, theirs = Watched(function, **options), cache(), cache()
    for place in range(4):
        row = torch.full((1, 2, 1, 4), float(place))
        close(watched(ours, row, place), function(theirs, row, place))
        close(ours, theirs)


class Step(nn.Module):
    """A token beside a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("keys", torch.zeros(1, 4, 8, 4))
        self.register_buffer("values", torch.zeros(1, 4, 8, 4))

    def forward(self, x: Any, place: Any, mask: Any) -> Any:
        q, k, v = self.project(x).view(1, 1, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
        self.keys.index_copy_(2, place, k)
        self.values[:, :, place] = v
        made = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return self.out(made.transpose(1, 2).reshape(1, 1, 16))


def test_a_decoder_writes_its_cache_in_place() -> None:
    ours, theirs = Step().eval(), Step().eval()
    theirs.load_state_dict(ours.state_dict())
    watched = Watched(ours)
    with torch.no_grad():
        for place in range(6):
            x, mask = torch.randn(1, 1, 16), torch.where(torch.arange(8) <= place, 0.0, -1e9)[None, None, None]
            close(watched(x, torch.tensor([place]), mask), theirs(x, torch.tensor([place]), mask))
            close(ours.keys, theirs.keys)
            close(ours.values, theirs.values)
    assert writers(watched) == ["write_places"] * 2
    regions = compiled_regions(watched)
    assert sum(region.statistics.copied_inputs for region in regions) == 0


def test_caches_with_gradients_around_them() -> None:
    def function(c: Any, k: Any, p: Any, weight: Any) -> Any:
        c[:, :, p] = k
        return ((c * weight) ** 2).sum()

    gradients = []
    for call in (Watched(function), function):
        c, k, p = arguments(1)
        weight = torch.full((4,), 0.5, requires_grad=True)
        k.requires_grad_()
        call(c, k, p, weight).backward()
        gradients.append((weight.grad, k.grad, c.detach()))
    close(*gradients)


def test_caches_that_ask_for_gradients_are_written_without() -> None:
    with torch.no_grad():
        held(by_index_copy, lambda call: (cache().requires_grad_(), *arguments(call)[1:]))
    with torch.inference_mode():
        held(by_index_copy)


def test_small_inputs_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_inputs, "LEAST_BYTES", cache().nbytes + 1)
    assert writers(held(by_index)) == ["copy_.default"]


def test_reports_name_what_is_written() -> None:
    report = lw.torch.explain(by_slice, *arguments(0))
    assert report.stays == {("write_piece", "it writes an input in place"): 1}
    report = lw.torch.explain(old_read, *arguments(0))
    assert report.stays == {("copy_.default", "it copies a result into an input"): 1}


@pytest.mark.parametrize("seed", range(12))
def test_random_writes_and_reads(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that write two caches and a row, and read them between and after."""
    monkeypatch.setattr(written_inputs, "LEAST_BYTES", seed % 3 * 100)  # the row has 32 bytes
    drawn = random.Random(seed)
    chosen = [(drawn.randrange(9), drawn.randrange(7), drawn.random() < 0.5) for _ in range(drawn.randint(2, 6))]

    def function(c: Any, d: Any, row: Any, p: Any) -> Any:
        made, kept = row * 1, []
        for kind, place, is_first in chosen:
            one, other = (c, d) if is_first else (d, c)
            if kind == 0:
                one[:, :, place : place + 1] = made
            elif kind == 1:
                one[:, :, p] = made + 1
            elif kind == 2:
                one[:, :, place] = other[:, :, place + 1]
            elif kind == 3:
                one[:, 1:, place : place + 2] = row[:, :1]
            elif kind == 4:
                made = one[:, :, place : place + 1] * 0.5 + made
            elif kind == 5:
                kept.append((one * 0.5).sum(-1))
            elif kind == 6:
                one.copy_(other)
            elif kind == 7:
                row.copy_(one[:, :, :1])
            else:
                kept.append(one[:, :, : place + 1].clone())
        return made, kept, c * 2, d.sum(2)

    held(function, lambda call: (cache() + call, cache() * 0.5 - call, *arguments(call)[1:]))
