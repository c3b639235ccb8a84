"""From a workload to its sketches: what is inlined, which blocks anchor a tiling, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ..dialects.loop import BlockOp, blocks_in
from ..dialects.target import Target
from ..passes.analysis.access import consumers, is_argument
from ..passes.analysis.nest import functions
from ..passes.primitive import ScheduleError
from ..passes.schedule.compute_inline import ComputeInline
from .anchor import Anchor, find_anchor
from .gpu_model import GpuModel
from .rules.gpu_tiling import GpuTiling, GpuVariant, gpu_variants
from .rules.injective import spread
from .rules.multi_level_tiling import Tiling, Variant, variants
from .rules.row_reduction import chain_rows
from .sketch import Columns, Draft, Sketch
from .tile_model import FEATURES, TileModel

Model: TypeAlias = TileModel | GpuModel

COSTLY = (
    "math.exp",
    "math.tanh",
    "math.erf",
    "math.log",
    "math.powf",
    "math.sin",
    "math.cos",
    "arith.divf",
    "math.sqrt",
)
"""Operations worth storing the result of rather than repeating."""


def generate_sketches(module: ModuleOp, target: Target) -> list[Sketch]:
    """The sketches of a te-level module for a target; the first one's defaults are the default schedule."""
    draft = Draft.of(module)
    anchors = _anchors(draft.module)
    _inline(draft, {pad for a in anchors for pad in a.pads})
    anchors = _anchors(draft.module)
    if not anchors:
        chain_rows(draft, target)
        _spread_rest(draft, target)
        return [_finished(draft, "plain", [])]
    drafts: list[tuple[str, Draft, list[Model]]] = [("", draft, [])]
    for anchor in anchors:
        drafts = [grown for item in drafts for grown in _tiled(*item, anchor, target)]
    sketches = []
    for name, grown, models in drafts:
        chain_rows(grown, target)
        _spread_rest(grown, target)
        sketches.append(_finished(grown, name, models))
    return sorted(sketches, key=_default_cost)


def _default_cost(sketch: Sketch) -> float:
    if sketch.prior is None:
        return 0.0
    return float(sketch.prior(sketch.columns(sketch.default.reshape(1, -1)))[0])


def _blocks(module: ModuleOp) -> list[BlockOp]:
    return [b for func in functions(module) for b in blocks_in(func)]


def _anchors(module: ModuleOp) -> list[Anchor]:
    found = (find_anchor(module, b.block_name) for b in _blocks(module))
    return [a for a in found if a is not None]


def _inline(draft: Draft, pads: set[str]) -> None:
    """Inline what is cheap to compute again where it is read; padding waits for the rule of its reader."""
    for block in _blocks(draft.module):
        name = block.block_name
        if name in pads or block.is_reduction or is_argument(block.outputs[0]):
            continue
        readers = consumers(block)
        costly = any(op.name in COSTLY for op in block.body.block.ops)
        if costly and (len(readers) > 1 or any(r.is_reduction for r in readers)):
            continue
        try:
            draft.do(ComputeInline, block=name)
        except ScheduleError:
            continue


def _tiled(
    name: str, draft: Draft, models: list[Model], anchor: Anchor, target: Target
) -> list[tuple[str, Draft, list[Model]]]:
    """The draft with each structure of one anchor; several anchors keep one structure each, or they would multiply."""
    found = []
    for number, variant in enumerate(_variants(anchor, target)):
        if models and number:
            break
        grown = draft.copy()
        fresh = find_anchor(grown.module, anchor.block)
        if fresh is None:
            continue
        model = _write(grown, fresh, number, target)
        found.append((f"{name}{'_' if name else ''}{variant.name}", grown, [*models, model]))
    if not found:
        for pad in anchor.pads:
            draft.do(ComputeInline, block=pad)
    return found or [(name, draft, models)]


def _variants(anchor: Anchor, target: Target) -> Sequence[Variant | GpuVariant]:
    return list(gpu_variants(anchor)) if target.is_gpu else list(variants(anchor, target))


def _write(draft: Draft, anchor: Anchor, number: int, target: Target) -> Model:
    """Tile an anchor by its structure of that number."""
    variant = _variants(anchor, target)[number]
    if isinstance(variant, GpuVariant):
        return GpuTiling(draft, anchor, variant, target, number).write()
    return Tiling(draft, anchor, variant, target, number).write()


def _spread_rest(draft: Draft, target: Target) -> None:
    """Deal what no rule has scheduled to threads and lanes."""
    for block in _blocks(draft.module):
        loops = block.enclosing_loops
        plain = all(x.loop_kind == "serial" and not x.notes for x in loops) and block.block_name not in draft.settled
        alone = loops and len(list(blocks_in(loops[0]))) == 1
        if plain and alone and not block.is_reduction:
            spread(draft, block.block_name, target)


def _finished(draft: Draft, name: str, models: list[Model]) -> Sketch:
    sketch = Sketch(
        name=name,
        template=draft.template,
        holes=tuple(draft.holes),
        derived=tuple(draft.derived),
        limits=tuple(draft.limits),
        describe=_describe(models),
        prior=_prior(models) if models else None,
    )
    return sketch if sketch.legal(sketch.default[None])[0] else _with_legal_defaults(sketch)


def _with_legal_defaults(sketch: Sketch) -> Sketch:
    """The sketch with the defaults that the prior likes best, where small extents put the usual ones out of limits."""
    rows = sketch.sample(np.random.default_rng(0), 512)
    rows = rows[sketch.legal(rows)]
    if not len(rows):
        return sketch
    assert sketch.prior is not None
    best = rows[int(np.argmin(sketch.prior(sketch.columns(rows))))]
    holes = tuple(replace(h, default=h.choices[i]) for h, i in zip(sketch.holes, best, strict=True))
    return replace(sketch, holes=holes)


def _describe(models: list[Model]) -> Callable[[Columns], npt.NDArray[np.float32]]:
    def features(columns: Columns) -> npt.NDArray[np.float32]:
        if not models:
            values = list(columns.values())
            logs = [np.log2(np.maximum(1, v)) for v in values][:FEATURES]
            padding = [np.zeros(len(values[0]) if values else 1)] * (FEATURES - len(logs))
            return np.stack([*logs, *padding], axis=1).astype(np.float32)
        total = models[0].features(columns)
        for model in models[1:]:
            total = np.concatenate([total, model.features(columns)], axis=1)
        return total

    return features


def _prior(models: list[Model]) -> Callable[[Columns], npt.NDArray[np.float64]]:
    def seconds(columns: Columns) -> npt.NDArray[np.float64]:
        return np.asarray(np.sum([m.seconds(columns) for m in models], axis=0))

    return seconds
