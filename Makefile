# Everything runs in $(VENV), which is made on first use and remade when pyproject.toml changes.

VENV    ?= .venv
CORES   := $(shell nproc 2>/dev/null || echo 2)
# One more than there are processors: tests wait for disks and servers, too. Browsers only compute.
JOBS    ?= $(shell expr $(CORES) + 1)
AGENTS  ?= .coding-agents
AXE     ?= .axe
CRASHES ?= 1000
# The first that really starts and is new enough; a shim on PATH may do neither.
PYTHON  ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& command -v $$python && break; done)

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest
CODE    = $(wildcard src tests benchmarks)
LINTED  = $(CODE) $(wildcard examples) scripts/lowest scripts/site.py
# Round trips, every store on its real server, the adapters, the command line: two minutes or so.
LOWEST := tests/unit/test_codec_roundtrip.py tests/unit/test_chunks.py \
	tests/integration/test_golden.py tests/integration/test_langgraph_saver.py \
	tests/integration/test_object_store.py tests/integration/test_postgres_store.py \
	tests/integration/test_redis_store.py tests/integration/test_redis_faults.py \
	tests/integration/test_store_contract.py tests/workspace/test_watch.py \
	tests/acceptance/test_handoff.py tests/cli/test_json.py tests/cli/test_mcp.py \
	tests/cli/test_servers.py

# All frameworks that can be installed together, by the names of their extras, and where the two
# environments of their tests are.
FRAMEWORKS := agent-framework,agentscope,autogen,claude,google-adk,langgraph,llama-index,$\
	openai-agents,pydantic-ai,smolagents,strands
WITH_BOTH   = HOLDFAST_PYTHON_A=$(abspath $(VENV)-frameworks/bin/python) \
	HOLDFAST_PYTHON_B=$(abspath $(VENV)-crewai/bin/python)

# What needs no server and no other process.
QUICK_TESTS := tests/unit tests/project/test_imports.py \
	tests/integration/test_store_contract.py::TestMemoryStore \
	tests/integration/test_store_contract.py::TestSqliteStore

.DEFAULT_GOAL := help
.PHONY: help setup services demo test quick lint environments suite lowest lowest-suite lowest-made \
	frameworks frameworks-made crewai-made coding-agents ui pictures docs format crash bench scale bench-frameworks test-pythons clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.test  ## Make the environment for development

services:  ## Install what tests start (Redis, PostgreSQL, PgBouncer, faketime, Chromium) where missing
	@scripts/install-services

demo: $(VENV)/.core  ## See an agent crash, resume, rewind and fork
	$(BIN)/holdfast demo

test:  ## Run all that CI runs: lint, types, tests
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint environments
	@$(MAKE) --no-print-directory suite ui lowest frameworks coding-agents

quick: $(VENV)/.test  ## Get an answer within a minute: style, pure functions, imports, two stores
	$(BIN)/ruff check $(LINTED)
	$(PYTEST) -n $(JOBS) -x -q --hypothesis-profile quick $(QUICK_TESTS)

lint: $(VENV)/.test  ## Check style and types
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/mypy $(CODE)

environments: $(VENV)/.made services
	@$(MAKE) --no-print-directory lowest-made VENV=$(VENV)-lowest
	@$(MAKE) --no-print-directory frameworks-made VENV=$(VENV)-frameworks
	@$(MAKE) --no-print-directory crewai-made VENV=$(VENV)-crewai

# What the tests of a hostile file share takes long to make, so each file is for one process.
suite: $(VENV)/.test services  ## Run the tests alone
	$(PYTEST) -n $(JOBS) --deselect tests/hostile
	$(PYTEST) -n $(JOBS) --dist loadfile tests/hostile

lowest:  ## Run the tests that matter with the lowest versions that pyproject.toml allows
	@$(MAKE) --no-print-directory lowest-suite VENV=$(VENV)-lowest

lowest-made: $(VENV)/.lowest

lowest-suite: lowest-made services
	$(PYTEST) -n $(JOBS) --hypothesis-profile quick -k 'not very_many' $(LOWEST)

frameworks:  ## Run the adapters' tests with every framework; CrewAI's in a second environment
	@$(MAKE) --no-print-directory frameworks-made VENV=$(VENV)-frameworks
	@$(MAKE) --no-print-directory crewai-made VENV=$(VENV)-crewai
	$(WITH_BOTH) $(VENV)-frameworks/bin/python -m pytest -n $(JOBS) tests/frameworks \
		--ignore tests/frameworks/crewai
	$(WITH_BOTH) $(VENV)-crewai/bin/python -m pytest -n $(JOBS) tests/frameworks/crewai \
		tests/frameworks/test_pages.py

frameworks-made: $(VENV)/.frameworks

crewai-made: $(VENV)/.crewai

