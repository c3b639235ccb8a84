"""Features of populations equal those read from the IR of each candidate, for every sketch and every primitive."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

import numpy as np
import pytest
from random_workloads import random_workload
from sample_workloads import SAMPLES
from sketch_rows import anywhere
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from loopwright import te, topi
from loopwright.dialects.presets import preset_target
from loopwright.dialects.target import Target, TargetAttr
from loopwright.passes.parametric.nest import Nest
from loopwright.passes.parametric.read import nest_of_module
from loopwright.passes.parametric.replay import replay_steps
from loopwright.passes.parametric.sizes import Size, Sizes
from loopwright.passes.pipeline_text import lower_to_loops
from loopwright.passes.primitive import Primitive, ScheduleError, UnknownStepError
from loopwright.search.features.catalogue import names
from loopwright.search.features.of_records import Features, RecordFeatures, features_of_schedule
from loopwright.search.features.of_sketch import SketchFeatures
from loopwright.search.named_workloads import (
    conv2d,
    conv2d_nhwc,
    depthwise,
    depthwise_nchw,
    layer_norm,
    matmul,
    softmax,
)
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch

TARGETS = ("llvm cores=2 vector_bytes=64 vector_registers=32", "cuda model=h200", "opencl model=mali-t860")
Tensors = list[te.Tensor]
WORKLOADS: dict[str, Callable[[], Tensors]] = {
    "conv2d": lambda: conv2d(1, 7, 7, 64, 48),
    "conv2d_stride": lambda: conv2d(2, 13, 11, 20, 36, 3, 3, 2),
    "matmul_odd": lambda: matmul(97, 131, 75),
    "matmul_transposed": lambda: matmul(64, 100, 256, True, True),
    "depthwise": lambda: depthwise(1, 28, 28, 30),
    "depthwise_nchw": lambda: depthwise_nchw(1, 30, 30, 10, 3, 3, 2),
    "softmax": lambda: softmax(33, 1000),
    "layer_norm": lambda: layer_norm(65, 100),
    "pointwise_nhwc": lambda: conv2d_nhwc(1, 14, 14, 60, 70),
    "two_layers": lambda: two_layers(),
    "attention": lambda: attention(),
    "winograd": SAMPLES["winograd"],
    "names_in_names": lambda: names_in_names(),
    "embedding": SAMPLES["embedding"],
    "gathered_elements": SAMPLES["gathered_elements"],
    "gathered_product": SAMPLES["gathered_product"],
    "one_fused": lambda: random_workload(Random(61)),
}


def two_layers() -> Tensors:
    x, w1 = te.placeholder((1, 16, 14, 14), name="x"), te.placeholder((24, 16, 3, 3), name="w1")
    w2 = te.placeholder((20, 24, 1, 1), name="w2")
    first = topi.nn.relu(topi.nn.conv2d_nchw(x, w1, 1, 1, 1))
    return [x, w1, w2, topi.nn.conv2d_nchw(first, w2, 1, 0, 1)]


def attention() -> Tensors:
    q, k, v = (te.placeholder((2, 60, 32), name=name) for name in "qkv")
    weights = topi.nn.softmax(topi.nn.batch_matmul(q, k, False, True))
    return [q, k, v, topi.nn.batch_matmul(weights, v, False, False)]


def names_in_names() -> Tensors:
    """The name of one iterator is part of another's: h and kh, w and kw, c and ci."""
    data, kernel = te.placeholder((1, 9, 10, 12), name="data"), te.placeholder((3, 3, 12, 20), name="kernel")
    kh, kw, ci = te.reduce_axis((0, 3), "kh"), te.reduce_axis((0, 3), "kw"), te.reduce_axis((0, 12), "ci")
    conv = te.compute(
        (1, 7, 8, 20),
        lambda n, h, w, c: te.sum(data[n, h + kh, w + kw, ci] * kernel[kh, kw, ci, c], axis=[kh, kw, ci]),
        name="conv",
    )
    return [data, kernel, conv]


def module_of(tensors: Tensors, target: str) -> ModuleOp:
    module = te.create_module(tensors)
    module.attributes["lw.target"] = TargetAttr(preset_target(target))
    return module


def differing(have: Features, want: Features) -> dict[str, tuple[float, float]]:
    """Return the features that differ, with both values."""
    columns = [*names(), "prior"]
    close = np.isclose(have, want, rtol=1e-4, atol=1e-4, equal_nan=True)
    return {columns[j]: (float(have[j]), float(want[j])) for j in np.nonzero(~close)[0]}


@pytest.mark.parametrize("target", TARGETS[:2], ids=lambda t: t.split()[0])
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(2)
def test_matrix_features_equal_those_of_the_ir(name: str, target: str) -> None:
    module, device = module_of(WORKLOADS[name](), target), preset_target(target)
    require_alike(module, device, generate_sketches(module, device), len(name), 2)


