"""Targets from text: what the model of a well-known device says, or a GPU's compute capability."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace

from .cpu_models import CPU_MODELS, GENERIC
from .gpu_models import ALIASES, GPUS, of_capability
from .shown_text import one_line
from .target import Target, options_of, parse_target
from .target_kinds import installed_kind

PRESETS: dict[tuple[str, str], Target] = {
    (kind, model): target for kind, models in GPUS.items() for model, target in models.items()
}
MAKERS = ("nvidia", "geforce", "tesla", "jetson", "arm", "graphics", "device", "gpu")
"""Words of a GPU's name that say nothing of which one it is."""
_FORM = re.compile(r"sxm\d?|pcie?|hbm\d?e?|\d+gb?")
"""Words for how a GPU is packed and how much memory it has; some are a model of their own, such as `h100-pcie`."""


def preset_target(text: str) -> Target:
    """Parse a target; `cuda model=h200` has what the preset says, and options beside the model change it.

    A model may be written as its maker does: `GeForce RTX 4090` is `rtx4090`. `cuda arch=sm_86`, with or without a
    model that is not known, has what all GPUs of that compute capability have. A text that says the limits itself
    means what it says. ValueError names what is wrong, or the models that are like one that is not known.
    """
    given, named = parse_target(text), options_of(text)
    try:
        if not given.is_ours:
            return _of_installed(given, named)
        known = _known_cpu(given) if given.kind == "llvm" else _known_gpu(given, named)
    except ValueError as error:
        raise ValueError(f"target '{one_line(text)}': {error}") from None
    if known is None:
        return given
    return replace(known, **{name: getattr(given, name) for name in named if name not in ("kind", "model")})


def _of_installed(given: Target, named: Mapping[str, str]) -> Target:
    """Return a target of a kind of another package, which says what it usually has; ValueError for wrong options."""
    kind = installed_kind(given.kind)
    assert kind is not None, "checked when the target was made"
    usual = parse_target(" ".join([given.kind, *(f"{name}={value}" for name, value in kind.options.items())]))
    return replace(usual, **{name: getattr(given, name) for name in named if name != "kind"})


def _known_cpu(given: Target) -> Target | None:
    """Return the vectors that a CPU's model has, or its architecture."""
    known = CPU_MODELS.get(given.model) or GENERIC.get(given.arch)
    if known is None:
        return None
    return Target(model=given.model, vector_bytes=known.vector_bytes, vector_registers=known.vector_registers)


def model_of(kind: str, name: str) -> str:
    """Return the preset that a GPU's name means, as its driver, its maker or a user writes it; empty for none."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower().replace("(tm)", "")) if word not in MAKERS]
    bare = [word for word in words if not _FORM.fullmatch(word)]
    models = {_plain(model): model for model in GPUS.get(kind, ())}
    models |= {alias: model for alias, model in ALIASES.items() if model in GPUS.get(kind, ())}
    return next((models[m] for m in ("".join(words), "".join(bare)) if m in models), "")


def _plain(model: str) -> str:
    return model.removeprefix("jetson-").replace("-", "")


def _known_gpu(given: Target, named: Mapping[str, str]) -> Target | None:
    """Return what a GPU's model or compute capability says; None where the text says the limits, or names neither.

    ValueError for a model or capability that nothing is known of.
    """
    says_limits = {"max_threads_per_block", "max_shared_bytes"} <= set(named)
    if says_limits and given.model not in GPUS[given.kind]:
        return None
    model, capability = model_of(given.kind, given.model), given.compute_capability
    if model:
        known = GPUS[given.kind][model]
        if capability not in (0, known.compute_capability):
            raise ValueError(f"{model} has compute capability {known.compute_capability}, got {capability}")
        return known
    if capability:
        return replace(of_capability(capability), model=given.model)
    if "model" in named:
        raise ValueError(_unknown(given))
    return None


def _unknown(given: Target) -> str:
    """Say that a GPU's model is not known, which are like it, and what to write instead."""
    models = list(GPUS[given.kind])
    elsewhere = [f"{kind} model={found}" for kind in GPUS if (found := model_of(kind, given.model))]
    near = elsewhere or difflib.get_close_matches(given.model.lower(), models, n=4, cutoff=0.5)
    like = f"near: {', '.join(near)}" if near else f"known: {', '.join(models)}"
    own = "arch=sm_86 or the like, or " if given.kind == "cuda" else ""
    return (
        f"no model '{one_line(given.model)}' of {given.kind} is known, {like}; for another GPU say {own}"
        "max_threads_per_block= and max_shared_bytes="
    )
