"""Features of all candidates at once, beside those of each candidate's own schedule."""

from collections.abc import Sequence

import numpy as np

from loopwright import te
from loopwright.dialects.presets import preset_target
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.features.of_sketch import SketchFeatures


def check_replayed_features(
    tensors: Sequence[te.Tensor], template: str, numbers: Sequence[int], rtol: float = 1e-4, atol: float = 1e-4
) -> None:
    """Compare features of a template for an H200, whose hole `<n>` takes each number, with those of its schedules."""
    target, module, column = preset_target("cuda model=h200"), te.create_module(tensors), np.array(numbers)
    found = SketchFeatures(module, target, "replayed", template, None)({"n": column}, len(column))
    for number, features in zip(numbers, found, strict=True):
        expected = features_of_schedule(module, target, template.replace("<n>", str(number)))
        np.testing.assert_allclose(features, expected, rtol=rtol, atol=atol)
