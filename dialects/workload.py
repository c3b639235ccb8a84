"""The form of a workload: one function of lw_te.compute on tensors; what text from elsewhere must be to be taken.

Operations verify themselves, reads inside of their tensors included (`ComputeOp`). This is what they cannot see: that
nothing else stands around or in them, that names are legal and distinct, and that sizes can be addressed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.transforms.dead_code_elimination import is_trivially_dead
from xdsl.utils.exceptions import VerifyException

from .element import DTYPES, element_bytes
from .interpret.vector import has_meaning
from .names import check_name
from .shown_text import one_line
from .target import TargetAttr
from .te import ComputeOp, IndexOp, PredicateOp, ReadOp, YieldOp

MOST_AXES = 32
"""Axes of a tensor or of an expression; NumPy 1 knows so many dimensions."""
MOST_BYTES = 1 << 47
"""Bytes of a tensor: what a process can address on x86-64 (and with 4 levels of pages on AArch64)."""
MOST_POINTS = 1 << 48
"""Points of an expression's domain: days of work for a GPU that does 10**12 a second."""

MOST_DEPTH = 300
"""Operations between an element that is read and the result: what builds and prints them calls itself so deep."""

_TE = (ReadOp, IndexOp, PredicateOp, YieldOp)
_MARKS: dict[str, type[Attribute]] = {"lw.name": StringAttr, "lw.constant": UnitAttr}


def verify_workload(module: ModuleOp) -> None:
    """VerifyException unless the module is one function of lw_te.compute on tensors; one sentence that says where."""
    module.verify()
    operations = list(module.ops)
    if len(operations) != 1 or not isinstance(operations[0], FuncOp):
        found = ", ".join(one_line(op.name) for op in operations[:4]) or "nothing"
        raise VerifyException(f"expected one function of lw_te.compute on tensors, the module holds {found}")
    target = module.attributes.get("lw.target")
    if target is not None and not isinstance(target, TargetAttr):
        raise VerifyException(f"'lw.target' is a #lw.target<...>, got {one_line(str(target))}")
    verify_function(operations[0])


def erase_unread(block: Block) -> None:
    """Erase expressions that no other one reads and that are not returned, and what these alone have read."""
    for op in reversed(tuple(block.ops)):
        if is_trivially_dead(op):
            block.erase_op(op)


def verify_function(func: FuncOp) -> None:
    """VerifyException unless the function is a workload; its operations have been verified."""
    check_name("the function", func.sym_name.data)
    blocks = list(func.body.blocks)
    if len(blocks) != 1 or not isinstance(blocks[0].last_op, ReturnOp):
        raise VerifyException(f"function '{func.sym_name.data}' has one block, which ends with func.return")
    stages = [op for op in blocks[0].ops if op is not blocks[0].last_op]
    for op in stages:
        if not isinstance(op, ComputeOp):
            raise VerifyException(
                f"expected one function of lw_te.compute on tensors, it holds {one_line(op.name)}; "
                "loops and other dialects are not read"
            )
    if not stages or not func.function_type.outputs:
        raise VerifyException(f"function '{func.sym_name.data}' computes nothing: it needs an lw_te.compute to return")
    for position, (name, argument) in enumerate(zip(_argument_names(func), blocks[0].args, strict=True)):
        _check_tensor(f"argument '{name or position}'", argument.type)
    computed: set[SSAValue] = set(blocks[0].args)
    for op in stages:
        assert isinstance(op, ComputeOp)
        _verify_stage(op, computed)
        computed.update(op.results)


def _argument_names(func: FuncOp) -> Iterator[str]:
    """Return the names that arguments are given, '' for none, checked with all that they are marked with."""
    seen: set[str] = set()
    marks = func.arg_attrs.data if func.arg_attrs is not None else ()
    for position, argument in enumerate(func.body.block.args):
        given = marks[position].data if marks else {}
        what = f"argument {position} of '{func.sym_name.data}'"
        for key, value in given.items():
            if key.startswith("lw.") and not isinstance(value, _MARKS.get(key, ())):
                raise VerifyException(f"{what} is marked {one_line(key)} = {one_line(str(value))}, which no input is")
        name = given.get("lw.name")
        text = name.data if isinstance(name, StringAttr) else argument.name_hint or ""
        if isinstance(name, StringAttr):
            check_name(what, text)
        if text in seen:
            raise VerifyException(f"{what} is called '{text}', as another argument is")
        seen.add(text or f" {position}")
        yield text


def _verify_stage(op: ComputeOp, computed: set[SSAValue]) -> None:
    what = f"'{op.label.data}'"
    if len(op.axes.data) > MOST_AXES:
        raise VerifyException(f"{what}: {len(op.axes.data)} axes, at most {MOST_AXES} are allowed")
    points = prod(a.extent for a in op.axes.data)
    if points > MOST_POINTS:
        raise VerifyException(f"{what}: its domain has {points:.3g} points, at most {MOST_POINTS:.3g} can be computed")
    for output in op.outputs:
        _check_tensor(f"result of {what}", output.type)
    _verify_scalars(what, op.body.block, _TE, computed)
    if op.combine is not None:
        _verify_scalars(what, op.combine.block, (YieldOp,), set())


def _verify_scalars(what: str, block: Block, own: tuple[type[Operation], ...], tensors: set[SSAValue]) -> None:
    """Refuse operations without a meaning, and values that are not there yet: xDSL does not look at their order."""
    depths: dict[SSAValue, int] = dict.fromkeys((*block.args, *tensors), 0)
    for op in block.ops:
        for position, operand in enumerate(op.operands):
            if operand not in depths or (operand in tensors) != (isinstance(op, ReadOp) and not position):
                raise VerifyException(f"{what}: {one_line(op.name)} uses a value that is not computed before it")
        _check_operation(what, op, own)
        depth = 1 + max((depths[operand] for operand in op.operands), default=0)
        if depth > MOST_DEPTH:
            raise VerifyException(f"{what}: its operations build on one another more than {MOST_DEPTH} deep")
        depths.update(dict.fromkeys(op.results, depth))


def _check_operation(what: str, op: Operation, own: tuple[type[Operation], ...]) -> None:
    if not isinstance(op, own) and not has_meaning(op):
        raise VerifyException(f"{what}: operation {one_line(op.name)} has no meaning in an expression")
    if op.regions or op.successors:
        raise VerifyException(f"{what}: operation {one_line(op.name)} has no region in an expression")
    values = [*op.results, *(op.positions if isinstance(op, ReadOp) else op.operands)]
    for value in values:
        _check_scalar(what, value.type)


def _check_scalar(what: str, kind: Attribute) -> None:
    if kind not in DTYPES.values():
        raise VerifyException(f"{what}: a value is {one_line(str(kind))}; element types are {', '.join(DTYPES)}")


def _check_tensor(what: str, kind: Attribute) -> None:
    if not isinstance(kind, TensorType):
        raise VerifyException(f"{what} is {one_line(str(kind))}: expected a tensor")
    shape, element = kind.get_shape(), kind.get_element_type()
    _check_scalar(what, element)
    if len(shape) > MOST_AXES:
        raise VerifyException(f"{what} has rank {len(shape)}, at most {MOST_AXES} is allowed")
    if any(extent < 1 for extent in shape):
        raise VerifyException(f"{what} is {one_line(str(kind))}: extents are constants of at least 1")
    size = prod(shape) * element_bytes(element)
    if size > MOST_BYTES:
        raise VerifyException(f"{what} is {one_line(str(kind))}: {size:.3g} bytes cannot be addressed")
