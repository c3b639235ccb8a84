"""ONNX's own tests, one of each operator, the default run some of those; `benchmarks/onnx_conformance.py` runs all.

The tests of an operator are made by the import of its module, with ONNX's reference implementation: all of them take
longer to make than one of each takes to run.
"""

import effort
import pytest
from onnx_conformance import GROUPS, Conformance, excluded, node_modules, one_of_each

ALL_FROM = 3
"""The effort from which on all operators are tested: CI's."""


@pytest.fixture(scope="module")
def conformance() -> Conformance:
    if effort.level() >= ALL_FROM:
        return Conformance()
    return Conformance(["det", *effort.spread(node_modules(), 24 * effort.level())])


@pytest.mark.parametrize("group", ["Node", "PyTorchConverted"])
def test_one_test_of_each_operator_passes(conformance: Conformance, group: str) -> None:
    left_out = excluded()
    names = one_of_each([n for n in conformance.names(group) if n not in left_out and "expanded" not in n])
    most = len(names) if effort.level() >= ALL_FROM else 16 * effort.level()
    outcomes = [conformance.run(group, name) for name in effort.spread(names, most)]
    assert not [f"{o.name}: {o.failure}" for o in outcomes if o.failure]
    assert len(outcomes) > 10 and sum(o.kernels > 0 for o in outcomes) > 0.8 * len(outcomes)


@pytest.mark.slow(ALL_FROM)
def test_excluded_tests_exist_and_have_reasons() -> None:
    conformance = Conformance()
    known = {name for group in GROUPS for name in conformance.names(group)}
    left_out = excluded()
    assert set(left_out) <= known
    assert all(len(reason) > 8 for reason in left_out.values())


def test_what_is_excluded_is_refused_with_reasons(conformance: Conformance) -> None:
    outcome = conformance.run("Node", "test_det_2d_cpu")
    assert outcome.failure == "operator Det is not supported (node 'y')"


def test_shifts_beyond_the_width_and_by_negative_counts_pass() -> None:
    shifts = Conformance(["bitshift"])
    outcomes = [shifts.run("Node", name) for name in shifts.names("Node") if "int8" in name]
    assert len(outcomes) > 1 and not [f"{o.name}: {o.failure}" for o in outcomes if o.failure]
