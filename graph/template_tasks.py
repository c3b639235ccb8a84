"""The tasks of a network for templates: its kernels that some template schedules, each with its number of uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dialects.target import Target
from ..search.task import SearchTask
from ..search.template.knobs.knob import ConfigError
from ..search.template.operator import only_reduction
from ..search.template.registry import operators
from ..search.template.task import TemplateTask
from .network import Network
from .tasks import extract_tasks


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
        if not any(_stands_for(name, known) for known in operators()):
            raise ConfigError(f"templates know the operators {', '.join(sorted(operators()))}, got '{name}'")
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
    """The operator of a task's only reduction; None where templates know none such, or there are more reductions."""
    reduction = only_reduction(task.compute_dag.func.body.block.ops)
    if reduction is None:
        return None
    return next((name for name, known in operators().items() if known.is_of(reduction)), None)


def _stands_for(name: str, operator: str) -> bool:
    """`conv2d` for `conv2d_nchw`, not for `depthwise_conv2d_nchw`."""
    return operator == name or operator.startswith(f"{name}_n")
