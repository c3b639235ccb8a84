"""Templates themselves: how they are found, what they compute, and what makes none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.loop import blocks_in
from loopwright.passes.analysis.nest import functions
from loopwright.search.template import registry
from loopwright.search.template.config import Config
from loopwright.search.template.fallback import fallback_config
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.search.template.registry import find_template, shipped

pytestmark = pytest.mark.usefixtures("quick_measuring")
ARGS = (16, 24, 8)
TARGET = "llvm cores=1 vector_bytes=32"


def made_task(args: Sequence[int] = ARGS, target: str = TARGET) -> lw.TemplateTask:
    return lw.TemplateTask("tests_matmul", args, target)


def test_flops_are_counted_or_given() -> None:
    @lw.template("tests_counted")
    def counted(cfg: Config, n: int, given: float) -> lw.Schedule:
        x = te.placeholder((n,), name="x")
        y = topi.nn.relu(x)
        cfg.define_knob("nothing", [0])
        if given:
            cfg.add_flop(given)
        return lw.Schedule([x, y], target=cfg.target)

    assert lw.TemplateTask(counted, (32, 0), TARGET).flops == 32
    assert lw.TemplateTask(counted, (32, 1e9), TARGET).flops == 1e9


def test_bad_templates_are_one_sentence() -> None:
    with pytest.raises(
        ConfigError, match="there is no template 'no_such' for target 'llvm'; there are: batch_matmul_cpu"
    ):
        lw.TemplateTask("no_such", (), TARGET)

    @lw.template("tests_nothing")
    def nothing(cfg: Config) -> None:
        return None

    with pytest.raises(TypeError, match="must return the lw\\.Schedule it made, got NoneType"):
        lw.TemplateTask(nothing, (), TARGET)
    with pytest.raises(ConfigError, match="template 'tests_matmul' is defined already"):
        lw.template("tests_matmul")(nothing.function)
    with pytest.raises(ConfigError, match="chosen by the config; choose where cfg\\.is_fallback only"):
        made_task().config(0)["parallel"] = 1


def test_a_users_template_takes_the_place_of_a_shipped_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever is loaded first: `conv2d_no_batching` is the name in the classic tutorial, and one of the package's."""
    monkeypatch.setattr(registry, "_TEMPLATES", dict(registry._TEMPLATES))
    assert "conv2d_no_batching" in shipped()

    def conv2d_no_batching(cfg: Config) -> lw.Schedule:
        raise AssertionError("not called")

    own = lw.template(conv2d_no_batching)
    assert find_template("conv2d_no_batching", lw.resolve_target("cuda model=h200")) is own
    assert "conv2d_no_batching" not in shipped()


def test_template_that_computes_something_else_for_some_configs_is_refused() -> None:
    @lw.template("tests_changing")
    def changing(cfg: Config) -> lw.Schedule:
        cfg.define_knob("n", [8, 16])
        x = te.placeholder((cfg["n"].val + 0,), name="x")
        return lw.Schedule([x, topi.nn.relu(x)], target=cfg.target)

    task = lw.TemplateTask(changing, (), TARGET)
    assert "computes something else" in str(task.why_not(1))


def test_shipped_templates_are_found_by_file_name_and_target() -> None:
    from loopwright.dialects.presets import preset_target

    for name in ("conv2d_nchw", "conv2d_nhwc", "depthwise_conv2d_nchw", "dense", "batch_matmul"):
        for target, suffix in (("llvm", "cpu"), ("cuda model=h200", "gpu"), ("opencl model=mali-t860", "mali")):
            found = find_template(name, preset_target(target))
            assert found.name == f"{name}_{suffix}" and found.name in shipped()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("conv2d_nchw", (1, 6, 6, 8, 4, 3, 3, (1, 1), (1, 1))),
        ("conv2d_nhwc", (1, 6, 6, 8, 4, 3, 3, (2, 2), (1, 1))),
        ("depthwise_conv2d_nchw", (1, 8, 6, 6, 3, 3, (1, 1), (1, 1))),
        ("depthwise_conv2d_nhwc", (1, 8, 6, 6, 3, 3, (1, 1), (1, 1))),
        ("dense", (6, 8, 4)),
        ("batch_matmul", (2, 6, 8, 4)),
    ],
)
@pytest.mark.few(1)
def test_shipped_templates_are_right(name: str, args: tuple[Any, ...]) -> None:
    on_opencl = name in ("conv2d_nchw", "dense")  # PoCL takes a second for each kernel
    for target, count in ((TARGET, 2), ("opencl model=pocl", int(on_opencl))):
        task = lw.TemplateTask(name, args, target)
        rows = task.config_space.sample(np.random.default_rng(0), 64)
        rows = rows[task.legal(rows)][:count]
        reference = task.reference
        for row in rows:
            if target != TARGET and task.config(row).values.get("unroll_explicit"):
                row = task.config({**task.config(row).values, "unroll_explicit": 0}).row
            output = task.build(row)(*reference.inputs)
            np.testing.assert_allclose(output, reference.expected[0], **reference.tolerances[0]._asdict())


@pytest.mark.parametrize(
    ("name", "args", "vector"),
    [
        ("conv2d_nchw", (1, 6, 6, 8, 4, 3, 3), "ff"),
        ("conv2d_nhwc", (1, 6, 6, 8, 4, 3, 3), "ff"),
        ("depthwise_conv2d_nchw", (1, 8, 6, 6, 3, 3), "xx"),
    ],
)
def test_sums_of_a_vector_lie_side_by_side(name: str, args: tuple[int, ...], vector: str) -> None:
    task = lw.TemplateTask(name, args, TARGET)
    made = task.instantiate(fallback_config(task))
    (block,) = [b for func in functions(made.module) for b in blocks_in(func) if b.is_reduction]
    assert str(block.write_indices[0][-1]) == vector
