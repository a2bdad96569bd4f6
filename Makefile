# Claude Ops. `make` lists the targets; `make test` is what CI runs.
# Needs Go and a POSIX shell; written for GNU Make 3.81 and newer.

GO           ?= go
TEST_TIMEOUT ?= 55m
FUZZ_TIME    ?= 20s
BENCH        ?= .
SOAK         ?=
# VERSION and CLAUDE select the CLI that `make contract` runs instead of the pinned CLIs. VERSION is also the release for `make freeze`
# and `make release`. Environment variables with these names have no effect.
VERSION      :=
CLAUDE       :=
# The programs that `build` builds. The main of claudeops lies in starter/.
PROGRAMS     := worker claudeops
MAIN_worker    := ./worker
MAIN_claudeops := ./starter
# The maximum size of the worker. A binary with a linked Temporal server is far larger.
WORKER_MAX_MB ?= 61

# These tags of other modules omit packages that nothing here uses, a fifth of what a build compiles: disable_grpc_modules of Google's
# storage library omits its gRPC transport, release of Temporal's auto-scaled-workers omits the client of Kubernetes. All targets build
# with them, so that they share the build cache. A -tags of a command replaces them, so it repeats them.
SLIM    := release,disable_grpc_modules
GOFLAGS := $(GOFLAGS) -tags=$(SLIM)
export GOFLAGS

# Build flags of the binaries. The tag clouds adds the drivers of three clouds for the transcript archive, which would double the size.
# The flags -s -w omit the symbol table: debuggers need the table, stack traces do not. Only releases are built with -trimpath, because
# with it Go compiles every package again.
CLOUDS := -tags clouds,$(SLIM)
BUILD  := $(CLOUDS) -ldflags '-s -w'

BIN     := bin
TOOLS   := $(BIN)/tools
CLIENTS := $(BIN)/clients
RELEASING := $(BIN)/releasing
PROMETHEUS := $(BIN)/prometheus
SERVERS := $(CLIENTS)/temporal-server $(CLIENTS)/temporal-sql-tool
REPORT  := $(BIN)/report
SERVER  := go.temporal.io/server

# Build the tools again when their versions or the compiler change.
TOOLS_BUILT := $(TOOLS)/.built-$(shell $(GO) env GOVERSION)

GOLANGCI_LINT := $(TOOLS)/golangci-lint
WORKFLOWCHECK := $(TOOLS)/workflowcheck
# Prints go test's own lines, then every skipped and failed test with its reason.
GOTESTSUM     := $(TOOLS)/gotestsum --format standard-quiet
# Runs failed tests again, twice at most. More than five failed tests, or a data race, are not run again.
RERUN         := --rerun-fails=2 --rerun-fails-max-failures=5 --rerun-fails-abort-on-data-race

.DEFAULT_GOAL := help
export GO # for the scripts in tools

##@ Everyday

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## Build bin/worker and bin/claudeops, or one of them: PROGRAMS=worker
	$(foreach program,$(PROGRAMS),$(GO) build $(BUILD) -o $(BIN)/$(program) $(MAIN_$(program)) &&) true

.PHONY: demo
demo: ## Watch a simulated incident climb all three tiers; DEMO=--keep leaves everything up
	@echo 'Compiling. The first time it takes three to six minutes on two idle cores, most of it for the Temporal server.' >&2
	@sh tools/build.sh $(BIN)/claudeops ./starter $(BUILD)
	@$(BIN)/claudeops demo $(DEMO)

# The link `starter` is the program's former name, for one release. The parts for systemd are left out where it is missing. It
# builds nothing, because root may lack Go. Packages set DESTDIR, and the directories of a distribution.
PREFIX   := /usr/local
WORKER   := $(PREFIX)/bin/worker
UNITS    := /etc/systemd/system
SYSUSERS := /etc/sysusers.d

.PHONY: install
install: ## Install what make build built: programs, completions, and for systemd the users and the units (as root)
	@test -x $(BIN)/claudeops && test -x $(BIN)/worker || { echo 'install: run make build first, as yourself' >&2; exit 1; }
	install -D -m 0755 $(BIN)/worker $(DESTDIR)$(WORKER)
	install -D -m 0755 -t $(DESTDIR)$(PREFIX)/bin $(BIN)/claudeops
	ln -sf claudeops $(DESTDIR)$(PREFIX)/bin/starter
	install -d $(foreach dir,$(COMPLETIONS),$(DESTDIR)$(PREFIX)/share/$(dir))
	$(BIN)/claudeops completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/claudeops
	$(BIN)/claudeops completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_claudeops
	$(BIN)/claudeops completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/claudeops.fish
	if [ -n "$(DESTDIR)" ] || [ -d /run/systemd/system ]; then $(MAKE) install-units; fi

