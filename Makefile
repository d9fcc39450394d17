# Every verb is one line over deploy/bootstrap.py, which says what it does and how long it took.
# Without make: sh deploy/python -m deploy.bootstrap run

BOOTSTRAP := sh deploy/python -m deploy.bootstrap
VENV := .venv/bin
PORTS = $(if $(PORT),--port $(PORT)) $(if $(DASHBOARD_PORT),--dashboard-port $(DASHBOARD_PORT))
.DEFAULT_GOAL := help
.PHONY: help install run demo parts test tidy near test-pythons screenshots test-long soak adversary journals chaos hosts security check format settings docs first-hour dist release-check sbom lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install:  ## .venv with the gateway and the dashboard, and .venv/bin/breakeven
	@$(BOOTSTRAP) install

run:  ## everything on this machine: gateway, dashboard, an engine (KEYS=1: use API keys; CONFIG=file; PORT=8080 DASHBOARD_PORT=8501)
	@$(BOOTSTRAP) run $(if $(KEYS),--keys) $(if $(CONFIG),--config $(CONFIG)) $(PORTS)

demo:  ## the dashboard alive, with simulated engines and providers (PORT=8080 DASHBOARD_PORT=8501)
	@$(BOOTSTRAP) demo $(PORTS)

parts:  ## every real part that the tests use and this machine can have
	@$(BOOTSTRAP) parts

test:  ## all tests, with every real part that this machine can have (ARGS="-k name", LANES=2)
	@$(BOOTSTRAP) test -n $(or $(LANES),4) $(ARGS)

tidy:  ## the rules of the tree, and what `make check` looks at
	@$(BOOTSTRAP) tools
	@$(VENV)/python -m pytest -q tests/tidy $(ARGS)

near:  ## the tests of a file and of what imports it, a line for each failure, one minute (FILE=router/filters.py)
	@$(BOOTSTRAP) near $(FILE)

test-pythons:  ## install and a short tier of tests on each Python that is here (PYTHONS="python3.12 /opt/python3.14")
	@sh deploy/python -m deploy.pythons $(PYTHONS)

test-long:  ## the tests that take longer than a commit should wait
	@$(BOOTSTRAP) parts
	@$(BOOTSTRAP) test -m "long or hypothesis" --hypothesis-profile=long $(ARGS)

screenshots:  ## every dashboard page at three sizes, light and dark: build/screenshots, figures in build/screenshots.json
	@$(BOOTSTRAP) test -m long -k pictures tests/dashboard/test_app.py

soak:  ## random faults for three minutes (SECONDS=7200); STRIKES=0: none killed, what grows; FULL=1: thousands of clients too
	@SOAK_SECONDS=$(or $(SECONDS),180) SOAK_FULL=$(or $(FULL),0) $(BOOTSTRAP) test -m long -s \
		tests/gateway/faults/$(if $(filter 0,$(STRIKES)),test_growth.py::test_nothing_grows_but_the_ledger,test_soak.py) \
		$(if $(FULL),tests/gateway/faults/test_exhaustion.py tests/gateway/faults/test_departures.py tests/gateway/faults/test_total_failure.py \
		tests/gateway/faults/test_stalled_thousand.py)

adversary:  ## clients and upstreams that do anything, into real ledgers, against an honest bill (SCHEDULES=300000 SEED=7 ARGS="--jobs 2")
	@$(BOOTSTRAP) tools
	@$(VENV)/python tests/adversary/adversary.py $(if $(SCHEDULES),--schedules $(SCHEDULES)) $(if $(SEED),--seed $(SEED)) $(ARGS)

journals:  ## journals with every bit flipped, block damaged and byte cut, and power cuts at every flush (ARGS="--scale 0.1")
	@$(BOOTSTRAP) tools
	@JOURNAL_DAMAGE=all $(VENV)/python -m pytest -q tests/ledger/journals/test_damaged_journals.py
	@$(VENV)/python tests/chaos/chaos.py --only DAMAGE POWER CUT --jobs $$(nproc) $(ARGS)

chaos:  ## the ledger under faults: kills, outages, full disks, bursts; a table of what must be 0 (ARGS="--only L1 --scale 0.1")
	@$(BOOTSTRAP) tools
	@$(VENV)/python tests/chaos/chaos.py $(ARGS)

security:  ## goals of security: figure, bar, and a control that must miss it (ARGS="--only S5 S6", ARGS=--quick)
	@$(BOOTSTRAP) tools
	@$(VENV)/python tests/security/security.py $(ARGS)

hosts:  ## three gateway hosts in network namespaces, one PostgreSQL: budgets, limits, faults; needs root (ARGS="--only limits")
	@$(BOOTSTRAP) tools
	@$(VENV)/python tests/hosts/hosts.py $(ARGS)

check:  ## formatting, lint, types, import directions
	@$(BOOTSTRAP) tools
	@$(VENV)/ruff format --check .
	@$(VENV)/ruff check .
	@$(VENV)/mypy
	@$(VENV)/lint-imports

format:  ## rewrite the code in the house format
	@$(BOOTSTRAP) tools
	@$(VENV)/ruff format .
	@$(VENV)/ruff check --fix .

settings:  ## write what is generated: pages of docs/reference and others, the index of decisions, the chart's schema, ledger/reasons.json
	@$(BOOTSTRAP) install
	@$(VENV)/python -m gateway.config.settings_table docs/reference/settings.md breakeven.example.yaml docs/reference/more-settings.yaml
	@$(VENV)/python -m deploy.valuesschema
	@$(VENV)/python -m deploy.reasons_json
	@$(VENV)/python -m deploy.provider_docs
	@$(VENV)/python -m deploy.docsite.pages
	@$(VENV)/python -m deploy.docsite.decisions

docs:  ## the site, from docs/ and the code: build/site/index.html (strict links, search, no network)
	@$(BOOTSTRAP) parts docs
	@$(VENV)/python -m deploy.docsite.build

first-hour:  ## the tutorials' blocks in order, from an empty folder with the wheel alone; seconds and commands of each page
	@$(BOOTSTRAP) tools
	@$(VENV)/python -m deploy.docsite.first_hour

dist:  ## wheel and source archive in dist/, installed and run in an empty folder
	@$(BOOTSTRAP) tools
	@$(VENV)/python -m deploy.dist

release-check:  ## one version everywhere, then dist, sbom, docs, chart and image file, Pythons, the first hour (ARGS="versions dist")
	@$(BOOTSTRAP) tools
	@$(BOOTSTRAP) parts docs helm crds
	@$(VENV)/python -m deploy.release_check $(ARGS)

sbom:  ## what each locked environment may hold, with hashes and licences: build/sbom/*.cdx.json (CycloneDX)
	@$(BOOTSTRAP) tools
	@$(VENV)/python -m deploy.sbom

lock:  ## resolve every lock file again after a change of pyproject.toml
	@$(BOOTSTRAP) tools
	@PATH="$(CURDIR)/$(VENV):$$PATH" $(VENV)/python -m deploy.lock

bench-%:  ## measure one thing (bench-gateway, bench-routing, ...): table here, figures in build/
	@test -f tests/bench/bench_$(subst -,_,$*).py || { echo "no bench named $*: see tests/bench"; exit 2; }
	@$(BOOTSTRAP) tools
	@$(VENV)/python tests/bench/bench_$(subst -,_,$*).py $(ARGS)

clean:  ## remove what was installed and built; the ledger in .breakeven stays
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
