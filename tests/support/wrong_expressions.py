"""Wrong calls of te and topi, with the error and its sentence."""

from loopwright.te import ExpressionError, ShapeError

CALLS: list[tuple[str, type[Exception], str]] = [
    ("te.placeholder(5.5)", ShapeError, "placeholder 'placeholder': extents are integers, got 5.5 in shape (5.5,)"),
    ("te.placeholder((0,4))", ShapeError, "placeholder 'placeholder': extents are at least 1, got shape (0, 4)"),
    ("te.placeholder((-1,))", ShapeError, "placeholder 'placeholder': extents are at least 1, got shape (-1,)"),
    ("te.placeholder(('a',))", ShapeError, "placeholder 'placeholder': extents are integers, got 'a' in shape ('a',)"),
    (
        "te.placeholder('abc')",
        ShapeError,
        "placeholder 'placeholder': extents are integers, got 'a' in shape ('a', 'b', 'c')",
    ),
    ("te.placeholder(None)", ShapeError, "placeholder 'placeholder': extents are integers, got None in shape (None,)"),
    (
        "te.placeholder((4,4), dtype=float)",
        ExpressionError,
        "placeholder 'placeholder': element type '<class 'float'>' is not one of float16,",
    ),
    (
        "te.placeholder((4,4), dtype=int)",
        ExpressionError,
        "placeholder 'placeholder': element type '<class 'int'>' is not one of float16,",
    ),
    (
        "te.placeholder((4,4), dtype='f32')",
        ExpressionError,
        "placeholder 'placeholder': element type 'f32' is not one of float16, bfloat16,",
    ),
    (
        "te.placeholder((4,4), dtype='float')",
        ExpressionError,
        "placeholder 'placeholder': element type 'float' is not one of float16, bfloat16,",
    ),
    (
        "te.placeholder((4,4), dtype=None)",
        ExpressionError,
        "placeholder 'placeholder': element type 'None' is not one of float16, bfloat16,",
    ),
    (
        "te.compute((8,), lambda i: np.fft.fft(A[i]))",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    (
        "te.compute((8,), lambda i: np.arctan2(A[i],1.0))",
        TypeError,
        "te has no np.arctan2: it has absolute, add, ceil, cos, divide, equal, exp, exp2,",
    ),
    (
        "te.compute((8,), lambda i: max(A[i], 0))",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    (
        "te.compute((8,), lambda i: __import__('math').exp(A[i]))",
        TypeError,
        "a te expression has no value while the program is written: use te.exp, not math.exp",
    ),
    (
        "te.compute((8,), lambda i: A[i] if A[i] > 0 else 0)",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    (
        "te.compute((8,), lambda i: A[i] and 1)",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    ("te.compute((8,), lambda i: A[i].sum())", AttributeError, "'Read' object has no attribute 'sum'"),
    ("te.compute((8,), lambda i: A[i, i])", ExpressionError, "tensor 'A' of shape (8,) takes 1 indices, got 2"),
    (
        "te.compute((8,), lambda i: A[0.5])",
        ExpressionError,
        "tensor 'A' is indexed by a value of type float32, not by an integer",
    ),
    (
        "te.compute((8,), lambda i: A['x'])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got str",
    ),
    (
        "te.compute((8,), lambda i: A[i:])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got slice",
    ),
    (
        "te.compute((8,), lambda i: A[...])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got ellipsis",
    ),
    (
        "te.compute((8,), lambda i: 'x')",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got str",
    ),
    (
        "te.compute((8,), lambda i: None)",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got NoneType",
    ),
    (
        "te.compute((8,), lambda i: np.zeros(3))",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got ndarray",
    ),
    ("te.compute((8,), lambda i: a)", TypeError, "tensor 'a' of shape (8, 8) is used as a scalar: index it, a[...]"),
    (
        "te.compute((8,), lambda: 1.0)",
        ExpressionError,
        "compute 'compute': the shape has 1 axes, the function takes 0 arguments",
    ),
    (
        "te.compute((8,), lambda i, j: A[i])",
        ExpressionError,
        "compute 'compute': the shape has 1 axes, the function takes 2 arguments",
    ),
    ("te.compute((8,), 5)", TypeError, "compute 'compute': an element is given by a function of the axes, got 5"),
    ("te.compute(8.5, lambda i: A[i])", ShapeError, "compute 'compute': extents are integers, got 8.5 in shape (8.5,)"),
    (
        "te.compute((8,), lambda i: A[i].astype('f64'))",
        ExpressionError,
        "element type 'f64' is not one of float16, bfloat16, float32, float64, int8, int16,",
    ),
    (
        "te.compute((8,), lambda i: te.sum(A[i], axis='k'))",
        ExpressionError,
        "te.sum reduces over axes made by te.reduce_axis, got 'k'",
    ),
    (
        "te.compute((8,), lambda i: te.sum(A[i], axis=0))",
        ExpressionError,
        "te.sum reduces over axes made by te.reduce_axis, got 0",
    ),
    ("te.compute((8,), lambda i: te.sum(A[i]))", TypeError, "sum() missing 1 required positional argument: 'axis'"),
    (
        "te.compute((8,), lambda i: 1 + te.sum(A[i], axis=te.reduce_axis((0,8))))",
        ExpressionError,
        "a reduction must be the whole body of a compute: name it with te.compute first,",
    ),
    (
        "te.create_module([A, te.compute((8,), lambda i: A[i + 1])])",
        ExpressionError,
        "compute 'compute': tensor 'A' is read out of bounds on axis 0: index i + 1 ranges",
    ),
    ("te.reduce_axis(8)", ExpressionError, "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got 8"),
    (
        "te.reduce_axis((0,))",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got (0,)",
    ),
    ("te.reduce_axis((0,-1))", ExpressionError, "reduce_axis 'rv': the domain [0, -1) is empty"),
    (
        "te.reduce_axis((0,8.5))",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got (0, 8.5)",
    ),
    (
        "te.reduce_axis('k')",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got 'k'",
    ),
    ("te.sum(A)", TypeError, "sum() missing 1 required positional argument: 'axis'"),
    ("te.exp('x')", TypeError, "a te expression takes numbers, expressions and tensor elements, got str"),
    ("te.create_module([c])", ExpressionError, "placeholder 'a' is read, but is not in the list: list every input"),
    (
        "te.create_module([])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    (
        "te.create_module([a, a])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    ("te.nothing", AttributeError, "module 'loopwright.te' has no attribute 'nothing'"),
    ("topi.matmul(a)", TypeError, "matmul() missing 1 required positional argument: 'b'"),
    (
        "topi.matmul(a, x)",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    (
        "topi.matmul(a, te.placeholder((3,3)))",
        ShapeError,
        "matmul: a (8, 8) and b (3, 3) do not fit: 8 columns against 3 rows",
    ),
    ("topi.nothing", AttributeError, "module 'loopwright.topi' has no attribute 'nothing'"),
    (
        "topi.nn.relu(x)",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    ("topi.nn.softmax(a, axis=7)", ShapeError, "softmax: axis 7 is out of range for a tensor with 2 axes"),
    ("a + 'x'", TypeError, "a te expression takes numbers, expressions and tensor elements, got str"),
    ("a @ b", TypeError, "tensor 'a': a product is topi.matmul(a, b)"),
    ("bool(a)", TypeError, "tensor 'a' has no truth value"),
    ("list(a)", TypeError, "tensor 'a' cannot be iterated: index it inside te.compute"),
    (
        "te.compute((8,), lambda i: np.add.reduce(A[i]))",
        TypeError,
        "np.add.reduce is for arrays: reduce te expressions with te.sum, te.max and their",
    ),
    (
        "te.compute((8,), lambda i: np.cbrt(A[i]))",
        TypeError,
        "te has no np.cbrt: it has absolute, add, ceil, cos, divide, equal, exp, exp2,",
    ),
    ("np.asarray(a)", TypeError, "tensor 'a' is no array: it has no values until a kernel of it runs"),
    ("float(A[0])", TypeError, "a te expression has no value while the program is written: use te.exp, not math.exp"),
]
