"""Element types: one table of names, which NumPy, the IR and the backends agree with."""

import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType

from loopwright import te
from loopwright.backends.c_family import types as c_family
from loopwright.backends.llvm import types as llvm
from loopwright.dialects.element import DTYPES, dtype_name, element_bytes, epsilon, is_float, is_unsigned
from loopwright.dialects.numpy_types import ELEMENT_TYPES, FLOATS, INTEGERS, NARROW_FLOATS, UNSIGNED, teach_numpy


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_numpy_ir_and_backends_agree_on_a_type(name: str) -> None:
    element = DTYPES[name]
    teach_numpy(name)
    size = np.dtype(name).itemsize
    assert dtype_name(element) == name
    assert element_bytes(element) == size
    assert is_float(element) == (name in FLOATS) and is_unsigned(element) == (name in UNSIGNED)
    assert np.issubdtype(np.dtype(name), np.integer) == (name in INTEGERS)
    kind = c_family.element_name(TensorType(element, [2]).get_element_type())
    assert c_family.bytes_of(kind) == size and c_family.is_float(kind) == is_float(element)
    assert llvm.stored_bytes(llvm.element_text(element)) == size
    assert te.placeholder((2,), name).dtype == name


@pytest.mark.parametrize("name", [name for name in FLOATS if name not in NARROW_FLOATS])
def test_epsilon_is_that_of_numpy(name: str) -> None:
    assert epsilon(DTYPES[name]) == np.finfo(name).eps


def test_what_is_no_element_type() -> None:
    assert c_family.element_name(IndexType()) == "index" and element_bytes(IndexType()) == 8
    with pytest.raises(ValueError, match="element type i4 is not one of float16, bfloat16"):
        dtype_name(IntegerType(4))
    with pytest.raises(c_family.UnsupportedError, match="no type for i4"):
        c_family.element_name(IntegerType(4))
