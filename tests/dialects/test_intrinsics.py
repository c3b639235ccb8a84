"""Matrix intrinsics: who holds which element, what a target has, and what users add."""

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright.dialects.index import axis
from loopwright.dialects.index_text import parse_index
from loopwright.dialects.intrinsics import Family, Intrinsic, families, find_intrinsic, intrinsics
from loopwright.dialects.target import Target

AMPERE = Target(kind="cuda", compute_capability=80)


OF_WARPS = [x for x in intrinsics() if not x.reads_shared]
"""Those whose threads hold all of their matrices."""


def named(name: str) -> Intrinsic:
    found = find_intrinsic(name)
    assert found is not None
    return found


@pytest.mark.parametrize("intrinsic", intrinsics(), ids=lambda x: x.name)
@pytest.mark.few(16)
def test_each_element_has_a_place_and_each_place_an_element(intrinsic: Intrinsic) -> None:
    intrinsic.verify()
    for operand in intrinsic.held_operands:
        places = intrinsic.places(operand)
        assert len(places) == intrinsic.elements(operand)
        assert set(places.values()) == {
            (r, c)
            for r in range(intrinsic.extents[intrinsic.axes(operand)[0]])
            for c in range(intrinsic.extents[intrinsic.axes(operand)[1]])
        }


def test_accumulators_lie_as_the_manual_says() -> None:
    """PTX ISA, fragments of mma.m16n8k16: groupID = lane >> 2, rows groupID and groupID + 8, columns of two."""
    places = named("mma.m16n8k16.f16").places("c")
    for lane in range(32):
        group, pair = lane >> 2, lane % 4 * 2
        assert [places[lane, n] for n in range(4)] == [
            (group, pair),
            (group, pair + 1),
            (group + 8, pair),
            (group + 8, pair + 1),
        ]


def test_accumulators_of_a_warp_group_lie_as_the_manual_says() -> None:
    """PTX ISA, register fragments of wgmma.m64nNk16: 16 rows a warp, in them as in mma.m16n8k16, 8 columns by 8."""
    places = named("wgmma.m64n64k16.f16").places("c")
    for thread in range(128):
        warp, group, pair = thread >> 5, thread % 32 >> 2, thread % 4 * 2
        rows = [16 * warp + group, 16 * warp + group, 16 * warp + group + 8, 16 * warp + group + 8] * 8
        columns = [8 * part + pair + n for part in range(8) for n in (0, 1, 0, 1)]
        assert [places[thread, n] for n in range(32)] == list(zip(rows, columns, strict=True))


def test_factors_lie_as_the_manual_says() -> None:
    """PTX ISA, fragments of mma.m16n8k16 and of mma.m16n8k32 for bytes."""
    a, b = (named("mma.m16n8k16.f16").places(operand) for operand in "ab")
    for lane in range(32):
        group, pair = lane >> 2, lane % 4 * 2
        rows = [group, group, group + 8, group + 8] * 2
        columns = [pair, pair + 1] * 2 + [pair + 8, pair + 9] * 2
        assert [a[lane, n] for n in range(8)] == list(zip(rows, columns, strict=True))
        assert [b[lane, n] for n in range(4)] == [(group, k) for k in (pair, pair + 1, pair + 8, pair + 9)]
    wide = named("mma.m16n8k32.s8").places("a")
    assert [wide[5, n] for n in range(8)] == [(1, k) for k in (4, 5, 6, 7)] + [(9, k) for k in (4, 5, 6, 7)]


