# One command per need. A fresh Debian or Ubuntu needs Python 3.11 or newer and make; the rest is fetched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Tests start hundreds of interpreters, which would compile the package each time.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# What a change is most likely to break, and each storage but the one in files.
QUICK := tests/unit tests/model tests/promises tests/storage/test_contract.py tests/testing/test_kit.py \
	tests/testing/test_run.py tests/app/test_enqueue.py tests/app/test_results.py tests/worker/test_worker.py \
	-k "not [file and not TestFile and not fifty_thousand"

# The oldest versions that the Spark extra promises, and the oldest pandas that Spark Connect takes with them.
OLDEST_SPARK := pyspark==4.1.0 pyarrow==18.0.0 pandas==2.2.0

# $(call apt,PACKAGE): install one Debian package, as root or by sudo.
define apt
if [ "$$(id -u)" = 0 ]; then as_root="env"; \
elif command -v sudo >/dev/null; then as_root="sudo"; \
else as_root=""; fi; \
if [ -z "$$as_root" ] || ! command -v apt-get >/dev/null; then \
	echo "headrace: the package $(1) is missing, and neither root nor sudo with apt-get is here to install it." >&2; \
	echo "headrace: install it with your system's package manager, then run make again." >&2; \
	exit 1; \
fi; \
echo "headrace: installing the package $(1)"; \
install_it() { $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(1); }; \
install_it >/dev/null 2>&1 || { $$as_root apt-get update -q && install_it; }
endef

.DEFAULT_GOAL := help
.PHONY: help setup setup-spark demo flights quick test test-spark test-slow test-spark-slow test-spark-oldest test-mutants check lint bench bench-peers bench-sync bench-fairness bench-growth bench-instructions bench-schedules bench-spark \
	soak-linearizability soak-model soak-chaos lua clean redis luacheck valgrind java

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(VENV)/.dev redis ## Install everything that development needs into .venv

setup-spark: $(VENV)/.spark java redis ## The same with pyspark and, where there is none, Java

demo: $(VENV)/.core ## Index source files with a few workers (URL=redis://… for a server of yours)
	@$(BIN)/python examples/index_sources.py $(if $(URL),--url $(URL)) $(ARGS)

flights: $(VENV)/.spark java redis ## Move a year of flights into jobs and back with Spark (ARGS="--keep flights-2013")
	@$(BIN)/python -m examples.flights $(ARGS)

test: $(VENV)/.dev redis ## Run the tests, in parallel (ARGS=… goes to pytest; ARGS=-n0: in one process)
	@$(PYTEST) $(ARGS)

quick: $(VENV)/.dev redis ## Run the tests that find most in two minutes, for the inner loop
	@$(PYTEST) $(QUICK) $(ARGS)

test-spark: $(VENV)/.spark java redis ## Run the tests of the Spark bridge, two sessions at a time
	@$(PYTEST) -n 2 --dist loadfile tests/spark $(ARGS)

test-slow: $(VENV)/.dev redis ## Run what takes minutes: short runs of the chaos soak, the whole model, many kills
	@$(PYTEST) -m slow $(ARGS)

test-spark-slow: $(VENV)/.spark java redis valgrind ## Run what takes minutes of the Spark bridge: a cluster of two hosts, many kills
	@$(PYTEST) -n 1 -m slow tests/spark $(ARGS)

test-spark-oldest: ## Run the tests of the Spark bridge on the oldest versions that it promises (ARGS="-m slow -n 1")
	@$(MAKE) --no-print-directory test-spark VENV=build/oldest PINNED="$(OLDEST_SPARK)"

test-mutants: $(VENV)/.dev redis ## See that the chaos soak finds storages out that are wrong on purpose
	@$(BIN)/python -m pytest -m mutants tests/chaos $(ARGS)

lint: $(VENV)/.dev luacheck ## Check format, style, types, layers, Lua, words and the map
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@luacheck --quiet lua
	@$(BIN)/python -m tests.support.lua_order
	@$(BIN)/python -m pytest -qq tests/test_glossary.py tests/test_map.py

check: lint test ## Everything that must pass before a commit

bench: $(VENV)/.dev redis valgrind ## Run the benchmarks
	@$(BIN)/python -m benchmarks $(ARGS)

