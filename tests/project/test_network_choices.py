"""The check of networks' schedules: it says what kernels are, how they are computed, and what is in the wrong way."""

from network_choices import Choice, choices, differences, misplaced, rows, way_of

import loopwright as lw


def test_kernels_of_a_network_are_counted_by_kind_and_way() -> None:
    net = lw.Network()
    image, weight, up = (
        net.input(n, shape) for n, shape in (("x", (1, 8, 8, 8)), ("w", (8, 8, 1, 1)), ("u", (8, 4, 4, 4)))
    )
    made = net.conv2d(image, weight)
    net.output(net.conv2d_transpose(made, up, stride=2, padding=1))
    found = list(choices("small", net, "llvm cores=1 vector_bytes=32"))
    assert rows(found) == [
        "| small | llvm | product | tiles | 1 |",
        "| small | llvm | transposed convolution | col2im | 1 |",
    ]
    assert misplaced(found) == []


def test_a_way_for_another_kind_is_named() -> None:
    schedule = 'lw-lower-te-to-loop,lw-collapse{block="T_dense"},lw-col2im{block="T_dense"}'
    product = Choice(network="n", target="cuda model=h200", task="t", kind="product", way="", schedule=schedule)
    product["way"] = way_of(schedule)
    assert way_of("lw-lower-te-to-loop,lw-split") == "tiles" and product["way"] == "col2im, collapse"
    assert misplaced([product]) == ["wrong: n on cuda model=h200: a product (t) by col2im"]
    before = ["| n | cuda | product | tiles | 1 |", "| m | cuda | product | tiles | 1 |"]
    assert differences(rows([product]), before) == [
        "gone: | n | cuda | product | tiles | 1 |",
        "new:  | n | cuda | product | col2im, collapse | 1 |",
    ]
