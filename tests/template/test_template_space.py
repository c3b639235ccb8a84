"""Knobs and the spaces they span: order of choices, index <-> row <-> values, and what makes no sense."""

import itertools
import json
from collections.abc import Callable, Sequence
from math import comb, prod
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.search.template.config import Config, ConfigSpace
from loopwright.search.template.knobs.annotate import AnnotateKnob
from loopwright.search.template.knobs.choice import ChoiceKnob
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.search.template.knobs.reorder import ReorderKnob
from loopwright.search.template.knobs.split import SplitKnob

# Configs that the tutorial "Tuning High Performance Convolution on NVIDIA GPUs" printed, with their indices.
PUBLISHED = {
    9163817: ([1, 8, 8, 8], [1, 7, 1, 1], [1, 7, 1, 1], [1, 256, 2], [1, 1, 3], [3, 1, 1], 1500, 1),
    430132: ([2, 32, 8, 1], [1, 1, 1, 7], [7, 1, 1, 1], [64, 4, 2], [1, 1, 3], [3, 1, 1], 0, 0),
    7171430: ([8, 1, 32, 2], [1, 7, 1, 1], [1, 7, 1, 1], [128, 4, 1], [1, 3, 1], [3, 1, 1], 512, 1),
    371506: ([4, 8, 2, 8], [7, 1, 1, 1], [1, 1, 7, 1], [2, 2, 128], [1, 3, 1], [3, 1, 1], 0, 0),
    1984850: ([256, 1, 2, 1], [1, 1, 7, 1], [1, 1, 1, 7], [32, 8, 2], [1, 3, 1], [3, 1, 1], 512, 0),
    5892581: ([64, 2, 1, 4], [7, 1, 1, 1], [7, 1, 1, 1], [4, 32, 4], [3, 1, 1], [1, 3, 1], 0, 1),
    2135585: ([8, 1, 64, 1], [1, 1, 1, 7], [1, 1, 7, 1], [256, 2, 1], [1, 1, 3], [3, 1, 1], 512, 0),
    1293822: ([128, 4, 1, 1], [1, 7, 1, 1], [1, 1, 7, 1], [4, 8, 16], [3, 1, 1], [1, 1, 3], 0, 0),
    4766314: ([16, 16, 2, 1], [1, 7, 1, 1], [7, 1, 1, 1], [32, 1, 16], [3, 1, 1], [1, 1, 3], 1500, 0),
    3056056: ([8, 4, 16, 1], [1, 1, 1, 7], [7, 1, 1, 1], [2, 8, 32], [3, 1, 1], [1, 1, 3], 512, 0),
    161989: ([4, 32, 2, 2], [7, 1, 1, 1], [7, 1, 1, 1], [4, 2, 64], [3, 1, 1], [3, 1, 1], 0, 0),
    29635: ([4, 2, 8, 8], [1, 1, 7, 1], [1, 7, 1, 1], [2, 256, 1], [3, 1, 1], [3, 1, 1], 0, 0),
    6720023: ([4, 4, 8, 4], [1, 7, 1, 1], [7, 1, 1, 1], [1, 32, 16], [1, 3, 1], [1, 1, 3], 0, 1),
    220904: ([4, 32, 4, 1], [7, 1, 1, 1], [1, 1, 1, 7], [4, 128, 1], [1, 3, 1], [3, 1, 1], 0, 0),
    8322429: ([4, 1, 128, 1], [1, 7, 1, 1], [1, 7, 1, 1], [1, 1, 512], [3, 1, 1], [1, 1, 3], 512, 1),
    3510954: ([4, 1, 4, 32], [1, 1, 7, 1], [1, 7, 1, 1], [4, 128, 1], [3, 1, 1], [3, 1, 1], 1500, 0),
    6540502: ([8, 2, 8, 4], [1, 7, 1, 1], [7, 1, 1, 1], [2, 8, 32], [3, 1, 1], [1, 1, 3], 0, 1),
    108895: ([1, 1, 4, 128], [1, 1, 7, 1], [1, 1, 1, 7], [8, 8, 8], [3, 1, 1], [3, 1, 1], 0, 0),
}
NAMES = ("tile_f", "tile_y", "tile_x", "tile_rc", "tile_ry", "tile_rx", "auto_unroll_max_step", "unroll_explicit")


