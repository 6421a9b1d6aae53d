# One entry for people and CI. `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help page demo test check bench soak fuzz agents dist python node

CARGO ?= cargo
# Cargo's own directory for results; the Python environment lives beside it.
TARGET := $(or $(CARGO_TARGET_DIR),target)
VENV := $(TARGET)/venv
PYTHON := $(VENV)/bin/python

help: ## list the targets
	@echo "Baton: hand work from one agent to the next, and prove afterwards what happened."
	@echo
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

page: ## build the page that `baton serve` gives out, into web/dist
	tools/page

demo: page ## the life of a task: work, handoff, CI, review, sessions, dying agents, guarded work, and the proof of it all
	$(CARGO) build --release --locked -p baton-cli
	$(TARGET)/release/baton demo

test: python node ## run every test
	tools/test $(PYTHON)

check: ## format, lints and the fast tests
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked -q -p baton-core -p baton-ledger -p baton-store

bench: page ## measure against raw loops and SQLite, as ratios within one run; and the page in a browser
	$(CARGO) build --release --locked -p baton-cli -p baton-testkit
	$(CARGO) run --release --locked -p baton-benches; all=$$?; \
	  BATON_BIN=$(TARGET)/release/baton tools/page bench && exit $$all

soak: ## the long counts: kills, failing disks, power cuts, races, random sessions, longer fuzzing
	BATON_SESSION_HISTORIES=100000 $(CARGO) test --release --locked -p baton-core -- --nocapture whatever_comes
	BATON_TASK_SEEDS=100000 $(CARGO) test --release --locked -p baton-runtime --test it -- --nocapture power_cut
	BATON_CLAIM_ROUNDS=200 $(CARGO) test --release --locked -p baton-cli --test it -- --nocapture of_64
	BATON_SERVER_KILLS=100 $(CARGO) test --release --locked -p baton-cli --test it -- --nocapture whatever_is_killed_under_load
	BATON_GUARDED_KILLS=100 $(CARGO) test --release --locked -p baton-cli --test it -- --nocapture whenever_baton_is_killed
	BATON_RECOVERY_ROUNDS=20 $(CARGO) test --release --locked -p baton-cli --test it -- --nocapture a_run_that_died
	BATON_KILLS=10000 BATON_SIM_SEEDS=5000 BATON_FUZZ_SECONDS=300 \
	  $(CARGO) test --release --locked -p baton-testkit --test it -- --nocapture crash faults fuzz

fuzz: ## coverage-guided fuzzing of the parsers (SECONDS_EACH=60)
	tools/fuzz $(or $(SECONDS_EACH),60)

agents: ## drive real agents (OpenCode, Qwen Code) against a model on this machine; says what it skips
	CARGO="$(CARGO)" tools/agents

dist: page python ## the optimised binary, in dist/, whose page is opened in a browser where there is one
	@[ -e web/dist/index.html ] || { echo "there is no page to put into it: make page" >&2; exit 1; }
	$(CARGO) build --release --locked -p baton-cli
	mkdir -p dist && strip -o dist/baton $(TARGET)/release/baton && ls -l dist/baton
	$(PYTHON) tools/page-in dist/baton
	BATON_BIN=dist/baton tools/page within

# The second verifier and the check of the HTTP description are Python; they get an environment of their own, made once.
python: $(VENV)/ready

$(VENV)/ready: tools/requirements.txt
	tools/setup-python $(VENV)
	touch $@

# The published clients of ACP over HTTP, made once. Without Node their tests say that they are skipped.
CLIENTS := crates/cli/tests/acp_clients
node: $(CLIENTS)/node_modules/.package-lock.json

$(CLIENTS)/node_modules/.package-lock.json: $(CLIENTS)/package-lock.json
	tools/setup-node
	@if [ -e $@ ]; then touch $@; fi
