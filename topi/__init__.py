"""Operators on tensors, written as tensor expressions."""

from . import nn as nn
from .broadcast import add as add
from .broadcast import divide as divide
from .broadcast import equal as equal
from .broadcast import floor_divide as floor_divide
from .broadcast import greater as greater
from .broadcast import greater_equal as greater_equal
from .broadcast import less as less
from .broadcast import less_equal as less_equal
from .broadcast import logical_and as logical_and
from .broadcast import logical_or as logical_or
from .broadcast import maximum as maximum
from .broadcast import minimum as minimum
from .broadcast import mod as mod
from .broadcast import multiply as multiply
from .broadcast import not_equal as not_equal
from .broadcast import power as power
from .broadcast import subtract as subtract
from .broadcast import where as where
from .nn import batch_matmul as batch_matmul
from .nn import dense as dense
from .nn import matmul as matmul