@pytest.mark.parametrize("intrinsic", [x for x in OF_WARPS if x.target == "cuda"], ids=lambda x: x.name)
@pytest.mark.parametrize("operand", "ab")
def test_matrices_that_lanes_name_fill_the_registers(intrinsic: Intrinsic, operand: str) -> None:
    """`ldmatrix` (PTX ISA): register m of lane l is bytes 4 * (l % 4) of row l // 4 of matrix m, named by 8m + r."""
    assert intrinsic.is_loaded_as_matrices
    fragment = intrinsic.fragment(operand)
    per = 4 // fragment.bytes
    row, k = intrinsic.matrix_place(operand, axis("l"), turned=False)
    for lane in range(32):
        for register in range(intrinsic.registers(operand)):
            named_by = {"l": register * 8 + lane // 4}
            for part in range(per):
                element = (row.evaluate(named_by), k.evaluate(named_by) + lane % 4 * per + part)
                assert intrinsic.place(operand, *element) == (lane, register * per + part)


def test_turned_matrices_are_named_by_their_columns() -> None:
    row, k = named("mma.m16n8k16.f16").matrix_place("a", axis("l"), turned=True)
    got = [(row.evaluate({"l": n}), k.evaluate({"l": n})) for n in (0, 1, 8, 16, 31)]
    assert got == [(0, 0), (0, 1), (8, 0), (0, 8), (8, 15)]


def test_a_target_has_what_its_capability_allows() -> None:
    assert "mma.m16n8k16.f16" in [x.name for x in intrinsics(AMPERE)]
    assert not intrinsics(Target(kind="opencl"))
    why = named("mma.m16n8k16.f16").why_not(Target(kind="cuda", compute_capability=75))
    assert why == "needs compute capability 80, the target has 75"
    assert named("mma.m16n8k16.f16").why_not(Target()) == "is one of cuda, the target is llvm"


def test_users_add_their_own(registries: None) -> None:
    mine = replace(
        named("mma.m16n8k16.f16"), name="mine.m16n8k16", code="mine(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1);"
    )
    assert lw.register_intrinsic(mine) is mine
    assert find_intrinsic("mine.m16n8k16") is mine
    assert mine in intrinsics(AMPERE)


def test_intrinsics_that_are_wrong_are_refused(registries: None) -> None:
    own = named("mma.m16n8k16.f16")
    with pytest.raises(ValueError, match=r"comes with loopwright; give yours another name"):
        lw.register_intrinsic(own)
    wrong = replace(own, name="wrong", c=replace(own.c, lane=parse_index("i mod 8 * 4")))
    with pytest.raises(ValueError, match=r"intrinsic 'wrong': the elements of c and the places of 32 threads are not"):
        lw.register_intrinsic(wrong)


@pytest.mark.parametrize("intrinsic", OF_WARPS, ids=lambda x: x.name)
def test_sums_of_scattered_products_are_the_product(intrinsic: Intrinsic) -> None:
    """Gathered by their places, multiplied and scattered again: the meaning of the instruction."""
    rng = np.random.default_rng(0)
    whole = {o: rng.integers(-4, 5, [intrinsic.extents[x] for x in intrinsic.axes(o)]) for o in "abc"}
    held = {o: np.zeros((intrinsic.threads, intrinsic.elements(o) // intrinsic.threads), int) for o in "abc"}
    for o in "abc":
        for place, element in intrinsic.places(o).items():
            held[o][place] = whole[o][element]
    back = {o: np.zeros_like(whole[o]) for o in "abc"}
    for o in "abc":
        for place, element in intrinsic.places(o).items():
            back[o][element] = held[o][place]
    np.testing.assert_array_equal(back["c"] + back["a"] @ back["b"].T, whole["c"] + whole["a"] @ whole["b"].T)


def test_families_differ_in_columns_alone() -> None:
    """Each is named without them; those of warps, of which one is as good as another, are alone."""
    found = families(intrinsics(Target(kind="cuda", compute_capability=90)))
    groups = [family for family in found if family.widest.reads_shared]
    assert sorted(family.name for family in groups) == [
        f"wgmma.m64k{k}" for k in ("16.bf16", "16.f16", "32.s8", "32.u8", "8.tf32")
    ]
    assert all(
        len(family.members) == 1 and family.name == family.widest.name for family in found if family not in groups
    )
    for family in groups:
        before, behind = family.name_parts
        assert [x.name for x in family.members] == [f"{before}{n}{behind}" for n in family.columns]
        assert family.columns == tuple(sorted(family.columns)) and family.widest.n == 256
        assert family.of_columns([64, 100, 32]).columns == (32, 64)


def test_a_family_of_one_keeps_its_name() -> None:
    assert Family((named("wgmma.m64n64k16.f16"),)).name_parts == ("wgmma.m64n64k16.f16", "")
