"""An autotuning tensor compiler on xDSL: write the computation once, search its schedule, run it fast and checked."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopwright import te as te
    from loopwright import testing as testing
    from loopwright import topi as topi
    from loopwright.backends.cuda.arrays import cuda as cuda
    from loopwright.backends.host_memory import NotEnoughMemory as NotEnoughMemory
    from loopwright.backends.kernel_function import BenchmarkResult as BenchmarkResult
    from loopwright.backends.kernel_function import Kernel as Kernel
    from loopwright.backends.llvm.this_cpu import cpu as cpu
    from loopwright.backends.missing import MissingRequirement as MissingRequirement
    from loopwright.backends.opencl.arrays import opencl as opencl
    from loopwright.backends.targets import TargetWarning as TargetWarning
    from loopwright.backends.targets import resolve_target as resolve_target
    from loopwright.building import build as build
    from loopwright.building import interpret as interpret
    from loopwright.dialects.errors import Error as Error
    from loopwright.dialects.interpret.loop import InterpretationError as InterpretationError
    from loopwright.dialects.intrinsics import Fragment as Fragment
    from loopwright.dialects.intrinsics import Intrinsic as Intrinsic
    from loopwright.dialects.intrinsics import intrinsics as intrinsics
    from loopwright.dialects.intrinsics import register_intrinsic as register_intrinsic
    from loopwright.dialects.plugins import PluginError as PluginError
    from loopwright.dialects.plugins import PluginWarning as PluginWarning
    from loopwright.dialects.target import Target as Target
    from loopwright.dialects.target_kinds import TargetKind as TargetKind
    from loopwright.fleet.manage import fleet_status as fleet_status
    from loopwright.fleet.manage import stop_fleet as stop_fleet
    from loopwright.fleet.protocol import FleetError as FleetError
    from loopwright.fleet.remote import request_device as request_device
    from loopwright.fleet.runner import FleetRunner as FleetRunner
    from loopwright.frontends import jax as jax
    from loopwright.frontends import onnx as onnx
    from loopwright.frontends import torch as torch
    from loopwright.frontends.mlir.errors import MlirImportError as MlirImportError
    from loopwright.frontends.mlir.importer import from_mlir as from_mlir
    from loopwright.frontends.onnx.errors import OnnxImportError as OnnxImportError
    from loopwright.frontends.onnx.importer import from_onnx as from_onnx
    from loopwright.frontends.torch.errors import TorchImportError as TorchImportError
    from loopwright.frontends.torch.exported import from_exported as from_exported
    from loopwright.graph.chosen_schedules import UntunedWarning as UntunedWarning
    from loopwright.graph.network import Network as Network
    from loopwright.graph.runtime.network import CompiledNetwork as CompiledNetwork
    from loopwright.graph.runtime.network import load_network as load_network
    from loopwright.graph.runtime.package import PackageError as PackageError
    from loopwright.graph.runtime.package import PackageWarning as PackageWarning
    from loopwright.graph.template_tasks import NoTemplateWarning as NoTemplateWarning
    from loopwright.opening import compile as compile
    from loopwright.opening import extract_tasks as extract_tasks
    from loopwright.opening import extract_template_tasks as extract_template_tasks
    from loopwright.passes.build_limits import BuildLimits as BuildLimits
    from loopwright.passes.primitive import Primitive as Primitive
    from loopwright.passes.primitive import ScheduleError as ScheduleError
    from loopwright.schedule import Schedule as Schedule
    from loopwright.search import tuners as tuners
    from loopwright.search.calibrate.calibration import CalibrationError as CalibrationError
    from loopwright.search.calibrate.calibration import calibrate as calibrate
    from loopwright.search.cost_model import CostModelError as CostModelError
    from loopwright.search.cost_model import load_cost_model as load_cost_model
    from loopwright.search.cost_model.local import Calibration as Calibration
    from loopwright.search.cost_model.local import CalibrationWarning as CalibrationWarning
    from loopwright.search.cost_model.protocol import CostModel as CostModel
    from loopwright.search.cost_model.samples import train_cost_model as train_cost_model
    from loopwright.search.cost_model.saved import SavedCostModel as SavedCostModel
    from loopwright.search.explain.explanation import Explanation as Explanation
    from loopwright.search.explain.explanation import ExplanationError as ExplanationError
    from loopwright.search.explain.explanation import explain as explain
    from loopwright.search.measure.backend_api import Backend as Backend
    from loopwright.search.measure.check import WrongKernelError as WrongKernelError
    from loopwright.search.measure.local import LocalBuilder as LocalBuilder
    from loopwright.search.measure.local import LocalRunner as LocalRunner
    from loopwright.search.measure.local import measure_option as measure_option
    from loopwright.search.measure.measurer import MeasureOptions as MeasureOptions
    from loopwright.search.records import pretuned as pretuned
    from loopwright.search.records.choose import load_best as load_best
    from loopwright.search.records.file import Record as Record
    from loopwright.search.records.file import RecordError as RecordError
    from loopwright.search.records.file import RecordWarning as RecordWarning
    from loopwright.search.records.index import apply_history_best as apply_history_best
    from loopwright.search.records.index import pick_best as pick_best
    from loopwright.search.report.write import write_report as write_report
    from loopwright.search.sketch.draft import Draft as Draft
    from loopwright.search.sketch.rule import SketchRule as SketchRule
    from loopwright.search.sketch.rule import SketchRuleWarning as SketchRuleWarning
    from loopwright.search.sketch.rule import register_sketch_rule as register_sketch_rule
    from loopwright.search.sketch.rule import sketch_rules as sketch_rules
    from loopwright.search.task import SearchTask as SearchTask
    from loopwright.search.template.config import Config as Config
    from loopwright.search.template.history import FallbackWarning as FallbackWarning
    from loopwright.search.template.knobs.knob import ConfigError as ConfigError
    from loopwright.search.template.registry import template as template
    from loopwright.search.template.task import TemplateTask as TemplateTask
    from loopwright.search.tune.loop import TuningError as TuningError
    from loopwright.search.tune.loop import TuningOptions as TuningOptions
    from loopwright.search.tune.loop import TuningResult as TuningResult
    from loopwright.search.tune.scheduler import TaskScheduler as TaskScheduler
    from loopwright.search.tuners import callbacks as callbacks
    from loopwright.search.workload import ComputeDAG as ComputeDAG
    from loopwright.search.workload import register_workload as register_workload
    from loopwright.storage.binary_cache import CacheWarning as CacheWarning
    from loopwright.tuning import optimize as optimize
    from loopwright.tuning import tune as tune

__version__ = "0.1.0"

# Public name -> the module that holds it; the module loads when the name is first used.
_HOMES = {
    "Error": "loopwright.dialects.errors",
    "MissingRequirement": "loopwright.backends.missing",
    "PluginError": "loopwright.dialects.plugins",
    "PluginWarning": "loopwright.dialects.plugins",
    "SavedCostModel": "loopwright.search.cost_model.saved",
    "TargetKind": "loopwright.dialects.target_kinds",
    "PackageError": "loopwright.graph.runtime.package",
    "ConfigError": "loopwright.search.template.knobs.knob",
    "UntunedWarning": "loopwright.graph.chosen_schedules",
    "RecordWarning": "loopwright.search.records.file",
    "PackageWarning": "loopwright.graph.runtime.package",
    "SketchRuleWarning": "loopwright.search.sketch.rule",
    "FallbackWarning": "loopwright.search.template.history",
    "NoTemplateWarning": "loopwright.graph.template_tasks",
    "CacheWarning": "loopwright.storage.binary_cache",
    "Calibration": "loopwright.search.cost_model.local",
    "CalibrationError": "loopwright.search.calibrate.calibration",
    "CalibrationWarning": "loopwright.search.cost_model.local",
    "CostModel": "loopwright.search.cost_model.protocol",
    "Primitive": "loopwright.passes.primitive",
    "Backend": "loopwright.search.measure.backend_api",
    "BenchmarkResult": "loopwright.backends.kernel_function",
    "BuildLimits": "loopwright.passes.build_limits",
    "CompiledNetwork": "loopwright.graph.runtime.network",
    "ComputeDAG": "loopwright.search.workload",
    "Config": "loopwright.search.template.config",
    "CostModelError": "loopwright.search.cost_model",
    "Draft": "loopwright.search.sketch.draft",
    "Fragment": "loopwright.dialects.intrinsics",
    "Intrinsic": "loopwright.dialects.intrinsics",
    "InterpretationError": "loopwright.dialects.interpret.loop",
    "Explanation": "loopwright.search.explain.explanation",
    "ExplanationError": "loopwright.search.explain.explanation",
    "explain": "loopwright.search.explain.explanation",
    "FleetError": "loopwright.fleet.protocol",
    "FleetRunner": "loopwright.fleet.runner",
    "Kernel": "loopwright.backends.kernel_function",
    "LocalBuilder": "loopwright.search.measure.local",
    "LocalRunner": "loopwright.search.measure.local",
    "MeasureOptions": "loopwright.search.measure.measurer",
    "Network": "loopwright.graph.network",
    "MlirImportError": "loopwright.frontends.mlir.errors",
    "NotEnoughMemory": "loopwright.backends.host_memory",
    "OnnxImportError": "loopwright.frontends.onnx.errors",
    "Record": "loopwright.search.records.file",
    "RecordError": "loopwright.search.records.file",
    "Schedule": "loopwright.schedule",
    "ScheduleError": "loopwright.passes.primitive",
    "SearchTask": "loopwright.search.task",
    "SketchRule": "loopwright.search.sketch.rule",
    "TaskScheduler": "loopwright.search.tune.scheduler",
    "Target": "loopwright.dialects.target",
    "TargetWarning": "loopwright.backends.targets",
    "TemplateTask": "loopwright.search.template.task",
    "TorchImportError": "loopwright.frontends.torch.errors",
    "TuningError": "loopwright.search.tune.loop",
    "TuningOptions": "loopwright.search.tune.loop",
    "TuningResult": "loopwright.search.tune.loop",
    "WrongKernelError": "loopwright.search.measure.check",
    "apply_history_best": "loopwright.search.records.index",
    "build": "loopwright.building",
    "calibrate": "loopwright.search.calibrate.calibration",
    "callbacks": "loopwright.search.tuners",
    "compile": "loopwright.opening",
    "cpu": "loopwright.backends.llvm.this_cpu",
    "cuda": "loopwright.backends.cuda.arrays",
    "interpret": "loopwright.building",
    "measure_option": "loopwright.search.measure.local",
    "extract_tasks": "loopwright.opening",
    "extract_template_tasks": "loopwright.opening",
    "load_cost_model": "loopwright.search.cost_model",
    "intrinsics": "loopwright.dialects.intrinsics",
    "jax": "loopwright.frontends",
    "fleet_status": "loopwright.fleet.manage",
    "from_mlir": "loopwright.frontends.mlir.importer",
    "from_exported": "loopwright.frontends.torch.exported",
    "from_onnx": "loopwright.frontends.onnx.importer",
    "load_best": "loopwright.search.records.choose",
    "load_network": "loopwright.graph.runtime.network",
    "onnx": "loopwright.frontends",
    "opencl": "loopwright.backends.opencl.arrays",
    "optimize": "loopwright.tuning",
    "pick_best": "loopwright.search.records.index",
    "pretuned": "loopwright.search.records",
    "register_intrinsic": "loopwright.dialects.intrinsics",
    "register_sketch_rule": "loopwright.search.sketch.rule",
    "register_workload": "loopwright.search.workload",
    "request_device": "loopwright.fleet.remote",
    "resolve_target": "loopwright.backends.targets",
    "sketch_rules": "loopwright.search.sketch.rule",
    "stop_fleet": "loopwright.fleet.manage",
    "template": "loopwright.search.template.registry",
    "torch": "loopwright.frontends",
    "train_cost_model": "loopwright.search.cost_model.samples",
    "tune": "loopwright.tuning",
    "tuners": "loopwright.search",
    "write_report": "loopwright.search.report.write",
}
_SUBPACKAGES = ("te", "testing", "topi")
__all__ = sorted([*_HOMES, *_SUBPACKAGES])


def __getattr__(name: str) -> object:
    """Load the public `name` from its module."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"loopwright.{name}")
    if name in _HOMES:
        module = importlib.import_module(_HOMES[name])
        return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{_HOMES[name]}.{name}")
    raise importlib.import_module("loopwright.dialects.classic_words").no_name("loopwright", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_SUBPACKAGES})
