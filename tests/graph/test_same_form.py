"""Networks of other extents that compute the same at the points that both have."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.graph.same_form import difference

FORMS: dict[str, tuple[Callable[[Any, Any, int], Any], bool]] = {
    "elementwise": (lambda net, x, n: net.relu(x) + x, True),
    "rows": (lambda net, x, n: net.softmax(x, axis=1), True),
    "columns": (lambda net, x, n: net.softmax(x, axis=0), False),
    "product": (lambda net, x, n: net.matmul(x, net.constant(np.ones((6, 4), np.float32))), True),
    "gram": (lambda net, x, n: net.matmul(net.transpose(x, axes=(1, 0)), x), False),
    "split": (lambda net, x, n: net.reshape(x, shape=(n, 2, 3)), True),
    "merged": (lambda net, x, n: net.reshape(x, shape=(n * 2, 3)), True),
    "merged_within": (lambda net, x, n: net.reshape(net.transpose(x, axes=(1, 0)), shape=(2, 3 * n)), False),
    "number": (lambda net, x, n: x * float(n), False),
    "same_number": (lambda net, x, n: x * 2.0, True),
    "table": (lambda net, x, n: x + net.constant(np.arange(n, dtype=np.float32)[:, None]), True),
    "other_table": (lambda net, x, n: x + net.constant(np.linspace(0, 1, n, dtype=np.float32)[:, None]), False),
    "twice": (lambda net, x, n: net.concatenate(x, x, axis=0), False),
    "more": (lambda net, x, n: net.relu(x) if n < 8 else net.tanh(net.relu(x)), False),
    "other": (lambda net, x, n: net.relu(x) if n < 8 else net.tanh(x), False),
    "turned": (lambda net, x, n: x - net.relu(x) if n < 8 else net.relu(x) - x, False),
}


def network(make: Callable[[Any, Any, int], Any], n: int) -> lw.Network:
    net = lw.Network()
    net.output(make(net, net.input("x", (n, 6)), n))
    return net


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_the_same_where_points_are(name: str) -> None:
    make, same = FORMS[name]
    small, large = network(make, 5), network(make, 8)
    assert (difference(small, large) is None) == same
    if same:
        data = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
        (few,), (many,) = small.evaluate(x=data[:5]), large.evaluate(x=data)
        np.testing.assert_array_equal(few, many[tuple(slice(n) for n in few.shape)])
