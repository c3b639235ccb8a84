"""Transforms by small constant matrices: which blocks they are, and that they become one unrolled nest."""

import pytest
from sample_workloads import SAMPLES

import loopwright as lw
from loopwright.search.sketch.draft import Draft
from loopwright.search.structure.transform_chains import pick_chains, picked_axes

CPU = "llvm cores=2 vector_bytes=32"
CUDA = (
    "cuda cores=132 max_threads_per_block=1024 max_shared_bytes=232448 warp_size=32 max_vthreads=8 "
    "compute_capability=90"
)


def draft_of(name: str) -> Draft:
    return Draft.of(lw.SearchTask(SAMPLES[name], target=CPU).module)


def test_chains_of_winograd() -> None:
    chains = {c.final: c for c in pick_chains(draft_of("winograd"))}
    assert set(chains) == {"kernel_pack", "data_pack", "conv2d_winograd"}
    assert chains["data_pack"].members == ("data_rows",)
    assert chains["data_pack"].tiles == (("eps", 4), ("nu", 4))
    assert chains["conv2d_winograd"].members == ("inverse", "inverse_rows")
    assert chains["conv2d_winograd"].tiles == (("yy", 2), ("xx", 2))


def test_a_chain_that_ends_in_an_output() -> None:
    (chain,) = pick_chains(draft_of("transform_2d"))
    assert (chain.members, chain.final, chain.tiles) == (("rows",), "both", (("i", 4), ("j", 4)))


@pytest.mark.parametrize("name", [n for n in SAMPLES if "winograd" not in n and n != "transform_2d"])
def test_nothing_else_picks(name: str) -> None:
    draft = draft_of(name)
    from loopwright.dialects.loop import blocks_in

    assert not any(picked_axes(b) for b in blocks_in(draft.module))


@pytest.mark.parametrize("target", [CPU, CUDA])
@pytest.mark.parametrize("name", ["winograd", "winograd_nhwc", "transform_2d"])
def test_transforms_are_unrolled_in_one_nest(name: str, target: str) -> None:
    for sketch in lw.SearchTask(SAMPLES[name], target=target).sketches:
        rows = "rows" if name == "transform_2d" else "data_rows"
        final = "both" if name == "transform_2d" else "data_pack"
        assert f'lw-compute-at{{block="{rows}"' in sketch.template
        assert f'lw-set-scope{{block="{rows}" scope="local"}}' in sketch.template
        assert sketch.template.count(f'lw-unroll{{block="{final}"') == 2
        assert ("lw-vectorize" if target == CPU else "threadIdx.x") in sketch.template
