# Every goal sets up its own virtual environment; a machine needs Python 3.11 or newer and gcc.
PYTHON ?= $(or $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$python >/dev/null 2>&1 && $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; break; }; done),python3)
VENV := .venv
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers
DOCS := $(VENV)/.docs
TUNE_ARGS ?= conv2d --trials 64
TEST_WORKERS ?= 2
TEST_ARGS ?=
TRUST_ARGS ?=
TEST_CPU ?=
AS_CPU := $(if $(TEST_CPU),LOOPWRIGHT_TEST_CPU=$(TEST_CPU) PYTHONPATH=tests/support/as_cpu)

# Images of containers set it; each process of a test run would then compile all that it imports, and each test, anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help docs tune test test-all lint style types types-of-tests check bench models trust format
.DEFAULT_GOAL := check

help: ## this list
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/\1@\2/p' $(MAKEFILE_LIST) | while IFS=@ read -r goal text; do printf '%-10s %s\n' "$$goal" "$$text"; done

tune: $(READY) ## tune the last convolution of ResNet-50 on this CPU; TUNE_ARGS="matmul --m 512" another workload
	$(VENV)/bin/loopwright tune $(TUNE_ARGS)

test: $(READY) ## the tests, of the slowest ones a few cases; TEST_CPU=haswell: as on such a CPU, as far as this one can
	$(AS_CPU) $(VENV)/bin/python -m pytest -q -n $(TEST_WORKERS) --dist worksteal --max-worker-restart 0 $(TEST_ARGS)

test-all: $(READY) ## all cases, and what compares times, which takes a quiet machine
	$(VENV)/bin/python -m pytest -q -n $(TEST_WORKERS) --dist worksteal --max-worker-restart 0 --all
	$(VENV)/bin/python -m pytest -q -m perf

lint: style types types-of-tests ## format, lint and types; -j 2 for two at a time

style: $(READY)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

types: $(READY)
	$(VENV)/bin/mypy -p loopwright

types-of-tests: $(READY)
	$(VENV)/bin/mypy --config-file tests/mypy.ini tests

check: lint test ## lint and test: what every commit passes, and what make does when nothing is named

format: $(READY) ## put right what format and lint find, where that can be done by itself
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: $(PEERS) ## well-known operators beside PyTorch on this CPU
	$(VENV)/bin/python benchmarks/run.py

models: $(READY) ## train the cost models that ship anew: after a change of estimates, features or samples
	$(VENV)/bin/python benchmarks/train_cost_model.py benchmarks/samples/cuda-*.npz --units pretuned/cuda.model --output pretuned/cuda.model
	$(VENV)/bin/python benchmarks/train_cost_model.py benchmarks/samples/llvm-*.npz --output pretuned/llvm.model

docs: $(DOCS) ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --quiet

trust: $(READY) ## random programs, graphs, faults and damaged inputs, for hours; TRUST_ARGS="--scale 0.01" for minutes
	$(VENV)/bin/python benchmarks/trust/run.py $(TRUST_ARGS)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "loopwright needs Python 3.11 or newer, and '$(PYTHON)' is not; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@mkdir -p .links && ln -sfn .. .links/loopwright # type checkers follow paths, and no hook of an editable install
	@echo "$(CURDIR)/.links" > "$$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/loopwright-types.pth"
	@$(VENV)/bin/python tests/support/opencl_driver.py
	@touch $@

$(DOCS): $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(PEERS): $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check torch
	@touch $@
