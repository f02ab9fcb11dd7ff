# Everything happens in .venv inside this checkout; `make demo` is the place to start.

VENV := .venv
PYTHON := $(VENV)/bin/python
# By content, not by date: a second call, or a fresh checkout of the same file, installs nothing.
STAMP := $(VENV)/.installed-$(shell cksum pyproject.toml | cut -d ' ' -f 1)
TORCH := torch==2.13.0
DEMO := mish softplus tanh_gelu_gate row_logsumexp fused_add_rms_norm layer_norm cumsum kl_div
STEPS := 2
RUNS := runs

.PHONY: demo install toolchains lint test e2e mutation check
.DELETE_ON_ERROR:

demo: $(STAMP)  ## port some operators on this processor: no key, no GPU
	@$(VENV)/bin/kforge port $(DEMO) --device cpu --steps $(STEPS) --runs $(RUNS)

install: $(STAMP)

$(STAMP):
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "kforge needs python3 3.11 or later, found: $$(python3 --version 2>&1)" >&2; exit 1; }
	@echo "installing into $(VENV): some minutes, once" >&2
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || python3 -m venv --clear $(VENV)
	$(PYTHON) -m pip install --quiet --no-compile '$(TORCH)'
	$(PYTHON) -m pip install --quiet --no-compile --editable '.[dev]'
	@$(PYTHON) -m compileall -qq -j 0 $(VENV)/lib || true  # on all cores; some packages ship templates
	@rm -f $(VENV)/.installed-*
	@touch $@

toolchains: $(STAMP)  ## the vendors' compilers that this machine can have; PARTS=NAMES for some
	@$(PYTHON) -m targets.machines.toolchains $(PARTS)

lint: $(STAMP)  ## formatting, rules, types, direction of imports
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

SIDE_BY_SIDE := PYTHONHASHSEED=0 $(PYTHON) -m pytest -n 3 --dist loadfile
HERE := not gpu and not net and not llm and not long

test: $(STAMP)  ## all tests that need no GPU, no other machine, no model; ARGS=OPTIONS of pytest
	$(SIDE_BY_SIDE) -m '$(HERE) and not e2e' $(ARGS)

e2e: $(STAMP)  ## whole campaigns, deployments and packages: some minutes more
	$(SIDE_BY_SIDE) -m '$(HERE) and e2e' $(ARGS)

mutation: $(STAMP)  ## the judge against planted bugs and honest variants; ONLY=PATTERN for some
	$(PYTHON) -m tests.mutation --only '$(or $(ONLY),*)'

check: lint test e2e  ## all that CI runs
