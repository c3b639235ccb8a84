"""Targets: fields that are held to what they may be, and texts that name them."""

import pytest

import loopwright as lw
from loopwright.dialects.target import KINDS, Target, TargetAttr, parse_target

REFUSED = {
    "kind": ({"kind": "metal"}, "kind must be llvm, cuda or opencl, got 'metal'$"),
    "no text": ({"kind": 7}, "kind must be llvm, cuda or opencl, got 7$"),
    "two words": ({"model": "rtx 4090"}, "model must be one word, got 'rtx 4090'$"),
    "an option": ({"model": "h200 cores=2"}, "model must be one word"),
    "negative": ({"max_shared_bytes": -1}, "option 'max_shared_bytes' takes a non-negative integer, got -1$"),
    "text": ({"l2_bytes": "1M"}, "option 'l2_bytes' takes a non-negative integer, got '1M'$"),
    "truth": ({"cores": True}, "option 'cores' takes a positive integer, got True$"),
    "nothing": ({"warp_size": 0}, "option 'warp_size' takes a positive integer, got 0$"),
    "float": ({"cores": 2.0}, "option 'cores' takes a positive integer, got 2.0$"),
    "architecture": ({"arch": "arm64"}, "arch must be x86_64, aarch64 or riscv64, got 'arm64'$"),
    "a GPU's": ({"kind": "opencl", "arch": "aarch64"}, "arch and features are for llvm, not for opencl$"),
    "features": ({"features": "neon"}, r"features are names with \+ or -, as '\+dotprod,-lse', got 'neon'$"),
    "other kind": ({"compute_capability": 90}, "compute_capability is for cuda, not for llvm$"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_fields_are_checked_when_a_target_is_made(case: str) -> None:
    values, said = REFUSED[case]
    with pytest.raises(ValueError, match=f"^target: {said}"):
        Target(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["cuda model=h200", "llvm cores=2", "opencl cores=1"])
def test_a_text_is_no_kind(text: str) -> None:
    """It was a CPU's target under that name, whatever the text said."""
    with pytest.raises(
        ValueError, match=rf"got '{text}': Target takes fields; .* lw\.resolve_target of it$"
    ) as refused:
        Target(text)
    assert "\n" not in str(refused.value)


def test_a_text_is_resolved() -> None:
    assert (lw.resolve_target("cuda model=h200").kind, lw.resolve_target("llvm cores=2").cores) == ("cuda", 2)


def test_text_is_read_back() -> None:
    for kind in KINDS:
        target = Target(kind, model="some-4.5_b", cores=3, max_shared_bytes=1 << 40)
        assert parse_target(str(target)) == target == TargetAttr(target).data
    assert parse_target("cuda arch=sm_75 model=RTX 2080 Ti cores=4") == Target(
        "cuda", "RTX-2080-Ti", cores=4, compute_capability=75
    )
    assert [parse_target(f"cuda arch={a}").compute_capability for a in ("sm_90a", "SM90", "compute_120f")] == [
        90,
        90,
        120,
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "kind must be llvm, cuda or opencl, got ''"),
        ("cuda model=", "model must be one word, got ''"),
        ("cuda modell=h200", "unknown option 'modell'; options are model, cores, "),
        ("cuda h200", "unknown option 'h200'; options are model, "),
        ("cuda cores=1 h200", "unknown option 'h200'"),
        ("llvm cores=2 cores=3", "option 'cores' is given twice"),
        ("cuda arch=sm_75 compute_capability=86", "option 'compute_capability' is given twice"),
        ("cuda arch=turing", "arch and features are for llvm, not for cuda, where it is sm_75 or the like"),
        ("llvm cores=two", "option 'cores' takes a positive integer, got 'two'"),
        (f"llvm cores={'9' * 5000}", "option 'cores' takes a positive integer, got '9999"),
        ("llvm cores=\u00b2", "option 'cores' takes a positive integer"),
        ("opencl kind=cuda", "unknown option 'kind'"),
    ],
)
def test_wrong_text_is_one_sentence(text: str, said: str) -> None:
    for read in (parse_target, lw.resolve_target):
        with pytest.raises(ValueError, match=f"^target '.*': {said}") as refused:
            read(text)
        assert len(str(refused.value)) < 400 and str(refused.value).isprintable()


def test_a_target_is_itself() -> None:
    target = Target("cuda", compute_capability=90)
    assert lw.resolve_target(target) is target


def test_vectors_a_cycle_are_those_of_the_model() -> None:
    """Zen 4 has units half as wide as its registers, a Tiger Lake one for 512 bits; most have two of each."""
    wide = [Target(model=name, vector_bytes=64) for name in ("znver5", "znver4", "tigerlake", "emeraldrapids")]
    assert [(t.fma_per_cycle, t.loads_per_cycle) for t in wide] == [(2, 2), (1, 1), (1, 2), (2, 2)]
    assert Target(model="znver4", vector_bytes=32).fma_per_cycle == 2
    assert Target(model="somebody-elses").fma_per_cycle == Target().loads_per_cycle == 2
