"""The tasks of a network for templates: its kernels that some template schedules, each with its number of uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dialects.target import Target
from ..dialects.te import ComputeOp
from ..search.task import SearchTask
from ..search.template.knobs.knob import ConfigError
from ..search.template.task import TemplateTask
from .network import Network
from .tasks import extract_tasks

OPERATORS = {
    "conv2d_nchw": "nn ff yy xx rc ry rx",
    "conv2d_nhwc": "nn yy xx ff ry rx rc",
    "depthwise_conv2d_nchw": "nn ff yy xx ry rx",
    "depthwise_conv2d_nhwc": "nn yy xx ff ry rx",
    "dense": "i j k",
    "batch_matmul": "b i j k",
}
"""The operators that templates come for, each with the loops of its reduction, by which it is known in a network."""


def extract_template_tasks(
    net: Network,
    target: str | Target = "llvm",
    ops: Sequence[str] = (),
    templates: Mapping[str, str] | None = None,
    layout: str | None = None,
) -> tuple[list[TemplateTask], list[int]]:
    """Extract the distinct kernels of a network that templates schedule, and how often each appears in it.

    A kernel is an operator with what is fused around it; records of its template are used by `lw.compile` as any other.
    `ops` restricts it to some operators: `"conv2d"` stands for both of its layouts. `templates` names the template of
    an operator where it is not the shipped one; it is called with one argument, the text of a te-level module.
    `layout` is as in `lw.extract_tasks`, which also has the kernels without a template. ConfigError for an operator not
    known.
    """
    named = dict(templates or {})
    for name in (*ops, *named):
        if not any(_stands_for(name, known) for known in OPERATORS):
            raise ConfigError(f"templates know the operators {', '.join(OPERATORS)}, got '{name}'")
    tasks: list[TemplateTask] = []
    weights: list[int] = []
    for task, weight in zip(*extract_tasks(net, target, layout=layout), strict=True):
        operator = operator_of(task)
        if operator is None or (ops and not any(_stands_for(name, operator) for name in ops)):
            continue
        try:
            made = TemplateTask(
                named.get(operator, operator), (task.compute_dag.text,), task.target, workload_key=task.workload_key
            )
        except ConfigError:
            continue
        tasks.append(made)
        weights.append(weight)
    return tasks, weights


def operator_of(task: SearchTask) -> str | None:
    """The operator that a task has its only reduction of; None where it is none of OPERATORS, or there are more."""
    stages = task.compute_dag.func.body.block.ops
    reductions = [op for op in stages if isinstance(op, ComputeOp) and op.reduce_axes]
    if len(reductions) != 1:
        return None
    loops = " ".join(axis.name for axis in reductions[0].axes.data)
    return next((name for name, known in OPERATORS.items() if known == loops), None)


def _stands_for(name: str, operator: str) -> bool:
    """`conv2d` for `conv2d_nchw`, not for `depthwise_conv2d_nchw`."""
    return operator == name or operator.startswith(f"{name}_n")
