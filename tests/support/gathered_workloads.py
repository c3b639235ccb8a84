"""Programs that read at places which other tensors give, some of them out of range, for random schedules."""

from random import Random

from loopwright import te, topi

Tensors = list[te.Tensor]


def _places(r: Random, *shape: int) -> te.Tensor:
    return te.placeholder(shape, r.choice(["int32", "int64"]), "ids")


def _rows(r: Random) -> Tensors:
    """An embedding with a position added, scaled."""
    n, c, s = r.randint(1, 9), r.randint(1, 19), r.randint(1, 7)
    table, ids, place = te.placeholder((n, c), name="table"), _places(r, 2, s), te.placeholder((s, c), name="place")
    found = te.compute((2, s, c), lambda b, i, j: table[ids[b, i], j], name="found")
    return [table, ids, place, te.compute((2, s, c), lambda b, i, j: found[b, i, j] * 2.0 + place[i, j], name="emb")]


def _elements(r: Random) -> Tensors:
    """Each element from a place of its own, counted from the end where it is negative."""
    n, k, c = r.randint(1, 9), r.randint(1, 5), r.randint(1, 17)
    data, ids = te.placeholder((n, c), name="data"), _places(r, k, c)
    start = te.compute((k, c), lambda i, j: te.select(ids[i, j] < 0, ids[i, j] + n, ids[i, j]), name="start")
    return [data, ids, te.compute((k, c), lambda i, j: data[start[i, j], j] + data[n - 1, c - 1 - j], name="taken")]


def _of_a_stage(r: Random) -> Tensors:
    """A computed table, read at two places that are computed as well."""
    m, n, c = r.randint(1, 7), r.randint(1, 7), r.randint(1, 17)
    x, ids, w = te.placeholder((m, n), name="x"), _places(r, c), te.placeholder((c,), name="w")
    table = te.compute((m, n), lambda i, j: x[i, j] * 2.0 + 1.0, name="doubled")
    return [x, ids, w, te.compute((c,), lambda i: table[ids[i], ids[c - 1 - i] // 2] * w[i], name="picked")]


def _padded(r: Random) -> Tensors:
    """Places that exist only inside, of a table that is read outside of it where none does."""
    n, c, s = r.randint(1, 9), r.randint(1, 9), r.randint(1, 5)
    table, ids = te.placeholder((n, c), name="table"), _places(r, s)
    wide = te.compute(
        (s + 2, c), lambda i, j: te.select(te.all(i >= 1, i < s + 1), table[ids[i - 1], j], 0.0), name="wide"
    )
    return [table, ids, te.compute((s, c), lambda i, j: te.maximum(wide[i, j], wide[i + 2, j]), name="near")]


def _reduced(r: Random) -> Tensors:
    """A mean over rows, and a product with a matrix, of what was read."""
    n, c, s = r.randint(1, 9), r.randint(1, 9), r.randint(1, 7)
    table, ids, w = te.placeholder((n, c), name="table"), _places(r, s), te.placeholder((c, 5), name="w")
    found = topi.take(table, ids)
    return [table, ids, w, topi.matmul(found, w), topi.sum(found, axis=0)]


def gathered(r: Random) -> Tensors:
    """Draw one of these programs."""
    return r.choice([_rows, _elements, _of_a_stage, _padded, _reduced])(r)
