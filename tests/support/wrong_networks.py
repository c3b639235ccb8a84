"""Wrong calls of networks and of importers, with the error and its sentence."""

from loopwright.frontends.mlir.errors import MlirImportError
from loopwright.frontends.onnx.errors import OnnxImportError
from loopwright.graph.runtime.reading import PackageError
from loopwright.search.records.file import RecordError

CALLS: list[tuple[str, type[Exception], str]] = [
    (
        "lw.compile('missing.onnx', T)",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: No such file or directory",
    ),
    (
        "lw.compile('text.txt', T)",
        TypeError,
        "'text.txt' is no network: give the path of a model (.onnx), or what lw.from_onnx,",
    ),
    (
        "lw.compile('resnet-18x', T)",
        TypeError,
        "'resnet-18x' is no network: give the path of a model (.onnx), or what lw.from_onnx,",
    ),
    ("lw.Network('m').relu(net.input('x', (3,)))", ValueError, "network 'm': tensor 'x' is of another network, 'n'"),
    (
        "np.ones((4, 2), 'float32') @ net.input('x', (2, 3))",
        TypeError,
        "unsupported operand type(s) for @: 'numpy.ndarray' and 'Value'",
    ),
    ("net.output(3)", TypeError, "network 'n': a tensor of the network is wanted, got int"),
    ("lw.compile(lw.Network('m'), T)", ValueError, "network 'm' has no output: name its results by net.output(...)"),
    ("lw.sketch_rules('llvm')", TypeError, "sketch_rules takes a Target, as lw.resolve_target('llvm') gives, got str"),
    ("lw.compile(5, T)", TypeError, "5 is no network: give the path of a model (.onnx), or what lw.from_onnx,"),
    ("lw.compile(mm, T)", TypeError, " network: give the path of a model (.onnx), or"),
    (
        "lw.compile([a,b,c], T)",
        TypeError,
        "[Tensor('a', shape=(8, 8), dtype=float32), Tensor('b', shape... is no network: give",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), 'tpu')",
        ValueError,
        "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, records='missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, records='text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, layout='NCWH')",
        ValueError,
        "layout is one of NCHW, NHWC, auto or None, got 'NCWH'",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, precision='int4')",
        ValueError,
        "precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'int4'",
    ),
    (
        "lw.extract_tasks(lw.from_onnx('relu.onnx'), T, precision='fp16')",
        ValueError,
        "precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'fp16'",
    ),
    ("lw.extract_tasks(5, T)", TypeError, "5 is no network: give the path of a model (.onnx), or what lw.from_onnx,"),
    (
        "lw.extract_tasks(lw.from_onnx('relu.onnx'), 'tpu')",
        ValueError,
        "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'",
    ),
    (
        "lw.from_onnx('missing.onnx')",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: No such file or directory",
    ),
    (
        "lw.from_onnx('text.txt')",
        OnnxImportError,
        "model 'text.txt' cannot be imported: this is no ONNX model, or a part of one: Error parsing message",
    ),
    ("lw.from_onnx('empty.onnx')", OnnxImportError, "model 'empty.onnx' cannot be imported: the file is empty"),
    (
        "lw.from_onnx(5)",
        OnnxImportError,
        "model '5' cannot be imported: expected str, bytes or os.PathLike object, not int",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes={'x': 5})",
        OnnxImportError,
        "model 'relu' cannot be imported: the extents of input 'x' must be a list or a",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes=5)",
        TypeError,
        "shapes are given by the names of inputs, shapes={'x': ...}, got int",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes={'zz': (1,4)})",
        OnnxImportError,
        "model 'relu' cannot be imported: there is no input 'zz'; there are x",
    ),
    (
        "lw.from_onnx('relu.onnx', constants={'x': 5})",
        OnnxImportError,
        "model 'relu' cannot be imported: input 'x' has the shape [1, 4], values of shape ()",
    ),
    ("lw.from_onnx('relu.onnx', layout='x')", ValueError, "layout is one of NCHW, NHWC, auto or None, got 'x'"),
    ("compiled()", TypeError, "network relu takes 1 arrays (x), got 0"),
    ("compiled(x)", ValueError, "input 'x' must have shape (1, 4), got (8, 8)"),
    ("compiled(1,2,3)", TypeError, "network relu takes 1 arrays (x), got 3"),
    ("compiled(y=x)", ValueError, "network relu has no input 'y'; it has x"),
    ("compiled.run(x)", AttributeError, "'CpuNetwork' object has no attribute 'run'"),
    (
        "compiled['default']",
        TypeError,
        "'CpuNetwork' object is not subscriptable; instead of TVM's 'lib[\"default\"]' use",
    ),
    ("compiled.nothing", AttributeError, "'CpuNetwork' object has no attribute 'nothing'"),
    ("compiled.executor().set_input(zz=x)", ValueError, "network relu has no input 'zz'; it has x"),
    ("compiled.executor().set_input('x', x)", ValueError, "input 'x' must have shape (1, 4), got (8, 8)"),
    ("compiled.executor().get_output(7)", ValueError, "network relu has no output 7; it has y"),
    ("compiled.executor('gpu')", ValueError, "there is no CPU gpu"),
    (
        "compiled.save('text.txt')",
        FileExistsError,
        "it is there already and is no compiled network, so it is left alone:",
    ),
    (
        "compiled.export_library('x.txt')",
        ValueError,
        "network relu: a library is an object file (.o) or a shared one (.so), not x.txt",
    ),
    ("lw.load_network('missing.lw')", FileNotFoundError, "No such file or directory: 'missing.lw'"),
    ("lw.load_network('text.txt')", PackageError, "text.txt is no compiled network: File is not a zip file"),
    ("lw.load_network(5)", TypeError, "a compiled network is given by the path of its file, got int"),
    ("lw.TaskScheduler([])", ValueError, "there is no task to tune"),
    ("net.input('x', (0,))", ValueError, "input 'x': extents are numbers of at least 1, got (0,)"),
    (
        "net.input('z', (1,4), 'float33')",
        ValueError,
        "element type 'float33' is not one of float16, bfloat16, float32, float64, int8,",
    ),
    ("net.nothing", AttributeError, "there is no operator 'nothing'; there are abs, acos, acosh, adaptive_avg_pool,"),
    ("net.conv2d(5)", ValueError, "network 'n', operator conv2d: operator 'conv2d' takes 2 tensor(s), got 1"),
    (
        "lw.testing.network('resnet18')",
        ValueError,
        "there is no network 'resnet18'; there are resnet-18, resnet-34, resnet-50,",
    ),
    ("lw.testing.nothing", AttributeError, "module 'loopwright.testing' has no attribute 'nothing'"),
    (
        "lw.from_mlir('garbage')",
        MlirImportError,
        "the program cannot be imported: line 1: garbage cannot be read: Operation garbage",
    ),
    ("lw.from_mlir(5)", TypeError, "from_mlir takes text, a path, bytes or a module, got int"),
    ("lw.from_mlir('missing.mlir')", FileNotFoundError, "No such file or directory: 'missing.mlir'"),
    (
        "lw.onnx.InferenceSession('missing.onnx')",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: No such file or directory",
    ),
    ("lw.Network(5)", TypeError, "a network is named by a text, got int"),
]