def published_space() -> ConfigSpace:
    space = ConfigSpace()
    cfg = Config(space, collecting=True)
    for name, extent, parts in zip(NAMES, (512, 7, 7, 512, 3, 3), (4, 4, 4, 3, 3, 3), strict=False):
        cfg.define_split(name, extent, num_outputs=parts)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    cfg.define_knob("unroll_explicit", [0, 1])
    return space


def test_space_prints_as_the_tutorial_does() -> None:
    assert str(published_space()).splitlines() == [
        "ConfigSpace (len=10454400, space_map=",
        "   0 tile_f: Split(policy=factors, product=512, num_outputs=4) len=220",
        "   1 tile_y: Split(policy=factors, product=7, num_outputs=4) len=4",
        "   2 tile_x: Split(policy=factors, product=7, num_outputs=4) len=4",
        "   3 tile_rc: Split(policy=factors, product=512, num_outputs=3) len=55",
        "   4 tile_ry: Split(policy=factors, product=3, num_outputs=3) len=3",
        "   5 tile_rx: Split(policy=factors, product=3, num_outputs=3) len=3",
        "   6 auto_unroll_max_step: OtherOption([0, 512, 1500]) len=3",
        "   7 unroll_explicit: OtherOption([0, 1]) len=2",
        ")",
    ]


@pytest.mark.parametrize("index", PUBLISHED)
def test_published_index_is_the_published_config(index: int) -> None:
    space = published_space()
    values = dict(zip(NAMES, PUBLISHED[index], strict=True))
    row = space.rows([index])[0]
    assert space.values(row) == values
    assert space.row_of(values).tolist() == row.tolist()
    assert space.indices(row[None]).tolist() == [index]
    assert str(Config(space, row)) == f"[{', '.join(f'({n!r}, {v})' for n, v in values.items())}],{index}"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_index_and_row_are_one(sizes: list[int], random: Random) -> None:
    space = ConfigSpace()
    for number, size in enumerate(sizes):
        space.add(ChoiceKnob(f"k{number}", list(range(size))))
    assert len(space) == prod(sizes)
    indices = [random.randrange(len(space)) for _ in range(20)]
    rows = space.rows(indices)
    assert space.indices(rows).tolist() == indices
    assert (rows < np.array(sizes)).all()
    if len(space) > 1:
        assert space.rows([1])[0].tolist() == [int(i == _first_free(sizes)) for i in range(len(sizes))]


def _first_free(sizes: Sequence[int]) -> int:
    return next(i for i, size in enumerate(sizes) if size > 1)


def test_space_of_more_than_a_billion_points_is_not_enumerated() -> None:
    space = ConfigSpace()
    cfg = Config(space, collecting=True)
    for number in range(4):
        cfg.define_split(f"tile{number}", 4096, num_outputs=4)
    assert len(space) == comb(15, 3) ** 4 > 4e10
    last = space.rows([len(space) - 1])[0]
    assert (last == space.sizes - 1).all()


@given(st.integers(1, 60), st.integers(1, 4))
def test_factors_are_all_ordered_factorisations_innermost_slowest(extent: int, parts: int) -> None:
    knob = SplitKnob("s", extent, num_outputs=parts)
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    inner = [c for c in itertools.product(divisors, repeat=parts - 1) if extent % prod(c) == 0]
    assert [knob.value(p)[:0:-1] for p in range(len(knob))] == [list(c) for c in inner]
    assert all(prod(knob.value(p)) == extent for p in range(len(knob)))


def test_policies_of_splits() -> None:
    def inner(**options: Any) -> list[int]:
        return [v[1] for v in SplitKnob("s", 12, **options).sizes.tolist()]

    assert inner(policy="factors") == [1, 2, 3, 4, 6, 12]
    assert inner(policy="power2") == [1, 2, 4, 8]
    assert inner(policy="power2", no_tail=True) == [1, 2, 4]
    assert inner(policy="verbose") == [1, 2, 3, 4, 6, 8, 12]
    assert inner(policy="factors", max_factor=4) == [1, 2, 3, 4]
    assert inner(policy="factors", filter=lambda e: e.size[-1] % 2 == 0) == [2, 4, 6, 12]
    assert SplitKnob("s", 12, "candidate", candidate=[[-1, 5], [3, 4]]).sizes.tolist() == [[3, 5], [3, 4]]