coding-agents: $(VENV)/.test  ## Run the real coding agents, from npm, against a scripted model
	@scripts/install-coding-agents $(AGENTS) $(BIN)/python
	@if [ -f $(AGENTS)/package.json ]; then \
		PATH="$(abspath $(AGENTS))/node/bin:$$PATH" \
		HOLDFAST_CODING_AGENTS=$(abspath $(AGENTS))/node_modules/.bin \
		$(PYTEST) -n $(CORES) tests/coding_agents; fi

ui: $(VENV)/.test services  ## Drive the page in a real browser, with axe-core from npm
	@scripts/install-axe $(AXE) $(BIN)/python
	@if [ -f $(AXE)/package.json ]; then \
		HOLDFAST_AXE=$(abspath $(AXE))/node_modules/axe-core/axe.min.js \
		$(PYTEST) -n $(CORES) tests/ui/browser; fi

pictures:  ## Make the pictures of the page that the documentation shows
	@HOLDFAST_PICTURES=$(abspath docs/pictures) $(MAKE) --no-print-directory ui

docs: $(VENV)/.test  ## Build the documentation as a site, in site/
	$(BIN)/python -m mkdocs build --strict

format: $(VENV)/.test  ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix $(LINTED)
	$(BIN)/ruff format $(LINTED)

crash: $(VENV)/.test services  ## Kill saves with SIGKILL, CRASHES=1000 times
	HOLDFAST_CRASHES=$(CRASHES) $(PYTEST) -n $(JOBS) -m crash --timeout 0

bench: $(VENV)/.bench services  ## Compare with the peers; ONLY=S2 for a part, QUICK=1 for a minute
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

scale: $(VENV)/.test services  ## Measure what grows with a store; SIZES=10000,1000000 STORES=sqlite QUICK=1
	$(BIN)/python -m benchmarks.scale $(if $(SIZES),--sizes $(SIZES)) $(if $(STORES),--stores $(STORES)) \
		$(if $(CALLS),--calls $(CALLS)) $(if $(ONLY),--only $(ONLY)) $(if $(DIR),--dir $(DIR)) \
		$(if $(QUICK),--quick) $(if $(WRITE),--write)

bench-frameworks:  ## Compare what 100 steps of an agent cost with each framework's own means
	@$(MAKE) --no-print-directory frameworks-made VENV=$(VENV)-frameworks
	@$(MAKE) --no-print-directory crewai-made VENV=$(VENV)-crewai
	$(WITH_BOTH) $(VENV)-frameworks/bin/python -m benchmarks.frameworks

test-pythons:  ## Run the tests on each of Python 3.11, 3.12 and 3.13 found here
	@for version in 3.11 3.12 3.13; do \
		found=; \
		for python in python$$version "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python; do \
			"$$python" --version >/dev/null 2>&1 && found=$$python && break; \
		done; \
		if [ -z "$$found" ]; then echo "== Python $$version: not found"; continue; fi; \
		echo "== Python $$version: $$found"; \
		$(MAKE) --no-print-directory suite frameworks VENV=.venv-$$version PYTHON="$$found" || exit 1; \
	done

clean:  ## Remove environments, caches and builds
	rm -rf .venv .venv-* $(AGENTS) $(AXE) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -prune -exec rm -rf {} +

# Debian and Ubuntu ship venv as a package of its own.
$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "Holdfast needs Python 3.11 or newer: install it, or name it with PYTHON=" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear $(VENV) || { \
		package=$$("$(PYTHON)" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
		then apt-get update -qq && apt-get install -qqy --no-install-recommends $$package; \
		else echo "Install $$package, then run make again" >&2; exit 1; fi \
		&& "$(PYTHON)" -m venv --clear $(VENV); }
	@$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.core: $(VENV)/.made pyproject.toml
	@echo "Installing holdfast into $(VENV)"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.core
	@echo "Installing the tools for tests, style, types and documentation into $(VENV)"
	@$(PIP) install --group test --group lint --group docs $(if $(CI),--group torch)
	@touch $@

$(VENV)/.lowest: $(VENV)/.made pyproject.toml scripts/lowest
	@echo "Installing the lowest versions that pyproject.toml allows into $(VENV)"
	@$(BIN)/python scripts/lowest >$(VENV)/lowest.txt
	@$(PIP) install --constraint $(VENV)/lowest.txt --group tools \
		--editable ".[$$($(BIN)/python scripts/lowest --extras)]"
	@touch $@

$(VENV)/.frameworks: $(VENV)/.made pyproject.toml
	@echo "Installing the frameworks into $(VENV)"
	@$(PIP) install --group frameworks --editable ".[$(FRAMEWORKS)]"
	@touch $@

$(VENV)/.crewai: $(VENV)/.made pyproject.toml
	@echo "Installing CrewAI into $(VENV)"
	@$(PIP) install --group pytest --group clients --editable ".[langgraph,crewai]"
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	@echo "Installing the peers for benchmarks into $(VENV)"
	@$(PIP) install --group bench
	@touch $@