bench-instructions: $(VENV)/.dev redis valgrind ## Count the server's instructions a job (ARGS="--against ../before")
	@$(BIN)/python -m benchmarks.instructions $(ARGS)

bench-peers: $(VENV)/.dev redis ## Run other job queues and ours side by side (ARGS="--rounds 3 saq huey")
	@$(BIN)/python -m benchmarks.peers $(ARGS)

bench-sync: $(VENV)/.dev redis ## Run what enqueues without an event loop side by side (ARGS="--rounds 5")
	@$(BIN)/python -m benchmarks.peers --sync $(ARGS)

bench-fairness: $(VENV)/.dev redis ## Measure how long 10 jobs wait for 100,000 of another, beside other job queues
	@$(BIN)/python -m benchmarks.peers.behind $(ARGS)

bench-growth: $(VENV)/.dev redis ## Measure how cost grows (ARGS="backlog slots --write")
	@$(BIN)/python -m benchmarks.growth $(ARGS)

bench-schedules: $(VENV)/.dev redis ## Measure schedules: lateness, 100,000 of them, 10,000 due at once
	@$(BIN)/python -m benchmarks schedules $(ARGS)

bench-spark: $(VENV)/.spark java redis valgrind ## Measure the Spark bridge (ARGS="writes --rows 100000")
	@$(BIN)/python -m benchmarks.spark $(ARGS)

soak-linearizability: $(VENV)/.dev redis ## Check 2,000 histories of each kind (HISTORIES=…, SEED=… that a run printed)
	@HEADRACE_HISTORIES=$(or $(HISTORIES),2000) HEADRACE_SEED=$(SEED) \
		$(BIN)/python -m pytest -s tests/linearizability/test_histories.py $(ARGS)

soak-model: $(VENV)/.dev redis ## Compare every storage with the model for SECONDS (3600), from SEED (1) on (ARGS=--help)
	@$(BIN)/python -m tests.model.soak --seconds $(or $(SECONDS),3600) --seed $(or $(SEED),1) $(ARGS)

soak-chaos: $(VENV)/.dev redis ## Break real processes and servers for SECONDS (300), by SEED (1) (ARGS=--help)
	@$(BIN)/python -m tests.chaos.soak --seconds $(or $(SECONDS),300) --seed $(or $(SEED),1) $(ARGS)

lua: $(VENV)/.core ## Print the assembled Lua library, to which the line numbers of errors refer
	@$(BIN)/python -m headrace.storage.redis.library

clean: ## Remove what was built and installed here
	rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
		echo "headrace: $(PYTHON) is not here: install Python 3.11 or newer, or name it: make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "headrace: Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) -V): make PYTHON=…" >&2; exit 1; }
	@# Debian keeps half of venv, ensurepip, in a package of its own.
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		package=$$($(PYTHON) -c 'import sys; print("python{}.{}-venv".format(*sys.version_info))'); \
		$(call apt,$$package); }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@echo "headrace: installing the package into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "headrace: installing the package and its tools into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $(VENV)/.core $@

$(VENV)/.spark: pyproject.toml $(if $(PINNED),Makefile) | $(BIN)/python
	@echo "headrace: installing the package, its tools and Spark into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[spark-dev]' $(PINNED)
	@touch $(VENV)/.core $(VENV)/.dev $@

# The package redis-server would start a service on port 6379 and enable it at boot. The same binary is in
# redis-tools, where it is called redis-check-rdb and acts as what it is called by.
redis: | $(BIN)/python
	@command -v redis-server >/dev/null || { \
		command -v redis-check-rdb >/dev/null || { $(call apt,redis-tools); }; \
		ln -sf "$$(command -v redis-check-rdb)" $(BIN)/redis-server; }
	@redis-server --version | grep -Eq ' v=([7-9]|[1-9][0-9]+)\.' || { \
		echo "headrace: Redis 7.0 or newer is needed as redis-server, and this is: $$(redis-server --version)" >&2; \
		exit 1; }

luacheck:
	@command -v luacheck >/dev/null || { $(call apt,lua-check); }

valgrind:
	@command -v vgdb >/dev/null || { $(call apt,valgrind); }

java:
	@command -v java >/dev/null || { $(call apt,default-jre-headless); }