def require_alike(module: ModuleOp, device: Target, sketches: Sequence[Sketch], seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    for sketch in sketches:
        rows = anywhere(sketch, rng, count)
        features = sketch.features(rows)
        assert features.shape == (len(rows), len(names()) + 1)
        for row, have in zip(rows, features, strict=True):
            schedule = sketch.schedule(row)
            want = features_of_schedule(module, device, schedule)
            assert not differing(have[:-1], want[:-1]), f"{sketch.name}: {schedule}"


@cache
def sample(name: str, target: str) -> tuple[ModuleOp, list[Sketch]]:
    """Return one of the workloads of every kind, as a module, and its sketches."""
    module = module_of(SAMPLES[name](), target)
    return module, generate_sketches(module, preset_target(target))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.split()[0])
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.few(2)
def test_matrix_features_of_every_operator_equal_those_of_the_ir(name: str, target: str) -> None:
    module, sketches = sample(name, target)
    require_alike(module, preset_target(target), sketches, len(name), 1)


def test_all_rows_at_once_are_the_rows_one_by_one() -> None:
    sketch = generate_sketches(module_of(matmul(40, 50, 60), TARGETS[0]), preset_target(TARGETS[0]))[0]
    rows = anywhere(sketch, np.random.default_rng(0), 5000)
    rows = np.tile(rows, (-(-5000 // len(rows)), 1))[:5000]  # more than are computed at once
    together = sketch.features(rows)
    for k in (0, 4095, 4096, 4999):
        np.testing.assert_array_equal(together[k], sketch.features(rows[k : k + 1])[0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.few(1)
def test_features_tell_candidates_apart(target: str) -> None:
    device = preset_target(target)
    for sketch in generate_sketches(module_of(conv2d(1, 14, 14, 64, 64), target), device):
        rows = np.unique(anywhere(sketch, np.random.default_rng(0), 64), axis=0)
        features = sketch.features(rows)
        assert np.isfinite(features).all()
        assert len(np.unique(features, axis=0)) >= 0.9 * len({sketch.schedule(row) for row in rows})


# -- primitives -----------------------------------------------------------------------------------------------------


def product_and_more() -> Tensors:
    a, b, x = (te.placeholder(shape, name=name) for shape, name in (((64, 48), "a"), ((48, 80), "b"), ((24, 36), "x")))
    return [a, b, x, topi.nn.relu(topi.matmul(a, b)), topi.exp(topi.tanh(x))]


TEMPLATES = {
    "pipeline": (
        "lw-split{B loop='k' factors=0,<s>}",
        "lw-split{B loop='i' factors=0,<t>}",
        "lw-reorder{B loops='i0','j','k0','i1','k1'}",
        "lw-bind{B loop='i0' thread='blockIdx.x'}",
        "lw-bind{B loop='j' thread='threadIdx.x'}",
        "lw-cache-read{B buffer='a' scope='shared'}",
        "lw-compute-at{block='a_shared' loop='k0' unit_loops=true}",
        "lw-storage-align{block='a_shared' axis=0 factor=32 offset=<u>}",
        "lw-pipeline{B loop='k0' stages=<u>}",
        "lw-pragma{B loop='k0' auto_unroll_max_step=<t>}",
    ),
    "double_buffer": (
        "lw-split{B loop='k' factors=0,<s>}",
        "lw-reorder{B loops='k0','i','j','k1'}",
        "lw-cache-read{B buffer='b' scope='local'}",
        "lw-compute-at{block='b_local' loop='k0'}",
        "lw-double-buffer{block='b_local'}",
    ),
    "decompose": (
        "lw-split{B loop='j' factors=0,<t>}",
        "lw-reorder{B loops='i','j0','k','j1'}",
        "lw-decompose-reduction{B loop='k'}",
        "lw-vectorize{B loop='j1'}",
        "lw-parallel{B loop='i'}",
    ),
    "rfactor_first": (
        "lw-split{B loop='k' factors=<s>,0}",
        "lw-rfactor{B loop='k0'}",
        "lw-split{block='T_matmul_rf' loop='j' factors=0,<t>}",
        "lw-unroll{block='T_matmul_rf' loop='j1'}",
    ),
    "cache_write_layout": (
        "lw-cache-write{B scope='local' layout='i/<t>','j','i%<t>' label='tile'}",
        "lw-split{B loop='i' factors=0,<s>}",
        "lw-vectorize{block='tile' loop='j'}",
    ),
    "fused_epilogue": (
        "lw-split{B loop='i' factors=0,<t>}",
        "lw-fuse{B loops='i1','j'}",
        "lw-reorder{B loops='i0','i1_j','k'}",
        "lw-split{B loop='i1_j' factors=0,<s>}",
        "lw-reverse-compute-at{block='T_relu' loop='i1_j0'}",
        "lw-transform-layout{B buffer='T_matmul' layout='j/<s>','i','j%<s>'}",
    ),
    "fused_ones": (
        "lw-split{B loop='i' factors=0,<u>}",
        "lw-split{B loop='j' factors=0,<u>,<s>}",
        "lw-reorder{B loops='i0','j0','k','i1','j1','j2'}",
        "lw-fuse{B loops='i1','j1','j2'}",
        "lw-split{B loop='i1_j1_j2' factors=0,<t>}",
        "lw-vectorize{B loop='i1_j1_j21'}",
    ),
    "inline_backwards": (
        "lw-split{block='T_tanh' loop='i0' factors=0,<t>}",
        "lw-reverse-compute-inline{block='T_exp'}",
    ),
}
"""Steps with holes for sizes; `B` is the block of the product."""


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.few(1)
def test_steps_that_sketches_do_not_use_are_replayed_alike(name: str) -> None:
    target = preset_target("llvm" if name in ("decompose", "inline_backwards") else "cuda model=h200")
    module = te.create_module(product_and_more())
    steps = ",".join(["lw-lower-te-to-loop", *TEMPLATES[name]])
    template = steps.replace("{B ", "{block='T_matmul' ").replace("'", '"')
    values = np.array([(t, s, u) for t in (1, 3, 8, 16) for s in (2, 5, 16, 48) for u in (1, 2, 3)])
    columns = dict(zip("tsu", values.T, strict=True))
    features = SketchFeatures(module, target, name, template, None)(columns, len(values))
    compared = 0
    for row, have in zip(values, features, strict=True):
        chosen = dict(zip("tsu", map(str, row), strict=True))
        try:
            want = features_of_schedule(module, target, _filled(template, chosen))
        except ScheduleError:
            continue
        compared += 1
        assert not differing(have, want), (name, chosen)
    assert compared >= 9


def _filled(template: str, chosen: Mapping[str, str]) -> str:
    return re.sub(r"<(\w)>", lambda m: chosen[m[1]], template)


class Strange(ModulePass):
    name = "lw-strange"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Do nothing."""


class Unfinished(Primitive[None]):
    name = "lw-unfinished"

    def check(self, module: ModuleOp) -> None:
        """Refuse nothing."""

    def rewrite(self, plan: None) -> None:
        """Do nothing."""


class Brings(Strange):
    name = "lw-brings"

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        nest.buffers.clear()


@pytest.mark.parametrize("kind", [Strange, Unfinished])
def test_an_unknown_step_says_what_to_add(kind: type[Strange] | type[Unfinished]) -> None:
    with pytest.raises(UnknownStepError, match=rf"what {kind.name} does .* give {kind.__name__} a method replay_sizes"):
        replay_steps(some_nest(), [kind()], Sizes(_no_column))


def test_a_step_from_elsewhere_brings_its_replay() -> None:
    nest = some_nest()
    assert nest.buffers
    replay_steps(nest, [Brings()], Sizes(_no_column))
    assert not nest.buffers


def some_nest() -> Nest:
    module = module_of(matmul(4, 5, 6), TARGETS[0])
    lower_to_loops(module)
    return nest_of_module(module, preset_target(TARGETS[0]))


def _no_column(name: str) -> Size:
    raise AssertionError(f"no size stands for {name}")


# -- records --------------------------------------------------------------------------------------------------------


class Measured:
    def __init__(self, sketch: str, decisions: tuple[int, ...], schedule: str) -> None:
        self.sketch, self.decisions, self.schedule = sketch, decisions, schedule


def test_features_of_records_come_from_decisions_or_from_the_schedule() -> None:
    target = preset_target(TARGETS[0])
    module = module_of(matmul(40, 50, 60), TARGETS[0])
    sketches = generate_sketches(module, target)
    row = sketches[0].default
    schedule = sketches[0].schedule(row)
    known = Measured(sketches[0].name, tuple(row), schedule)
    wrong = Measured("gone", (), f'{schedule},lw-unroll{{block="T_matmul" loop="nowhere"}}')
    by_hand = Measured("", (), "lw-lower-te-to-loop")
    stale = Measured(sketches[0].name, (99,) * len(row), schedule)
    features = RecordFeatures(module, target, sketches)
    found = features([known, by_hand])
    assert np.isfinite(found[0]).all() and np.isnan(found[1, -1])
    assert not differing(found[1], features_of_schedule(module, target, "lw-lower-te-to-loop"))
    assert not differing(found[0][:-1], RecordFeatures(module, target, sketches)([stale])[0][:-1])
    with pytest.raises(ScheduleError):
        features([wrong])
    assert features([]).shape == (0, len(names()) + 1)