def defined_twice(again: Callable[[Config], None]) -> Config:
    cfg = Config(ConfigSpace(), collecting=True)
    cfg.define_knob("k", [1])
    again(cfg)
    return cfg


def test_the_same_knob_may_be_defined_again() -> None:
    assert len(defined_twice(lambda cfg: cfg.define_knob("k", [1])).space.knobs) == 1


def test_numbers_of_numpy_become_those_of_python() -> None:
    knob = ChoiceKnob("k", np.array([1, 2]))
    assert [type(v) for v in knob.candidate] == [int, int] and knob.parts()[0].tolist() == [1, 2]
    mixed = ChoiceKnob("k", [np.float32(0.5), np.bool_(True), np.str_("a"), None, [np.int8(3), (4,)], np.arange(2)])
    assert mixed.candidate == [0.5, True, "a", None, [3, (4,)], [0, 1]]
    assert json.loads(json.dumps(mixed.candidate)) == [0.5, True, "a", None, [3, [4]], [0, 1]]
    assert mixed.position_of([3, [4]]) == 4


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SplitKnob("s", 8, "squares"), "policy must be one of factors, power2, verbose, candidate, got 'squ"),
        (lambda: SplitKnob("s", 8, num_outputs=0), "num_outputs must be at least 1, got 0"),
        (lambda: SplitKnob("s", 8, "candidate"), "candidate goes with policy 'candidate'"),
        (lambda: SplitKnob("s", 8, "candidate", candidate=[[2, 2, 2]]), "a candidate has 2 parts, got \\[2, 2, 2\\]"),
        (lambda: SplitKnob("s", 8, filter=lambda e: False), "no split is left"),
        (lambda: ReorderKnob("r", "ab", "sorted"), "policy must be one of"),
        (lambda: ReorderKnob("r", "ab", "candidate"), "policy 'candidate' needs the option 'candidate'"),
        (lambda: ReorderKnob("r", "ab", "candidate", candidate=["aa"]), "must hold the given loops once"),
        (lambda: ReorderKnob("r", range(12), "all"), "narrow the policy"),
        (lambda: ReorderKnob("r", "abc", "interval_all", interval=(2, 1)), "0 <= begin < end <= 3, got \\(2, 1\\)"),
        (lambda: ReorderKnob("r", "abc", "interval_all", interval=(1, 4)), "0 <= begin < end <= 3, got \\(1, 4\\)"),
        (lambda: ReorderKnob("r", "abc", "interval", interval=(-1, 2)), "must be \\(begin, end\\) with 0 <= begin"),
        (
            lambda: ReorderKnob("r", "abc", "interval", interval=(1,)),  # type: ignore[arg-type]
            "must be \\(begin, end\\) with 0 <= begin",
        ),
        (lambda: AnnotateKnob("a", "ab", "try_both"), "policy must be one of"),
        (lambda: AnnotateKnob("a", "abc", "bind_gpu"), "a multiple of 2 loops, got 3"),
        (lambda: ChoiceKnob("k", []), "at least one candidate"),
        (lambda: ChoiceKnob("k", [10**30]), "a candidate is a finite number, at most of 64 bits, .*, got 10{30}$"),
        (lambda: ChoiceKnob("k", [1.0, float("nan")]), "a candidate is a finite number, .*, got nan"),
        (lambda: ChoiceKnob("k", np.array([np.inf])), "got inf"),
        (lambda: ChoiceKnob("k", [{1}]), "or a list of those, got {1}"),
        (lambda: ChoiceKnob("k", [[1, (2, max)]]), "got <built-in function max>"),
        (lambda: ChoiceKnob("k", [1j]), "got 1j"),
        (lambda: defined_twice(lambda cfg: cfg.define_knob("k", [1, 2])), "knob 'k' is defined twice, as OtherOption"),
        (lambda: defined_twice(lambda cfg: cfg.define_split("k", 8)), r"as OtherOption\(\[1\]\) len=1 and as Split\("),
        (lambda: Config(ConfigSpace(), collecting=True).define_split("s", "i"), "an axis is an extent of at least 1"),
        (lambda: Config(ConfigSpace())["k"], "no knob 'k'; knobs are not defined yet"),
        (lambda: published_space().row_of({"tile_q": 1}), "no knob 'tile_q'"),
        (lambda: published_space().row_of({}), "'tile_f' has none"),
        (lambda: SplitKnob("s", 8).position_of([2, 3]), "has no choice"),
    ],
)
def test_bad_input_is_one_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ask", [lambda s, i: s.rows([i]), lambda s, i: s.get(i), lambda s, i: s[i]])
@pytest.mark.parametrize("index", [10454400, -1])
def test_index_out_of_range(ask: Callable[[ConfigSpace, int], object], index: int) -> None:
    with pytest.raises(IndexError, match=rf"a config index is in \[0, 10454400\), got {index}"):
        ask(published_space(), index)


