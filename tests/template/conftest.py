"""Tasks that several files of tests tune."""

import pytest
from template_workloads import CONV

import loopwright as lw


@pytest.fixture(scope="module")
def conv() -> lw.TemplateTask:
    return lw.TemplateTask(*CONV)


@pytest.fixture(scope="module")
def small() -> lw.TemplateTask:
    return lw.TemplateTask("tests_matmul", (16, 8, 4), "llvm cores=1 vector_bytes=32")
