"""Filters of filters: chains are found, computed tile by tile with their edges, and right for all tiles."""

import numpy as np
import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright import te
from loopwright.search.sketch.draft import Draft
from loopwright.search.structure.stencils import stencil_chains

CPU = "llvm cores=2 vector_bytes=32"


def jacobi(n: int = 37, steps: int = 3) -> list[te.Tensor]:
    """Some steps of relaxation, each on the interior of the one before."""
    u = stage = te.placeholder((n + 2 * steps, n + 2 * steps), name="u")

    def step(x: te.Tensor, number: int) -> te.Tensor:
        def body(i: te.Expr, j: te.Expr) -> te.Expr:
            return (x[i + 1, j + 1] * 4.0 + x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]) * 0.125

        return te.compute(tuple(e - 2 for e in x.shape), body, name=f"step{number}")

    for number in range(steps):
        stage = step(stage, number)
    return [u, stage]


def edges(n: int = 45) -> list[te.Tensor]:
    """A blur and the length of its gradient."""
    image, weight = te.placeholder((n + 6, n + 6), name="image"), te.placeholder((5, 5), name="weight")
    a, b = te.reduce_axis((0, 5), "a"), te.reduce_axis((0, 5), "b")
    blur = te.compute((n + 2, n + 2), lambda i, j: te.sum(image[i + a, j + b] * weight[a, b], axis=[a, b]), name="blur")

    def length(i: te.Expr, j: te.Expr) -> te.Expr:
        across, down = blur[i + 1, j + 2] - blur[i + 1, j], blur[i + 2, j + 1] - blur[i, j + 1]
        return te.sqrt(across * across + down * down)

    return [image, weight, te.compute((n, n), length, name="edges")]


def smoothed() -> list[te.Tensor]:
    """One axis, read every other element; a second output keeps the first stage apart."""
    x = te.placeholder((4, 131), name="x")
    a = te.reduce_axis((0, 3), "a")
    mean = te.compute((4, 129), lambda n, i: te.sum(x[n, i + a], axis=a), name="mean")
    coarse = te.compute((4, 64), lambda n, i: mean[n, i * 2] - mean[n, i * 2 + 1], name="coarse")
    return [x, coarse]


CHAINED = {"jacobi": jacobi, "edges": edges, "smoothed": smoothed}


@pytest.mark.parametrize("name", CHAINED)
@pytest.mark.few(2)
def test_chains_are_searched_tile_by_tile_too(name: str) -> None:
    task = lw.SearchTask(CHAINED[name], target=CPU)
    reference = task.reference
    names = [s.name for s in task.sketches]
    assert names.count("tiles") == 1 and len(names) > 1
    (sketch,) = (s for s in task.sketches if s.name == "tiles")
    assert sketch.template.count("lw-compute-at") == (2 if name == "jacobi" else 1)
    for row in [sketch.default, *sketch.sample(np.random.default_rng(0), 4)]:
        schedule = sketch.schedule(row)
        got = task.build(schedule)(*reference.inputs)
        np.testing.assert_allclose(got, reference.expected[0], atol=1e-5, rtol=1e-4, err_msg=schedule)


def test_stages_are_found_from_the_last_to_the_first() -> None:
    (chain,) = stencil_chains(Draft.of(lw.SearchTask(jacobi, target=CPU).module))
    assert (chain.members, chain.final) == (("step1", "step0"), "step2")


@pytest.mark.parametrize("name", [n for n in SAMPLES if "resize" not in n])
def test_nothing_else_is_a_stencil(name: str) -> None:
    task = lw.SearchTask(SAMPLES[name], target=CPU)
    drafts = [Draft.of(task.module)]
    for rule in lw.sketch_rules(task.target):
        if rule.name == "stencil_tiles":
            break
        drafts = [grown for draft in drafts for grown in rule.apply(draft, task.target)]
    assert not any(stencil_chains(draft) for draft in drafts)


def test_stencils_of_stencils_are_not_written_out() -> None:
    """Inlined, each of three steps would multiply the reads by five."""
    (plain,) = (s for s in lw.SearchTask(jacobi, target=CPU).sketches if s.name == "plain")
    assert "lw-compute-inline" not in plain.template


def test_tiles_fit_the_stack() -> None:
    task = lw.SearchTask(lambda: jacobi(700, 4), target="llvm cores=1 vector_bytes=64")
    (sketch,) = (s for s in task.sketches if s.name == "tiles")
    columns = {h.name: np.array([max(h.choices)]) for h in sketch.holes}
    assert not all(limit(columns)[0] for limit in sketch.limits)
    assert sketch.legal(sketch.default[None])[0]
    rows = sketch.sample(np.random.default_rng(0), 200)
    assert len(np.unique(rows, axis=0)) > 10
    smallest, largest = (float(f(sketch.prior(sketch.columns(rows)))) for f in (np.min, np.max))  # type: ignore[misc]
    assert smallest < largest
