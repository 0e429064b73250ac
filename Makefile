# The few entry points; each sets up what it needs in .venv of this checkout.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-real check bench vsix wheel clean

help:
	@echo "make demo    set up, then play the main job without account, key or network"
	@echo "make test    set up, check and test everything"
	@echo "make test-real  the product with a small language model on this machine: fetches 500 MB, takes minutes"
	@echo "make check   ruff, mypy and import-linter only"
	@echo "make bench   print one line a figure: ours, reference, ratio, goal"
	@echo "make vsix    build the VS Code extension with the server's wheel inside"

.venv/run.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "AstroResearch needs Python 3.11 or newer; call: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "Python's venv module is missing; on Debian: apt install python3-venv"; exit 1; }
	@echo "Setting up .venv (a few minutes the first time) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/test.stamp: .venv/run.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test --group check --group build
	@touch $@

demo: .venv/run.stamp
	@$(BIN)/astroresearch demo

check: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: .venv/test.stamp check
	@tests/setup-system.sh
	$(MAKE) --no-print-directory vsix
	cd vscode-extension && npm test --silent
	tests/isolated.sh $(BIN)/python -m pytest -m "not long and not real_model"

test-long: .venv/test.stamp
	tests/isolated.sh $(BIN)/python -m pytest -m "long"

test-real: .venv/test.stamp
	$(BIN)/python -m pytest -m "real_model" tests/real_model

bench: .venv/test.stamp
	@$(BIN)/python -m tests.benchmarks

wheel: .venv/test.stamp
	@rm -f dist/astroresearch-*.whl
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist . > .venv/wheel.log 2>&1 || { cat .venv/wheel.log; exit 1; }

vsix: wheel
	@cd vscode-extension && npm ci --silent --no-audit --no-fund && npm run --silent package
	@ls vscode-extension/*.vsix

clean:
	rm -rf .venv dist build vscode-extension/dist vscode-extension/node_modules vscode-extension/*.vsix .demo .cache