def test_configs_of_a_space_by_index_and_one_after_the_other() -> None:
    space = published_space()
    assert space.get(430132).values == space[np.int64(430132)].values == space.values(space.rows([430132])[0])
    assert space[430132].index == 430132
    assert [c.index for c in itertools.islice(space, 3)] == [0, 1, 2]
    with pytest.raises(IndexError, match=r"got 1000000000000000000000000000000$"):
        space.get(10**30)
    with pytest.raises(TypeError):
        space.get(1.5)  # type: ignore[arg-type]


def test_policies_of_reorder() -> None:
    def orders(*axes: str, **options: Any) -> list[list[int]]:
        return [ReorderKnob("r", axes, **options).value(p) for p in range(len(ReorderKnob("r", axes, **options)))]

    assert orders("a", "b", policy="identity") == [[0, 1]]
    assert orders("a", "b", "c", policy="all") == [list(p) for p in itertools.permutations(range(3))]
    assert orders("a", "b", "c", policy="interval_all", interval=(1, 3)) == [[0, 1, 2], [0, 2, 1]]
    assert orders("a", "b", policy="candidate", candidate=["ba", "ab"]) == [[1, 0], [0, 1]]
    merged = orders("y", "yi", "x", "xi", "k", policy="interleave", spatial=[["y", "yi"], ["x", "xi"]], reduce=["k"])
    assert len(merged) == len({tuple(m) for m in merged}) == 2 * 6
    assert all(set(m[:2]) == {0, 2} for m in merged)


def test_policies_of_annotate() -> None:
    def marks(axes: str, policy: str, **options: Any) -> list[list[Any]]:
        knob = AnnotateKnob("a", axes, policy, **options)
        return [knob.value(p) for p in range(len(knob))]

    assert marks("ab", "unroll") == [["unroll", "unroll"]]
    assert marks("a", "try_vec") == [["none"], ["vec"]]
    assert len(marks("ab", "try_unroll_vec")) == 8
    assert marks("abcd", "bind_gpu") == [["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]]
    assert marks("abc", "bind_gpu_virtual") == [["blockIdx.x", "vthread", "threadIdx.x"]]
    assert marks("abc", "locate_cache", num_anchor=2) == [[0, 1], [0, 2], [1, 2]]
    assert marks("abcdefgh", "bind_gpu")[0] == ["fuse", *(f"{k}.{d}" for k in ["blockIdx"] for d in "zyx"), "fuse"] + [
        f"threadIdx.{d}" for d in "zyx"
    ]


def test_mutation_moves_one_knob_and_features_are_numbers() -> None:
    space = published_space()
    rng = np.random.default_rng(0)
    rows = space.sample(rng, 200)
    moved = space.mutate(rng, rows)
    assert ((moved != rows).sum(axis=1) == 1).all()
    assert (moved < space.sizes).all() and (moved >= 0).all()
    features = space.features(rows)
    assert features.shape == (200, 4 + 4 + 4 + 3 + 3 + 3 + 2)
    assert (2.0 ** features[:, :4]).prod(axis=1).round().tolist() == [512.0] * 200
