"""Tensor expressions: the Python front end of the te dialect."""

from typing import TYPE_CHECKING

from ..dialects.classic_words import names_of_module as _names_of_module
from .broadcast import broadcast as broadcast
from .broadcast import broadcast_shape as broadcast_shape
from .errors import ExpressionError as ExpressionError
from .errors import ShapeError as ShapeError
from .expr import Expr as Expr
from .expr import IterVar as IterVar
from .expr import cast as cast
from .expr import const as const
from .functions import abs as abs
from .functions import all as all
from .functions import any as any
from .functions import bitcast as bitcast
from .functions import bitwise_and as bitwise_and
from .functions import bitwise_not as bitwise_not
from .functions import bitwise_or as bitwise_or
from .functions import bitwise_xor as bitwise_xor
from .functions import ceil as ceil
from .functions import cos as cos
from .functions import erf as erf
from .functions import exp as exp
from .functions import exp2 as exp2
from .functions import floor as floor
from .functions import floor_divide as floor_divide
from .functions import floor_mod as floor_mod
from .functions import fmod as fmod
from .functions import if_then_else as if_then_else
from .functions import log as log
from .functions import log2 as log2
from .functions import logical_not as logical_not
from .functions import max_value as max_value
from .functions import maximum as maximum
from .functions import min_value as min_value
from .functions import minimum as minimum
from .functions import power as power
from .functions import round as round
from .functions import round_to as round_to
from .functions import rsqrt as rsqrt
from .functions import select as select
from .functions import shift_left as shift_left
from .functions import shift_right as shift_right
from .functions import sigmoid as sigmoid
from .functions import sin as sin
from .functions import sqrt as sqrt
from .functions import tan as tan
from .functions import tanh as tanh
from .functions import trunc as trunc
from .module import create_module as create_module
from .reduce import comm_reducer as comm_reducer
from .reduce import max as max
from .reduce import min as min
from .reduce import prod as prod
from .reduce import reduce_axis as reduce_axis
from .reduce import sum as sum
from .tensor import Tensor as Tensor
from .tensor import compute as compute
from .tensor import elementwise as elementwise
from .tensor import placeholder as placeholder

if not TYPE_CHECKING:  # type checkers know the names above
    __getattr__ = _names_of_module("loopwright.te")