COMPLETIONS := bash-completion/completions zsh/site-functions fish/vendor_completions.d

.PHONY: install-units
install-units:
	install -D -m 0644 deploy/systemd/sysusers.conf $(DESTDIR)$(SYSUSERS)/claudeops.conf
	install -d $(DESTDIR)$(UNITS)
	for unit in worker up web; do \
		sed 's,/usr/local/bin/worker,$(WORKER),; s,/usr/local/bin,$(PREFIX)/bin,' deploy/systemd/claudeops-$$unit.service \
			>$(DESTDIR)$(UNITS)/claudeops-$$unit.service && chmod 0644 $(DESTDIR)$(UNITS)/claudeops-$$unit.service || exit 1; done
	for unit in worker up; do \
		install -D -m 0644 -t $(DESTDIR)$(UNITS)/claudeops-$$unit.service.d deploy/systemd/drop-ins/agent-user.conf || exit 1; done
	install -d -m 0700 $(DESTDIR)/etc/claudeops
	if [ -z "$(DESTDIR)" ]; then systemd-sysusers && systemctl daemon-reload; fi

# If a test failed and then passed, the target prints it at the end as FLAKY, and writes its first failure to bin/report/flaky.txt.
.PHONY: test
test: clis web-assets openapi openai-clients check alerts race real ## Everything that must hold before a change is merged
	@$(TOOLS)/flaky $(REPORT)/flaky.txt $(REPORT)/race.json $(REPORT)/real.json

.PHONY: short
short: ## The tests that need no server and no real CLI
	$(GO) test -short -timeout $(TEST_TIMEOUT) ./...

.PHONY: fmt
fmt: $(TOOLS_BUILT) ## Format the Go files
	$(GOLANGCI_LINT) fmt

.PHONY: clean
clean: ## Remove what make built; the pinned CLIs stay
	rm -rf $(BIN)

##@ Checks

.PHONY: check
check: format vet portable lint workflowcheck tidy locks docs-check deploy-check lean ## All checks that run no test

.PHONY: format
format: $(TOOLS_BUILT) ## Check that the Go files are formatted
	$(GOLANGCI_LINT) fmt --diff

.PHONY: vet
vet: ## Run go vet on the tools; the linters include it for everything else
	$(GO) -C tools vet ./...

# Vet only the packages that have files for Linux only. The other packages link so much that vetting them would take minutes.
.PHONY: portable
portable: ## Vet what differs between systems as macOS sees it
	GOOS=darwin $(GO) vet ./internal/cell/process ./internal/cell/claude ./internal/records/transcripts ./internal/cell/door ./internal/cell/shell

.PHONY: lint
lint: $(TOOLS_BUILT) ## Run the linters, which also hold the import direction
	$(GOLANGCI_LINT) run

.PHONY: workflowcheck
workflowcheck: $(TOOLS_BUILT) ## Check that workflows are deterministic
	$(WORKFLOWCHECK) -config tools/workflowcheck.yaml ./workflows/...

.PHONY: tidy
tidy: ## Check that go.mod and tools/go.mod list what is used
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff

# If a lock file contains addresses, npm downloads from these addresses.
.PHONY: locks
locks: ## Check that npm's lock files pin contents and name no address
	@! grep -nE '"resolved"|https?://' tools/*/package-lock.json tools/claude/*/package-lock.json || { \
		echo 'locks: write them with npm install --omit-lockfile-registry-resolved' >&2; exit 1; }

.PHONY: docs-check
docs-check: $(TOOLS_BUILT) ## Check the links of the documentation, and the length of the README
	$(TOOLS)/docscheck .

