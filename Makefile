# make run [ARGS='-p hi']   set up, then start the default model
# make test                 set up, then every check and test
# make screenshot           write docs/app.svg anew
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-$(shell cksum pyproject.toml | cut -d' ' -f1)

.PHONY: run test check setup clean screenshot

run: setup
	@$(BIN)/edgespec run $(ARGS)

test: check
	$(BIN)/python -m pytest $(ARGS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(READY)

$(READY):
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing edgespec (llama.cpp is compiled once, which takes some minutes)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@rm -f $(VENV)/.ready-*; touch $@

screenshot: setup
	$(BIN)/python docs/screenshot.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
