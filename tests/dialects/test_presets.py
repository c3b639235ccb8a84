"""Well-known devices: how they are written, what follows from a compute capability, what is refused."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.dialects.gpu_models import ALIASES, GPUS
from loopwright.dialects.multiprocessor import MULTIPROCESSORS, multiprocessor_of
from loopwright.dialects.presets import model_of, preset_target
from loopwright.dialects.target import Target, parse_target
from loopwright.te import Tensor

SPELT = {
    "rtx4090": ["RTX4090", "rtx-4090", "rtx_4090", "RTX 4090", "GeForce RTX 4090", "NVIDIA-GeForce-RTX-4090", "4090"],
    "gtx1080ti": ["gtx-1080-ti", "GTX 1080 Ti"],
    "t4": ["T4", "tesla-t4", "Tesla T4"],
    "h100": ["H100-SXM", "h100_sxm5", "H100 80GB HBM3"],
    "h100-pcie": ["H100 PCIe", "h100pcie"],
    "a100": ["A100-PCIE-40GB", "a100-sxm4-80gb"],
    "jetson-agx-xavier": ["agx xavier", "Jetson_AGX_Xavier"],
}


@pytest.mark.parametrize("model", SPELT)
def test_spelling_is_tolerant(model: str) -> None:
    for spelt in SPELT[model]:
        assert preset_target(f"cuda model={spelt} cores=3") == preset_target(f"cuda cores=3 model={model}"), spelt
        assert preset_target(f"cuda model={spelt}").model == model


def test_every_preset_is_found_by_its_name_and_no_two_by_one() -> None:
    for kind, models in GPUS.items():
        assert [model_of(kind, model) for model in models] == list(models)
    assert all(any(model_of(kind, alias) == model for kind in GPUS) for alias, model in ALIASES.items())
    assert model_of("cuda", "RTX 4090 Laptop GPU") == model_of("cuda", "rtx") == model_of("llvm", "t4") == ""


def test_limits_follow_from_the_compute_capability() -> None:
    """They were 0, which left 4 candidates of a space of 10 to the 8."""
    for target in GPUS["cuda"].values():
        assert target.max_shared_bytes == multiprocessor_of(target).block_shared_bytes >= 48 << 10, target
        assert target.max_shared_bytes <= multiprocessor_of(target).shared_bytes and target.cores > 1
    for capability in MULTIPROCESSORS:
        made = preset_target(f"cuda arch=sm_{capability}")
        assert made.compute_capability == capability and made.max_threads_per_block == 1024 and made.cores > 1
        assert parse_target(str(made)) == preset_target(str(made)) == made
    mine = preset_target("cuda arch=sm_86 model=mine cores=20")
    assert (mine.model, mine.cores, mine.max_shared_bytes) == ("mine", 20, 99 << 10)


def matmul() -> list[Tensor]:
    a, b = te.placeholder((512, 512), name="a"), te.placeholder((512, 512), name="b")
    k = te.reduce_axis((0, 512), name="k")
    return [a, b, te.compute((512, 512), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]


@pytest.mark.parametrize("text", ["cuda model=rtx-4090", "cuda arch=sm_75", "cuda model=gtx-1080-ti"])
def test_the_space_is_that_of_a_gpu(text: str) -> None:
    assert sum(sketch.size for sketch in lw.SearchTask(matmul, target=text).sketches) > 10**6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "cuda model=t5",
            "no model 't5' of cuda is known, near: t4; for another GPU say arch=sm_86 or the like, or max_",
        ),
        ("cuda model=rtx4091", "near: rtx4090, "),
        ("cuda model=zebra", "no model 'zebra' of cuda is known, known: gtx1080ti, v100, "),
        ("cuda model=mali-t860", "near: opencl model=mali-t860; "),
        (
            "opencl model=rtx4090",
            "no model 'rtx4090' of opencl is known, near: cuda model=rtx4090; for another GPU say max_",
        ),
        ("opencl model=mali-g77 max_threads_per_block=512", "near: mali-g71, "),
        ("cuda arch=sm_60", "what sm_60 has is not known, say max_threads_per_block= and .*; known: sm_61, sm_70, "),
        ("cuda model=h200 arch=sm_80", "h200 has compute capability 90, got 80$"),
    ],
)
def test_what_is_not_known_is_refused(text: str, said: str) -> None:
    for read in (preset_target, lw.resolve_target, lambda t: te.create_module(matmul(), t)):
        with pytest.raises(ValueError, match=f"^target '{text}': .*{said}") as refused:
            read(text)
        assert str(refused.value).isprintable()


def test_a_text_that_says_the_limits_means_them() -> None:
    for text in (
        "opencl model=some-gpu",
        "cuda model=rtx-4090-laptop compute_capability=89",
        "cuda compute_capability=60",
    ):
        full = f"{text} max_threads_per_block=128 max_shared_bytes=1024"
        assert preset_target(full) == parse_target(full)


def test_a_search_without_limits_is_refused() -> None:
    for target in (Target("cuda"), Target("opencl", cores=4)):
        with pytest.raises(ValueError, match=r"says not how many threads a block may have, .*name a model"):
            lw.SearchTask(matmul, target=target).sketches  # noqa: B018