.PHONY: deploy-check
deploy-check: $(TOOLS_BUILT) ## Check the files of deploy/ with the parsers of the programs that read them
	$(TOOLS)/deploycheck deploy
	sh tools/systemd.sh deploy/systemd
	for script in deploy/*/*.sh; do sh -n "$$script" || exit 1; done

.PHONY: lean
lean: | $(REPORT) ## Check that the worker is small and links no Temporal server
	$(GO) build $(BUILD) -o $(REPORT)/worker ./worker
	sh tools/lean.sh $(REPORT)/worker ./worker $(SERVER) $(WORKER_MAX_MB)

##@ Tests

# Packages whose tests link the Temporal server, and the commands. Compiling them again, for the race detector, would take minutes.
SERVED := ./internal/systemtest ./internal/desk/cli/... ./internal/desk/web/hooks ./internal/plant/embedded ./worker ./starter
# Packages whose tests start agents or the real CLI.
AGENTS := ./internal/claudesim ./internal/cell/claude ./internal/cell ./internal/cell/shell ./internal/cell/process ./internal/cell/guard ./internal/records/transcripts
# Packages that start no goroutine, with long tests. The race detector would only slow them down.
SEQUENTIAL := ./internal/escalation/calendar ./internal/change/checkout ./internal/plant/config ./internal/change/forge ./internal/desk/markdown
# The packages with the longest short tests. They start first, at the same time as others.
WAITING := ./internal/records/store ./workflows ./internal/cell/process ./internal/cell/claude ./internal/claudesim
# SQLite is generated code that the detector makes five times slower, and its races are not ours.
UNRACED := -gcflags=modernc.org/...=-race=false

.PHONY: race
race: $(TOOLS_BUILT) | $(REPORT) ## Run the tests under the race detector; those that need a server or a real CLI are in `real`
	$(GO) -C tools test ./...
	$(GO) test $(CLOUDS) -run '^TestClouds' ./internal/records/transcripts
	$(GO) test -run "$$(sh tools/tests.sh skipUnderRace workflows)" ./workflows
	$(GO) test -run "$$(sh tools/tests.sh skipUnderRace internal/systemtest/year)" ./internal/systemtest/year
	! grep -lE '(^|[^a-z])go (func|[a-z.]+\()' $(filter-out %_test.go,$(wildcard $(SEQUENTIAL:%=%/*.go)))
	$(GO) test -short -p 2 -timeout $(TEST_TIMEOUT) $(SEQUENTIAL)
	unserved=$$($(GO) list ./... | grep -vxF "$$($(GO) list $(SERVED) $(WAITING) $(SEQUENTIAL))" | tr '\n' ' ') && \
	$(GOTESTSUM) $(RERUN) --hide-summary skipped --jsonfile $(REPORT)/race.json --packages "$(WAITING) $$unserved" -- \
		-race $(UNRACED) -short -p 2 -parallel 8 -timeout $(TEST_TIMEOUT)

# Packages start in this order, the longest first, so that no long package runs alone at the end. A package that is named twice runs once.
REAL := ./internal/systemtest ./internal/claudesim ./internal/cell/claude ./internal/desk/cli $(AGENTS) $(SERVED)

.PHONY: real
real: $(TOOLS_BUILT) | $(REPORT) ## Run the tests on real Temporal servers, processes and CLIs
	$(GOTESTSUM) $(RERUN) --jsonfile $(REPORT)/real.json --packages '$(REAL)' -- \
		-p 2 -parallel 4 -timeout $(TEST_TIMEOUT)

.PHONY: contract
contract: $(TOOLS_BUILT) $(if $(VERSION)$(CLAUDE),,clis) ## List in what the pinned CLIs differ from the contract, or the one of VERSION=x or CLAUDE=path: before a CLI is pinned
	sh tools/contract.sh $(TOOLS)/gotestsum $(TEST_TIMEOUT) $(SLIM) '$(VERSION)' '$(CLAUDE)'

.PHONY: e2e
e2e: clis ## Repair a real service with the real CLI on a real Temporal server; make test does it, too
	packages=$$(sh tools/packages.sh TestEndToEnd) && \
	$(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestEndToEnd' $$packages

.PHONY: alerts
alerts: $(PROMETHEUS)/promtool ## Check and test the alert rules with the real promtool, after a change of deploy/prometheus; make test does it, too
	$(PROMETHEUS)/promtool check config deploy/prometheus/prometheus.yaml
	$(PROMETHEUS)/promtool test rules deploy/prometheus/rules.test.yaml

# SOAK=-soak.seed=N repeats the random moments of a run.
.PHONY: soak
soak: clis alerts $(PROMETHEUS)/prometheus $(SERVERS) $(CLIENTS)/temporal | $(REPORT) ## Kill at random, park, repeat, cut networks, measure: before a release, after a change of crash handling or processes
	sh tools/soak.sh $(REPORT)/soak.txt $(SLIM) $(SOAK)

.PHONY: clients
clients: $(CLIENTS)/temporal $(CLIENTS)/tctl ## Give docs/temporal-tools.md to the real temporal and tctl: before a release, after a change of it or of who may reach the server
	$(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestClients' ./internal/desk/cli

.PHONY: containers
containers: $(CLIENTS)/docker-compose ## Make the docker and compose calls of the guard's corpus on a real engine, as root: before a release, after a change of their rules
	$(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -tags containers,$(SLIM) -run '^TestCorpusOnDocker$$' ./internal/cell/guard

# Each test that calls recordHistory at its end writes the history of its branch.
.PHONY: histories
histories: ## Record the history of every branch of a chain anew for the replay test, after a change of what a workflow does
	rm -f workflows/testdata/*.json
	tests=$$(sh tools/tests.sh recordHistory internal/systemtest) && \
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -tags soak,$(SLIM) -run "$$tests" ./internal/systemtest -update
	$(GO) test -count=1 -run '^TestCostOfTemporal$$' ./workflows -update

# Some of the pictures are in the documentation.
.PHONY: screenshots
screenshots: ## Write pictures of all pages, light, dark and narrow, after a change of a page
	SCREENSHOTS=$(abspath $(BIN)/screenshots) $(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestScreenshots$$' ./internal/desk/cli
	cp $(BIN)/screenshots/page-*.webp docs/pictures/

.PHONY: freeze
freeze: ## Keep the recorded histories for VERSION, which must replay from then on: before the tag of a release
	sh tools/freeze.sh '$(VERSION)'

.PHONY: streams
streams: clis ## Record the streams of the real CLIs for the driver's replay tests, after a change of tools/claude or of what is recorded
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run '^TestRecord$$' ./internal/cell/claude -record
	$(GO) test -count=1 -run '^TestRecordedStreams$$' ./internal/cell/claude -update

.PHONY: pictures
pictures: clis ## Draw docs/pictures anew from real runs, after a change of what they show and before a release
	$(GO) test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestDrawPictures$$' ./internal/desk/cli -pictures

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_TIME, after a change of a parser and before a release
	sh tools/fuzz.sh $(FUZZ_TIME)

.PHONY: bench
bench: ## Run the benchmarks that match BENCH, after a change that costs or saves time
	packages=$$(sh tools/packages.sh Benchmark) && \
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $$packages

.PHONY: cover
cover: | $(REPORT) ## Measure what the short tests cover, when you look for what is untested
	$(GO) test -short -timeout $(TEST_TIMEOUT) -coverprofile $(REPORT)/cover.out ./...
	$(GO) tool cover -func $(REPORT)/cover.out | tail -n 1

##@ Releases

.PHONY: release
release: $(RELEASING)/nfpm $(RELEASING)/cyclonedx-gomod ## Build programs, packages, bills of materials and checksums of VERSION into dist, when its commit has the tag
	sh tools/release.sh $(abspath $(RELEASING)) '$(VERSION)' -trimpath $(BUILD)

##@ Tools

.PHONY: tools
tools: $(TOOLS_BUILT) $(PROMETHEUS)/promtool clis web-assets openapi openai-clients ## Install all that the checks and tests need

.PHONY: clis
clis: ## Install the real claude CLIs of tools/claude through npm
	sh tools/claude/install.sh

.PHONY: web-assets
web-assets: ## Install htmx and axe-core through npm, and compare the pages' copy of htmx
	sh tools/web/check.sh

.PHONY: openapi
openapi: ## Install the generator of clients for the test of the API, through npm
	sh tools/openapi/install.sh

.PHONY: openai-clients
openai-clients: ## Install the official clients of OpenAI's API for their test, through Go and npm
	sh tools/openai/install.sh

.PHONY: download
download: ## Download the Go modules, trying again when the network fails
	sh tools/retry.sh $(GO) mod download
	sh tools/retry.sh $(GO) -C tools mod download
	sh tools/retry.sh $(GO) -C tools/openai mod download
	cd tools/kubernetes && GOFLAGS= sh ../retry.sh $(GO) mod download k8s.io/kubernetes github.com/kedacore/keda/v2

$(TOOLS_BUILT): tools/go.mod tools/go.sum $(wildcard tools/flaky/*.go tools/deploycheck/*.go tools/docscheck/*.go)
	mkdir -p $(TOOLS)
	rm -f $(TOOLS)/.built-*
	$(GO) -C tools build -o ../$(TOOLS)/ tool
	touch $@

# Each client has its own module, because it needs other versions of Temporal's modules than this program.
$(CLIENTS)/%: tools/%/go.mod tools/%/go.sum
	$(GO) -C tools/$* build -trimpath -o ../../$@ tool

$(RELEASING)/%: tools/release/go.mod tools/release/go.sum
	mkdir -p $(RELEASING)
	$(GO) -C tools/release build -trimpath -o ../../$(RELEASING)/ tool

# Build without the service discoveries. They are most of Prometheus, and one of them has an unpublished dependency.
$(PROMETHEUS)/%: tools/prometheus/go.mod tools/prometheus/go.sum
	sh tools/retry.sh $(GO) -C tools/prometheus build -trimpath -tags remove_all_sd -o ../../$@ github.com/prometheus/prometheus/cmd/$*

# Temporal's server and its schema tool, with the versions of go.mod, because most of their packages are compiled already. The copy of
# go.sum gets the sums of their additional modules.
$(CLIENTS)/temporal-server: PACKAGE := $(SERVER)/cmd/server
$(CLIENTS)/temporal-sql-tool: PACKAGE := $(SERVER)/cmd/tools/sql
$(SERVERS): go.mod go.sum
	mkdir -p $(CLIENTS)
	cp go.mod $@.mod
	cp go.sum $@.sum
	$(GO) build -modfile=$@.mod -mod=mod -o $@ $(PACKAGE)

$(REPORT):
	mkdir -p $@
