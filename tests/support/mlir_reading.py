"""Reading what was printed: modules of the graph dialect."""

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from loopwright.dialects.graph import LwGraph


def read_graph(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, LwGraph):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()
